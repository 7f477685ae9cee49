//! `hob` without a command.

use std::time::{Duration, Instant};

use hob_testkit::{FakeServer, Reply};
use rustix::process::Signal;

use crate::fakes;
use crate::home::{Home, Ran, WAIT_LIMIT, engines_config, free_port};
use crate::running::Running;

/// Waits until `hob` shows what is expected: on a busy machine, a program may take longer to answer than `hob` waits for it.
pub async fn shows(home: &Home, is_expected: impl Fn(&str) -> bool) {
    let started = Instant::now();
    loop {
        let ran = home.run(&[]).await;
        if ran.code == Some(0) && ran.stderr.is_empty() && is_expected(&ran.stdout) {
            return;
        }
        assert!(started.elapsed() < WAIT_LIMIT, "{ran:?}");
    }
}

/// A home directory with its own server port.
fn home(ollama: &str, port: u16) -> Home {
    let config = engines_config(&[("ollama", ollama)]);
    Home::with_config(&config.replace("[server]\n", &format!("[server]\nport = {port}\n")))
}

#[tokio::test]
async fn hob_alone_shows_what_runs_and_what_to_do_next() {
    let ollama = fakes::ollama().await;
    let port = free_port();
    let home = home(&ollama.url(), port);
    let url = ollama.url();
    let expected = format!(
        "\
Server  not running
Engine  ollama at {url}
Model   smollm2:latest

  hob chat                  chat with the model
  hob serve                 serve OpenAI clients
  hob memory index ~/notes  use your documents in answers

'hob --help' shows all commands.
"
    );
    shows(&home, |stdout| stdout == expected).await;

    let server = Running::of(home.hob(&["serve"])).await;
    let up = format!(
        "Server  running: chat at http://localhost:{port}, dashboard at http://localhost:{port}/dashboard\n"
    );
    shows(&home, |stdout| stdout.starts_with(&up) && stdout.contains("hob telemetry stats")).await;
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_server_on_a_port_other_than_the_configured_one_is_found() {
    let ollama = fakes::ollama().await;
    let usual = free_port();
    let home = home(&ollama.url(), usual);
    let server = Running::start(&home, &[]).await;
    let (_, port) = server.address().rsplit_once(':').expect("a port");
    let up = format!("Server  running: chat at http://localhost:{port}, ");
    shows(&home, |stdout| stdout.starts_with(&up)).await;
    let well = Ran { code: Some(0), stdout: "ok\n".into(), stderr: String::new() };
    assert_eq!(home.run(&["health"]).await, well);
    let ran = home.run(&["health", "--port", &usual.to_string()]).await;
    let elsewhere = format!(
        "error: nothing listens on 127.0.0.1:{usual}. Hob is running on 127.0.0.1:{port}: use 'hob health' alone.\n"
    );
    assert_eq!((ran.code, ran.stderr), (Some(1), elsewhere));

    assert_eq!(server.terminate().await.code, Some(0));
    shows(&home, |stdout| stdout.starts_with("Server  not running\n")).await;
    let noted = std::fs::read_to_string(home.directory().join("server.address")).expect("a file");
    assert_eq!(noted, "");
}

#[tokio::test]
async fn a_server_is_found_although_a_later_one_was_killed() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama.url(), free_port());
    let older = Running::start(&home, &[]).await;
    let newer = Running::start(&home, &[]).await;
    let (_, port) = older.address().rsplit_once(':').expect("a port");
    newer.signal(Signal::KILL);
    newer.end().await;
    let up = format!("Server  running: chat at http://localhost:{port}, ");
    shows(&home, |stdout| stdout.starts_with(&up)).await;
    assert_eq!(older.terminate().await.code, Some(0));
}

#[tokio::test]
async fn the_model_of_the_running_server_is_shown() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama.url(), free_port());
    let server = Running::of(home.hob(&["serve", "-m", "smollm2-tools:latest"])).await;
    shows(&home, |stdout| stdout.contains("Model   smollm2-tools:latest\n")).await;
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_missing_default_model_is_reported() {
    let ollama = fakes::ollama().await;
    let config = engines_config(&[("ollama", &ollama.url())]);
    let home = Home::with_config(&format!("{config}[intelligence]\ndefault_model = \"qwen9\"\n"));
    let expected = "Model   qwen9: not available on ollama; see 'hob model list'\n";
    shows(&home, |stdout| stdout.contains(expected)).await;
}

#[tokio::test]
async fn hob_alone_does_not_wait_for_silent_programs() {
    let silent = FakeServer::replying(Reply::silence()).await;
    let stranger = FakeServer::replying(Reply::silence()).await;
    let home = home(&silent.url(), stranger.address().port());
    let started = Instant::now();
    let ran = home.run(&[]).await;
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(started.elapsed() < Duration::from_secs(60), "{:?}", started.elapsed());
    assert!(ran.stdout.contains("hob doctor"), "{}", ran.stdout);
}
