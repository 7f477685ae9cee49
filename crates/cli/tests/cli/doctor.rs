//! `hob doctor` in every known state. Each report ends with the next step.

mod config_file;
pub mod diagnosis;
mod engines;
mod environment;
mod home_and_databases;

use hob_testkit::{FakeServer, Reply};
use serde_json::Value;

use crate::fakes;
use crate::home::{Home, NOWHERE, Ran, engines_config, finish, free_port};
use crate::running::Running;

/// A home whose server has this port.
fn home_with_port(engines: &[(&str, &str)], port: u16) -> Home {
    Home::with_config(&engines_config(engines).replace("[engine]", &format!("port = {port}\n[engine]")))
}

fn home(engines: &[(&str, &str)]) -> Home {
    home_with_port(engines, free_port())
}

/// The status and message of a check.
fn check(ran: &Ran, name: &str) -> Vec<(String, String)> {
    let report: Value = serde_json::from_str(&ran.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("a list").clone();
    let text = |value: &Value| value.as_str().expect("text").to_owned();
    let named = checks.iter().filter(|check| check["name"] == name);
    named.map(|check| (text(&check["status"]), text(&check["message"]))).collect()
}

fn one(status: &str, message: &str) -> Vec<(String, String)> {
    vec![(status.to_owned(), message.to_owned())]
}

#[tokio::test]
async fn a_working_setup_is_ready() {
    let ollama = fakes::ollama().await;
    let port = free_port();
    let home = home_with_port(&[("ollama", &ollama.url())], port);
    let ran = home.run(&["doctor"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
    let stdout = ran
        .stdout
        .replace(&home.config_file().display().to_string(), "CONFIG")
        .replace(&home.directory().display().to_string(), "HOME")
        .replace(&ollama.url(), "http://OLLAMA")
        .replace(&port.to_string(), "PORT");
    // The machine and its free space differ.
    let stdout: Vec<String> = stdout
        .lines()
        .filter(|line| !line.contains("✓ machine") && !line.contains(" energy "))
        .map(|line| match line.split_once("HOME, ") {
            Some((before, _)) => format!("{before}HOME, SPACE free"),
            None => line.to_owned(),
        })
        .collect();
    insta::assert_snapshot!(stdout.join("\n"), @r"
    ✓ config     CONFIG
    ✓ home       HOME, SPACE free
    · hob.db     not created yet (created by the first answer)
    · memory.db  not created yet (created by 'hob memory index PATH')
    ✓ ollama     http://OLLAMA, 2 models
    · vllm       http://127.0.0.1:9 does not answer
    · sglang     http://127.0.0.1:9 does not answer
    · llamacpp   http://127.0.0.1:9 does not answer
    · litellm    http://127.0.0.1:9 does not answer
    · cloud      no API key is set (OPENAI_API_KEY, ANTHROPIC_API_KEY or GEMINI_API_KEY)
    · embedded   no model yet; download one with 'hob model pull smollm2-135m-instruct'
    ✓ engine     ollama answers
    ✓ model      smollm2:latest
    ✓ port       PORT is free for 'hob serve'
    ✓ access     the next 'hob serve' answers this machine only (127.0.0.1)

    Ready. Try it: hob ask 'Hello'
    ");
}

#[tokio::test]
async fn without_an_engine_it_is_not_ready_and_says_what_to_start() {
    let ran = home(&[("ollama", NOWHERE)]).run(&["doctor"]).await;
    assert_eq!(ran.code, Some(1));
    for needle in ["✗ engine", "no engine answers", "ollama serve", "Not ready"] {
        assert!(ran.stdout.contains(needle), "'{needle}' is missing in:\n{}", ran.stdout);
    }
}

#[tokio::test]
async fn a_fallback_engine_is_a_warning() {
    let vllm = fakes::vllm().await;
    let ran = home(&[("ollama", NOWHERE), ("vllm", &vllm.url())]).run(&["doctor", "--json"]).await;
    assert_eq!(ran.code, Some(0));
    assert_eq!(check(&ran, "engine"), one("warning", "vllm answers instead of ollama"));
    assert_eq!(check(&ran, "ollama"), one("warning", "http://127.0.0.1:9 does not answer"));
    assert_eq!(check(&ran, "sglang"), one("off", "http://127.0.0.1:9 does not answer"));
    assert_eq!(check(&ran, "model"), one("good", "smollm2"));
}

#[tokio::test]
async fn an_engine_on_hobs_own_port_is_detected() {
    let ollama = fakes::ollama().await;
    let port = free_port();
    let own = format!("http://localhost:{port}");
    let home = home_with_port(&[("ollama", &ollama.url()), ("vllm", &own)], port);
    let ran = home.run(&["doctor", "--json"]).await;
    assert_eq!(ran.code, Some(0));
    assert_eq!(check(&ran, "vllm"), one("off", &format!("skipped, port {port} is Hob's own port")));
}

#[tokio::test]
async fn a_default_model_that_is_missing_is_a_problem() {
    let ollama = fakes::ollama().await;
    let home = home(&[("ollama", &ollama.url())]);
    let text = std::fs::read_to_string(home.config_file()).expect("a file");
    std::fs::write(home.config_file(), format!("{text}[intelligence]\ndefault_model = \"nope\"\n"))
        .expect("written");
    let ran = home.run(&["doctor", "--json"]).await;
    assert_eq!(ran.code, Some(1));
    assert_eq!(check(&ran, "model"), one("bad", "ollama does not have the default model 'nope'"));
    assert!(ran.stdout.contains("hob model pull nope"), "{}", ran.stdout);
}

#[tokio::test]
async fn a_draft_model_that_is_missing_is_mentioned() {
    let ollama = fakes::ollama().await;
    let home = home(&[("ollama", &ollama.url())]);
    let text = std::fs::read_to_string(home.config_file()).expect("a file");
    std::fs::write(home.config_file(), format!("{text}[engine.embedded]\ndraft_model = \"nope\"\n"))
        .expect("written");
    let ran = home.run(&["doctor", "--json"]).await;
    assert_eq!(ran.code, Some(0));
    let found = check(&ran, "embedded");
    let warning = "the draft model 'nope' is not downloaded, so models answer without it".to_owned();
    assert_eq!(found.last(), Some(&("warning".to_owned(), warning)), "{found:?}");
    assert!(ran.stdout.contains("hob model pull nope"), "{}", ran.stdout);
}

#[tokio::test]
async fn an_engine_without_models_cannot_answer() {
    let empty = FakeServer::replying(Reply::json(200, "{\"models\": []}")).await;
    let ran = home(&[("ollama", &empty.url())]).run(&["doctor", "--json"]).await;
    assert_eq!(ran.code, Some(1));
    assert_eq!(check(&ran, "model"), one("bad", "ollama has no model"));
}

#[tokio::test]
async fn a_broken_file_is_the_first_thing_to_fix() {
    let ran = Home::with_config("[server]\nport = \"many\"\n").run(&["doctor", "--json"]).await;
    assert_eq!(ran.code, Some(1));
    let config = check(&ran, "config");
    assert_eq!(config.len(), 1);
    assert_eq!(config[0].0, "bad");
    assert!(config[0].1.contains("server.port"), "{}", config[0].1);
    assert_eq!(check(&ran, "engine"), []);
}

#[tokio::test]
async fn a_key_that_others_may_read_is_mentioned() {
    use std::os::unix::fs::PermissionsExt;
    let ollama = fakes::ollama().await;
    let home = home(&[("ollama", &ollama.url())]);
    let text = std::fs::read_to_string(home.config_file()).expect("a file");
    let protect = |mode| {
        std::fs::set_permissions(home.config_file(), std::fs::Permissions::from_mode(mode))
            .expect("our file");
    };
    let warning =
        ("warning".into(), "the file contains a key, and other users of this machine can read it".into());
    for holding in [
        text.replace("[server]", "[server]\napi_key = \"s3cret\""),
        format!("{text}\n[mcp.servers.a]\ncommand = \"sh\"\nenv = {{ TOKEN = \"s3cret\" }}\n"),
        format!(
            "{text}\n[mcp.servers.a]\nurl = \"http://localhost:1\"\nheaders = {{ X-Key = \"s3cret\" }}\n"
        ),
    ] {
        std::fs::write(home.config_file(), holding).expect("written");
        protect(0o644);
        let ran = home.run(&["doctor", "--json"]).await;
        assert_eq!(check(&ran, "config").last(), Some(&warning), "{}", ran.stdout);
        assert!(!ran.stdout.contains("s3cret"), "{}", ran.stdout);
    }
    protect(0o600);
    assert_eq!(check(&home.run(&["doctor", "--json"]).await, "config").len(), 1);
}

#[tokio::test]
async fn the_port_is_free_or_used_by_hob_or_by_another_program() {
    let ollama = fakes::ollama().await;
    let engines = [("ollama", ollama.url())];
    let engines = [(engines[0].0, engines[0].1.as_str())];

    let port = free_port();
    let home = home_with_port(&engines, port);
    let free = home.run(&["doctor", "--json"]).await;
    assert_eq!(check(&free, "port"), one("good", &format!("{port} is free for 'hob serve'")));

    let server = Running::of(home.hob(&["serve"])).await;
    let ours = home.run(&["doctor", "--json"]).await;
    assert_eq!(check(&ours, "port"), one("good", &format!("Hob is already running on {port}")));
    drop(ollama);
    let lost = home.run(&["doctor", "--json"]).await;
    let message = format!("Hob is already running on {port}, but its engine does not answer");
    assert_eq!(check(&lost, "port"), one("warning", &message));
    drop(server);

    let other = FakeServer::replying(Reply::json(200, "{}")).await;
    let port = other.address().port();
    let taken = home_with_port(&engines, port).run(&["doctor", "--json"]).await;
    assert_eq!(check(&taken, "port"), one("warning", &format!("another program listens on {port}")));
}

#[tokio::test]
async fn an_engine_that_hob_starts_itself_counts_if_its_program_exists() {
    let managed = |binary: &str| {
        let text = engines_config(&[("llamacpp", NOWHERE)]);
        let text =
            text.replace("[engine.llamacpp]", &format!("[engine.llamacpp]\nbinary_path = \"{binary}\""));
        Home::with_config(&text.replace("[engine]", &format!("port = {}\n[engine]", free_port())))
    };
    let ran = managed("/bin/sh").run(&["doctor", "--json"]).await;
    assert_eq!(ran.code, Some(0));
    assert_eq!(check(&ran, "engine"), one("good", "Hob starts /bin/sh on demand"));
    let ran = managed("/no/llama-server").run(&["doctor", "--json"]).await;
    assert_eq!(ran.code, Some(1));
    assert_eq!(check(&ran, "engine"), one("bad", "'/no/llama-server' is not an executable program"));
    let ran = managed("/etc/passwd").run(&["doctor", "--json"]).await;
    assert_eq!(check(&ran, "engine"), one("bad", "'/etc/passwd' is not an executable program"));
    assert!(ran.stdout.contains("chmod +x"), "{}", ran.stdout);
}

#[tokio::test]
async fn without_a_file_the_defaults_hold() {
    let home = Home::empty();
    let ran = finish(home.hob(&["doctor", "--json"])).await;
    assert_eq!(check(&ran, "config"), one("good", "no file; all settings have their default values"));
}
