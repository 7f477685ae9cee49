//! `hob` without a command.

use std::time::{Duration, Instant};

use hob_testkit::{FakeServer, Reply};
use rustix::process::Signal;

use crate::fakes;
use crate::home::{Home, Ran, engines_config, free_port};
use crate::running::Running;

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
    let ran = home.run(&[]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), ""));
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
    assert_eq!(ran.stdout, expected);

    let server = Running::of(home.hob(&["serve"])).await;
    let ran = home.run(&[]).await;
    let up = format!(
        "Server  running: chat at http://localhost:{port}, dashboard at http://localhost:{port}/dashboard\n"
    );
    assert!(ran.stdout.starts_with(&up), "{}", ran.stdout);
    assert!(ran.stdout.contains("hob telemetry stats"), "{}", ran.stdout);
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_server_on_a_port_other_than_the_configured_one_is_found() {
    let ollama = fakes::ollama().await;
    let usual = free_port();
    let home = home(&ollama.url(), usual);
    let server = Running::start(&home, &[]).await;
    let (_, port) = server.address().rsplit_once(':').expect("a port");
    let ran = home.run(&[]).await;
    assert!(
        ran.stdout.starts_with(&format!("Server  running: chat at http://localhost:{port}, ")),
        "{}",
        ran.stdout
    );
    let well = Ran { code: Some(0), stdout: "ok\n".into(), stderr: String::new() };
    assert_eq!(home.run(&["health"]).await, well);
    let ran = home.run(&["health", "--port", &usual.to_string()]).await;
    let elsewhere = format!(
        "error: nothing listens on 127.0.0.1:{usual}. Hob is running on 127.0.0.1:{port}: use 'hob health' alone.\n"
    );
    assert_eq!((ran.code, ran.stderr), (Some(1), elsewhere));

    assert_eq!(server.terminate().await.code, Some(0));
    let ran = home.run(&[]).await;
    assert!(ran.stdout.starts_with("Server  not running\n"), "{}", ran.stdout);
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
    let ran = home.run(&[]).await;
    assert!(
        ran.stdout.starts_with(&format!("Server  running: chat at http://localhost:{port}, ")),
        "{}",
        ran.stdout
    );
    assert_eq!(older.terminate().await.code, Some(0));
}

#[tokio::test]
async fn the_model_of_the_running_server_is_shown() {
    let ollama = fakes::ollama().await;
    let home = home(&ollama.url(), free_port());
    let server = Running::of(home.hob(&["serve", "-m", "smollm2-tools:latest"])).await;
    // On a busy machine, the server may take longer than 'hob' waits for it. The time limit of the test ends a wait that is in vain.
    while !home.run(&[]).await.stdout.contains("Model   smollm2-tools:latest\n") {}
    assert_eq!(server.terminate().await.code, Some(0));
}

#[tokio::test]
async fn a_missing_default_model_is_reported() {
    let ollama = fakes::ollama().await;
    let config = engines_config(&[("ollama", &ollama.url())]);
    let home = Home::with_config(&format!("{config}[intelligence]\ndefault_model = \"qwen9\"\n"));
    let ran = home.run(&[]).await;
    let expected = "Model   qwen9: not available on ollama; see 'hob model list'\n";
    assert!(ran.code == Some(0) && ran.stdout.contains(expected), "{ran:?}");
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
