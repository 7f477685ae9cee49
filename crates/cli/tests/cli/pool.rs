//! Several engines and several hosts, configured in a file and used by the whole program.

use hob_testkit::FakeServer;
use serde_json::Value;

use crate::fakes;
use crate::home::{Home, NOWHERE, engines_config};
use crate::http::{chat, get};
use crate::running::Running;

/// Ollama is the default, with one host that is running and one that is down; vLLM is in the pool.
fn home(ollama: &FakeServer, vllm: &FakeServer) -> Home {
    let config = engines_config(&[("ollama", &ollama.url()), ("vllm", &vllm.url())]);
    let config = config.replace("[engine]\n", "[engine]\npool = [\"ollama\", \"vllm\"]\n");
    let hosts = format!("[engine.ollama]\nhosts = [\"{NOWHERE}\", \"{}\"]\n", ollama.url());
    Home::with_config(&config.replace("[engine.ollama]\n", &hosts))
}

#[tokio::test]
async fn a_pool_with_a_host_that_is_down_answers_and_lists_all_hosts() {
    let (ollama, vllm) = (fakes::ollama().await, fakes::vllm().await);
    let home = home(&ollama, &vllm);
    let server = Running::start(&home, &["-a", "none"]).await;
    let line = format!("Engine  ollama at {NOWHERE}, {}, also vllm", ollama.url());
    assert_eq!(server.summary[0], line);

    // vLLM has a model `smollm2` too, but that name means Ollama's.
    let listed = get(server.address(), "/v1/models").await.all().await;
    let body: Value = serde_json::from_str(listed.split("\r\n\r\n").nth(1).expect("a body")).expect("JSON");
    let owners: Vec<(&str, &str)> = body["data"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|model| (model["id"].as_str().expect("text"), model["owned_by"].as_str().expect("text")))
        .collect();
    let models = [("smollm2:latest", "ollama"), ("smollm2-tools:latest", "ollama")];
    let of_hob = ["default", "auto"].map(|name| (name, "hob"));
    assert_eq!(owners, [&models[..], &of_hob[..]].concat(), "{listed}");
    for _ in 0..3 {
        let asked = r#"{"model": "default", "messages": [{"role": "user", "content": "Hello"}]}"#;
        let answer = chat(server.address(), asked).await.all().await;
        assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("x-hob-engine: ollama"), "{answer}");
    }
    assert_eq!(server.terminate().await.code, Some(0));

    let ran = home.run(&["doctor"]).await;
    assert!(ran.stdout.contains(&format!("2 models; no answer from {NOWHERE}")), "{}", ran.stdout);
    assert!(ran.stdout.contains("ollama answers, also vllm"), "{}", ran.stdout);
}

#[tokio::test]
async fn a_named_engine_is_used_alone_even_with_a_pool() {
    let (ollama, vllm) = (fakes::ollama().await, fakes::vllm().await);
    let home = home(&ollama, &vllm);
    let server = Running::start(&home, &["-e", "vllm", "-a", "none"]).await;
    assert_eq!(server.summary[0], format!("Engine  vllm at {}", vllm.url()));
    let asked = r#"{"model": "smollm2-tools", "messages": [{"role": "user", "content": "Hello"}]}"#;
    let answer = chat(server.address(), asked).await.all().await;
    assert!(answer.starts_with("HTTP/1.1 404") && answer.contains("vllm has no model"), "{answer}");
    assert_eq!(server.terminate().await.code, Some(0));
}
