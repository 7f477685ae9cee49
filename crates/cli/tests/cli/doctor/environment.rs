//! States of the environment: the port, access, the network, the sandbox, messaging.

use std::fs;

use hob_testkit::{FakeServer, Gateway, GatewayScript};

use super::diagnosis::Diagnosis;
use super::home;
use crate::fakes;
use crate::home::Home;
use crate::running::Running;

/// A home with a working engine and more in its file, and the engine.
async fn with(text: &str) -> (Home, FakeServer) {
    let ollama = fakes::ollama().await;
    let home = home(&[("ollama", &ollama.url())]);
    let before = fs::read_to_string(home.config_file()).expect("a file");
    fs::write(home.config_file(), format!("{before}{text}")).expect("written");
    (home, ollama)
}

fn change(home: &Home, from: &str, to: &str) {
    let text = fs::read_to_string(home.config_file()).expect("a file");
    assert!(text.contains(from), "{text}");
    fs::write(home.config_file(), text.replace(from, to)).expect("written");
}

#[tokio::test]
async fn an_address_of_another_machine_is_reported() {
    let (home, _ollama) = with("").await;
    // Reserved for documentation, so no machine has it.
    change(&home, "host = \"127.0.0.1\"\nport", "host = \"192.0.2.1\"\napi_key = \"k\"\nport");
    let found = Diagnosis::of(&home).await;
    found.shows("port", "warning", "cannot listen on 192.0.2.1");
    assert!(found.advice_on("port").is_some_and(|advice| advice.contains("[server] host")), "{found:#?}");
}

#[tokio::test]
async fn a_server_on_another_port_is_reported() {
    let (home, ollama) = with("").await;
    let server = Running::start(&home, &[]).await;
    let (_, port) = server.address().rsplit_once(':').expect("a port");
    let running = format!("is free for 'hob serve'; Hob is already running at http://localhost:{port}");
    Diagnosis::that_shows(&home, "port", "good", &running).await;
    // The server keeps the address with which it started.
    change(&home, "host = \"127.0.0.1\"\nport", "host = \"0.0.0.0\"\nport");
    let access = format!("the running server answers this machine only (127.0.0.1:{port})");
    Diagnosis::that_shows(&home, "access", "good", &access).await.says_nothing_of("network");
    drop(ollama);
    let sick = format!("{running}, but its engine does not answer");
    Diagnosis::that_shows(&home, "port", "warning", &sick).await;
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn an_open_server_is_reported_and_a_protected_one_is_not() {
    let (home, _ollama) = with("").await;
    change(&home, "host = \"127.0.0.1\"\nport", "host = \"0.0.0.0\"\nport");
    let found = Diagnosis::of(&home).await;
    found.shows("access", "warning", "anyone on your network").is_ready_and_next_is("HOB_API_KEY");
    let mut locked = home.hob(&["doctor", "--json"]);
    locked.env("HOB_API_KEY", "s3cret");
    let found = Diagnosis::from(locked).await;
    found.shows("access", "good", "anyone who has the API key").is_ready_and_next_is("hob ask");
    assert_eq!(home.run(&["key", "create", "ana"]).await.code, Some(0));
    let found = Diagnosis::of(&home).await;
    found.shows("access", "good", "anyone who has a named key (0.0.0.0)").is_ready_and_next_is("hob ask");
    assert_eq!(home.run(&["key", "revoke", "ana"]).await.code, Some(0));
    let found = Diagnosis::of(&home).await;
    found.shows(
        "access",
        "warning",
        "no named key is valid, so the next 'hob serve' refuses all requests from your network",
    );
    found.is_ready_and_next_is("hob key create");
}

#[tokio::test]
async fn a_proxy_is_reported_and_suspected_for_a_silent_engine() {
    let (home, _ollama) = with("").await;
    let mut local = home.hob(&["doctor", "--json"]);
    local.env("HTTPS_PROXY", "http://me:s3cret@127.0.0.1:9");
    let found = Diagnosis::from(local).await;
    found.shows("proxy", "good", "HTTPS_PROXY is set").is_ready_and_next_is("hob ask");
    assert!(!format!("{found:?}").contains("s3cret"), "{found:#?}");

    change(
        &home,
        "[engine.vllm]\nhost = \"http://127.0.0.1:9\"",
        "[engine.vllm]\nhost = \"http://gpu.test:8000\"",
    );
    let mut far = home.hob(&["doctor", "--json"]);
    far.env("http_proxy", "http://127.0.0.1:9").env("NO_PROXY", "localhost");
    let found = Diagnosis::from(far).await;
    found.shows("proxy", "warning", "vllm at gpu.test is reached through the proxy of http_proxy");
    found.is_ready_and_next_is("NO_PROXY='localhost,gpu.test'");
}

#[tokio::test]
async fn the_fix_for_a_gateway_that_is_down_starts_it() {
    let gateway = Gateway::start(GatewayScript::default()).await;
    let url = gateway.url();
    let (home, _ollama) = with(&format!("[channel]\nenabled = true\ngateway_url = \"{url}\"\n")).await;
    Diagnosis::of(&home).await.shows("channel", "good", "answers").is_ready_and_next_is("hob ask");
    drop(gateway);
    let found = Diagnosis::of(&home).await;
    found
        .shows("channel", "warning", "cannot connect to the gateway")
        .is_ready_and_next_is("Start the gateway");
}

#[tokio::test]
async fn whatsapp_needs_a_linked_account() {
    let (home, _ollama) = with("[channel.whatsapp]\nenabled = true\n").await;
    let found = Diagnosis::of(&home).await;
    found.shows("whatsapp", "warning", "not installed").is_ready_and_next_is("hob channel login whatsapp");
}

#[tokio::test]
async fn a_missing_sandbox_is_reported() {
    let (home, _ollama) = with("[sandbox]\nenabled = true\n").await;
    let mut bare = home.hob(&["doctor", "--json"]);
    bare.env("PATH", home.directory());
    let found = Diagnosis::from(bare).await;
    found
        .shows("sandbox", "warning", "no sandbox for code is available")
        .is_ready_and_next_is("Install bubblewrap");
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn a_working_bubblewrap_is_reported_as_good() {
    let (home, _ollama) = with("[sandbox]\nenabled = true\nruntime = \"bwrap\"\n").await;
    Diagnosis::of(&home).await.shows("sandbox", "good", "code runs in ").is_ready_and_next_is("hob ask");
}

#[tokio::test]
async fn an_mcp_server_without_its_program_is_reported() {
    let (home, _ollama) = with("[mcp.servers.files]\ncommand = \"no-such-program\"\n").await;
    let found = Diagnosis::of(&home).await;
    found.shows("mcp", "warning", "files: the program 'no-such-program' does not exist");
    found.is_ready_and_next_is("[mcp.servers.files] command");
}

#[tokio::test]
async fn disabled_telemetry_is_not_a_problem() {
    let (home, _ollama) = with("[telemetry]\nenabled = false\n").await;
    Diagnosis::of(&home).await.shows("telemetry", "off", "not recorded").is_ready_and_next_is("hob ask");
}
