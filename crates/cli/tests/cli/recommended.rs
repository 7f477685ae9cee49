//! After `hob init`: the recommended engine is configured, and not reported missing before it has answered once.

use crate::doctor::diagnosis::Diagnosis;
use crate::fakes;
use crate::home::{Home, NOWHERE, engines_config, finish};
use crate::real_engine::directory_with_pip;

/// As `hob init` writes it for a machine with vLLM as the recommended engine. Its default address is Hob's own, so no request is
/// sent there: the test must not find programs of this machine.
fn recommending_vllm(engines: &[(&str, &str)]) -> String {
    let text =
        engines_config(&[]).replace("[engine.vllm]\nhost = \"http://127.0.0.1:9\"\n", "[engine.vllm]\n");
    let text = text.replace("[engine]\n", "[engine]\ndefault = \"vllm\"\nrecommended = \"vllm\"\n");
    engines.iter().fold(text, |text, (key, address)| {
        let section = format!("[engine.{key}]\nhost = \"");
        text.replace(&format!("{section}{NOWHERE}"), &format!("{section}{address}"))
    })
}

#[tokio::test]
async fn an_unused_recommendation_is_not_a_problem() {
    let ollama = fakes::ollama().await;
    let home = Home::with_config(&recommending_vllm(&[("ollama", &ollama.url())]));
    let ran = home.run(&["ask", "Hello"]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(!ran.stderr.contains("vllm"), "{}", ran.stderr);

    let found = Diagnosis::of(&home).await;
    found
        .shows("vllm", "off", "is Hob's own port")
        .shows("engine", "good", "ollama answers; vllm, which 'hob init' recommends here, is not running")
        .is_ready_and_next_is("hob ask");
    let advice = found.advice_on("engine").expect("how to have it");
    assert!(advice.contains("vllm serve MODEL --port 8001"), "{advice}");
}

#[tokio::test]
async fn an_engine_that_answered_before_is_reported_missing() {
    let (ollama, vllm) = (fakes::ollama().await, fakes::vllm().await);
    let home = Home::with_engines(&[("vllm", &vllm.url())]);
    assert_eq!(home.run(&["ask", "Hello"]).await.code, Some(0));

    std::fs::write(home.config_file(), recommending_vllm(&[("ollama", &ollama.url())])).expect("written");
    let ran = home.run(&["ask", "Hello"]).await;
    let note = format!("vllm is set to Hob's own address; using ollama at {}\n", ollama.url());
    assert!(ran.code == Some(0) && ran.stderr.starts_with(&note), "{ran:?}");
    Diagnosis::of(&home).await.shows("engine", "warning", "ollama answers instead of vllm");
}

#[tokio::test]
async fn a_configuration_without_engines_still_answers() {
    let home = Home::with_config(&recommending_vllm(&[]));
    let bin = directory_with_pip(&home);
    let path = format!("{}:{}", bin.display(), std::env::var("PATH").unwrap_or_default());
    let mut command = home.hob(&["doctor", "--json"]);
    command.env("PATH", &path);
    let found = Diagnosis::from(command).await;
    found
        .shows("engine", "good", "the first question downloads a small starter model")
        .is_ready_and_next_is("hob ask");
    let ran = home.run(&[]).await;
    let engine = "Engine  No engine found. Hob will download a small starter model (94 MB).\n";
    assert!(ran.stdout.contains(engine), "{}", ran.stdout);
    assert!(ran.stdout.contains("hob serve") && !ran.stdout.contains("hob init"), "{}", ran.stdout);
    let ran = home.run(&["ask", "--offline", "Hello"]).await;
    assert!(ran.code == Some(1) && ran.stderr.starts_with("error: vllm is configured at "), "{ran:?}");
    let cause = "\nWithout --offline, Hob would download a small starter model and answer with it.\n";
    assert!(ran.stderr.ends_with(cause), "{ran:?}");

    let question = ["ask", "-t", "0", "--max-tokens", "8", "Say hello."];
    let mut command = home.hob(&question);
    command.env("PATH", &path);
    let first = finish(command).await;
    assert_eq!(first.code, Some(0), "{}", first.stderr);
    assert!(
        first.stderr.starts_with("No engine is running. Hob downloads a small starter model: "),
        "{}",
        first.stderr
    );
    let second = home.run(&question).await;
    assert_eq!(second.code, Some(0), "{}", second.stderr);
    assert!(!second.stderr.contains("engine") && !second.stderr.contains("vllm"), "{}", second.stderr);
}

/// vLLM has the same default port as Hob.
#[tokio::test]
async fn a_chosen_engine_at_hobs_address_is_used_if_it_is_another_program() {
    let vllm = fakes::vllm().await;
    // It is the default engine.
    let config = engines_config(&[("vllm", &vllm.url())]);
    let port = format!("[server]\nport = {}\n", vllm.address().port());
    let home = Home::with_config(&config.replace("[server]\n", &port));
    for options in [&["-e", "vllm"][..], &[]] {
        vllm.forget();
        let ran = home.run(&[&["ask", "--offline"][..], options, &["Hello"]].concat()).await;
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
        let asked = vllm.requests().iter().any(|request| request.path == "/v1/chat/completions");
        assert!(asked, "{options:?}");
    }
}
