//! States of the engines, their models and their keys.

use std::fs;

use hob_testkit::{FakeServer, Reply, TestCertificate};

use super::diagnosis::Diagnosis;
use super::{home, home_with_port};
use crate::fakes;
use crate::home::{Home, NOWHERE, engines_config, free_port};
use crate::running::Running;

/// The same home with more in its file.
fn adding(home: Home, text: &str) -> Home {
    let file = home.config_file();
    let before = fs::read_to_string(&file).expect("a file");
    fs::write(file, format!("{before}{text}")).expect("written");
    home
}

#[tokio::test]
async fn the_fix_for_an_engine_that_is_down_starts_it() {
    let found = Diagnosis::of(&home(&[("ollama", NOWHERE)])).await;
    found.shows("ollama", "warning", "does not answer").shows("engine", "bad", "no engine answers");
    found.is_not_ready_and_next_is("ollama serve");
    let found = Diagnosis::of(&home(&[("vllm", "http://127.0.0.1:9")])).await;
    found.is_not_ready_and_next_is("vllm serve MODEL --port 9");
}

#[tokio::test]
async fn another_program_on_an_engines_port_is_reported() {
    let other = FakeServer::replying(Reply::json(200, "[]")).await;
    let found = Diagnosis::of(&home(&[("ollama", &other.url())])).await;
    found.shows("ollama", "bad", &other.url()).is_not_ready_and_next_is("Check that ollama listens there");
}

#[tokio::test]
async fn the_fix_for_an_engine_without_models_pulls_one() {
    let empty = FakeServer::replying(Reply::json(200, "{\"models\": []}")).await;
    let found = Diagnosis::of(&home(&[("ollama", &empty.url())])).await;
    found.shows("model", "bad", "ollama has no model").is_not_ready_and_next_is("hob model pull qwen3:0.6b");
}

#[tokio::test]
async fn the_fix_for_a_missing_default_model_pulls_or_replaces_it() {
    let wish = "[intelligence]\ndefault_model = \"nope\"\n";
    let ollama = fakes::ollama().await;
    let found = Diagnosis::of(&adding(home(&[("ollama", &ollama.url())]), wish)).await;
    found
        .shows("model", "bad", "ollama does not have the default model 'nope'")
        .is_not_ready_and_next_is("hob model pull nope");
    let vllm = fakes::vllm().await;
    let found = Diagnosis::of(&adding(home(&[("vllm", &vllm.url())]), wish)).await;
    found.is_not_ready_and_next_is("[intelligence] default_model = \"smollm2\"");
}

#[tokio::test]
async fn the_embedded_engine_needs_an_intact_model() {
    let chosen = |text: &str| {
        let text = text
            .replace("[engine]\n", &format!("port = {}\n[engine]\ndefault = \"embedded\"\n", free_port()));
        Home::with_config(&text)
    };
    let home = chosen(&engines_config(&[]));
    let found = Diagnosis::of(&home).await;
    found.shows("embedded", "warning", "no model yet");
    found.is_not_ready_and_next_is("hob model pull smollm2-135m-instruct");

    fs::create_dir(home.directory().join("models")).expect("a directory");
    fs::write(home.directory().join("models/broken.gguf"), "GGUF, but no more").expect("written");
    let found = Diagnosis::of(&home).await;
    found.shows("embedded", "warning", "the model file of 'broken' cannot be used");
    assert!(!found.ok, "{found:#?}");

    let model = std::env::var("HOB_TEST_MODEL").expect("$HOB_TEST_MODEL; run this test with './dev test'");
    std::os::unix::fs::symlink(model, home.directory().join("models/smollm2.gguf")).expect("a link");
    let found = Diagnosis::of(&home).await;
    found.shows("model", "good", "smollm2").is_ready_and_next_is("hob model rm broken");
}

#[tokio::test]
async fn a_default_engine_on_hobs_own_port_gets_a_hint() {
    let port = free_port();
    let found = Diagnosis::of(&home_with_port(&[("vllm", &format!("http://localhost:{port}"))], port)).await;
    found.shows("vllm", "warning", "is Hob's own port");
    assert!(
        found.advice_on("vllm").is_some_and(|advice| advice.contains("Change one of the two ports")),
        "{found:#?}"
    );
    assert!(!found.ok);
}

#[tokio::test]
async fn a_default_engine_that_listens_on_hobs_own_port_is_found() {
    let vllm = fakes::vllm().await;
    let port = url::Url::parse(&vllm.url()).expect("a URL").port().expect("a port");
    let home = home_with_port(&[("vllm", &vllm.url())], port);
    let found = Diagnosis::of(&home).await;
    found.shows("vllm", "good", &vllm.url()).shows("engine", "good", "vllm").shows(
        "port",
        "warning",
        &format!("another program listens on {port}"),
    );
    let listed = home.run(&["model", "list"]).await;
    assert!(listed.code == Some(0) && listed.stdout.contains("vllm"), "{listed:?}");
    let overview = home.run(&[]).await;
    assert!(overview.stdout.contains(&format!("vllm at {}", vllm.url())), "{overview:?}");
}

#[tokio::test]
async fn hobs_own_port_is_the_one_that_it_listens_on() {
    let (ollama, vllm) = (fakes::ollama().await, fakes::vllm().await);
    let port = url::Url::parse(&vllm.url()).expect("a URL").port().expect("a port");
    let home = home_with_port(&[("ollama", &ollama.url()), ("vllm", &vllm.url())], port);
    Diagnosis::of(&home).await.shows("vllm", "off", "is Hob's own port");
    let server = Running::start(&home, &[]).await;
    Diagnosis::of(&home).await.shows("vllm", "good", &vllm.url());
    drop(server);
}

#[tokio::test]
async fn an_unconfigured_engine_on_hobs_own_port_needs_no_hint() {
    let (ollama, port) = (fakes::ollama().await, free_port());
    let own = format!("http://localhost:{port}");
    let found = Diagnosis::of(&home_with_port(&[("ollama", &ollama.url()), ("vllm", &own)], port)).await;
    found.shows("vllm", "off", "is Hob's own port").is_ready_and_next_is("hob ask");
    assert_eq!(found.advice_on("vllm"), None);
}

#[tokio::test]
async fn the_cloud_without_a_key_lists_the_possible_variables() {
    let found = Diagnosis::of(&home(&[("cloud", "")])).await;
    found.shows("cloud", "warning", "no API key is set");
    found.is_not_ready_and_next_is("Set OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY");
}

#[tokio::test]
async fn an_invalid_key_is_reported_without_showing_it() {
    let ollama = fakes::ollama().await;
    let home = home(&[("ollama", &ollama.url())]);
    for (key, words) in [
        ("sk-...", "OPENAI_API_KEY is a placeholder"),
        ("\"sk-proj-s3cret\"", "a quote"),
        ("sk-ant-s3cret", "an Anthropic key"),
    ] {
        let mut command = home.hob(&["doctor", "--json"]);
        command.env("OPENAI_API_KEY", key);
        let found = Diagnosis::from(command).await;
        found.shows("keys", "warning", words).is_ready_and_next_is("as the provider shows it, or unset it");
        assert!(!format!("{found:?}").contains("s3cret"), "{found:#?}");
    }
}

#[tokio::test]
async fn a_key_that_no_header_can_carry_is_reported_with_its_location() {
    let ollama = fakes::ollama().await;
    let text = engines_config(&[("ollama", &ollama.url())]);
    let text = text.replace("[engine.vllm]", "[engine.vllm]\napi_key = \"s3cret\\nline\"");
    let found = Diagnosis::of(&Home::with_config(&text)).await;
    found.shows("engine", "bad", "vllm is not set up").is_not_ready_and_next_is("Correct [engine.vllm]");
    assert!(!format!("{found:?}").contains("s3cret"), "{found:#?}");
}

#[tokio::test]
async fn a_refused_key_is_distinguished_from_an_engine_that_is_down() {
    let refusal = r#"{"error": {"message": "Incorrect API key provided", "type": "invalid_request_error"}}"#;
    let locked = FakeServer::replying(Reply::json(401, refusal)).await;
    let message = "vllm answered 401: Incorrect API key provided";
    let found = Diagnosis::that_shows(&home(&[("vllm", &locked.url())]), "vllm", "bad", message).await;
    found.is_not_ready_and_next_is("Set [engine.vllm] api_key to a valid key");

    let home = home(&[("cloud", "")]);
    let text = fs::read_to_string(home.config_file()).expect("a file");
    let text =
        text.replace(&format!("openai_host = \"{NOWHERE}\""), &format!("openai_host = \"{}\"", locked.url()));
    fs::write(home.config_file(), text).expect("written");
    let mut command = home.hob(&["doctor", "--json"]);
    command.env("OPENAI_API_KEY", "sk-abcdefghijklmnopqrstuvwxyz");
    let found = Diagnosis::from(command).await;
    found.shows("cloud", "bad", "answered 401: Incorrect API key provided");
    found.is_not_ready_and_next_is("Set a valid provider key");
}

#[tokio::test]
async fn an_unhealthy_engine_reports_its_own_reason() {
    let ill = FakeServer::replying(Reply::json(500, r#"{"error": "out of memory"}"#)).await;
    let home = home(&[("ollama", &ill.url())]);
    let found = Diagnosis::that_shows(&home, "ollama", "bad", "ollama answered 500: out of memory").await;
    found.is_not_ready_and_next_is("read its log");
}

#[tokio::test]
async fn the_fix_for_a_certificate_that_is_not_accepted_is_about_the_certificate() {
    let ollama = fakes::ollama().await;
    let served = home(&[("ollama", &ollama.url())]);
    let [cert, key] = ["cert.pem", "key.pem"].map(|file| served.directory().join(file));
    TestCertificate::generate().write(&cert, &key);
    let served = adding(served, &format!("[server.tls]\ncert = {cert:?}\nkey = {key:?}\n"));
    let server = Running::start(&served, &[]).await;
    let (_, port) = server.address().rsplit_once(':').expect("a port");
    let client = home(&[("ollama", &format!("https://127.0.0.1:{port}"))]);
    let found = Diagnosis::that_shows(&client, "ollama", "bad", "certificate").await;
    found.is_not_ready_and_next_is("renew the engine's certificate");
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn an_address_without_a_port_is_suspected_but_one_without_a_scheme_is_not() {
    let ollama = fakes::ollama().await;
    let found = Diagnosis::of(&home(&[("ollama", &ollama.address().to_string())])).await;
    found.shows("ollama", "good", &ollama.url()).is_ready_and_next_is("hob ask");

    let found = Diagnosis::of(&home(&[("ollama", "nobody.invalid")])).await;
    found.shows("ollama", "warning", "http://nobody.invalid does not answer");
    found.is_not_ready_and_next_is("[engine.ollama] host = \"http://nobody.invalid:11434\"");
}

#[tokio::test]
async fn a_fresh_machine_that_cannot_download_a_model_is_not_ready() {
    let home = home(&[]);
    let nothing = home.directory().join("nothing");
    fs::create_dir(&nothing).expect("a directory");
    let mut command = home.hob(&["doctor", "--json"]);
    command.env("PATH", &nothing);
    let found = Diagnosis::from(command).await;
    found
        .shows("engine", "bad", "cannot download its small starter model")
        .is_not_ready_and_next_is("set HF_ENDPOINT");

    let hub = FakeServer::replying(Reply::new(200, "application/octet-stream", "")).await;
    let mut command = home.hob(&["doctor", "--json"]);
    command.env("PATH", &nothing).env("HF_ENDPOINT", hub.url());
    let found = Diagnosis::from(command).await;
    found.shows("engine", "good", "the first question downloads a small starter model");
    let asked: Vec<String> = hub.requests().into_iter().map(|request| request.method).collect();
    assert_eq!(asked, ["HEAD"], "nothing is fetched to find out");
}
