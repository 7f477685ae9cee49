//! `hob health`.

use hob_testkit::{FakeServer, Reply};

use crate::fakes;
use crate::home::{Home, Ran, free_port};
use crate::running::Running;

fn failed(stderr: String) -> Ran {
    Ran { code: Some(1), stdout: String::new(), stderr }
}

async fn asked(home: &Home, port: &str) -> Ran {
    home.run(&["health", "--port", port]).await
}

#[tokio::test]
async fn a_server_is_healthy_while_its_engine_answers() {
    let ollama = fakes::ollama().await;
    let home = Home::with_engines(&[("ollama", &ollama.url())]);
    let server = Running::start(&home, &[]).await;
    let (_, port) = server.address().rsplit_once(':').expect("a port");
    let well = Ran { code: Some(0), stdout: "ok\n".into(), stderr: String::new() };
    assert_eq!(asked(&home, port).await, well);

    drop(ollama);
    let sick = failed(format!(
        "error: Hob is running on 127.0.0.1:{port}, but its engine does not answer. Run 'hob doctor'.\n"
    ));
    assert_eq!(asked(&home, port).await, sick);
}

#[tokio::test]
async fn no_listener_and_another_program_are_distinguished() {
    let home = Home::empty();
    let port = free_port().to_string();
    let no_listener =
        failed(format!("error: nothing listens on 127.0.0.1:{port}. Start the server with 'hob serve'.\n"));
    assert_eq!(asked(&home, &port).await, no_listener);

    let stranger = FakeServer::start(|_| Reply::json(200, r#"{"status":"ok"}"#)).await;
    let port = stranger.address().port().to_string();
    let other = failed(format!(
        "error: another program listens on 127.0.0.1:{port}, or Hob does not answer in time.\n"
    ));
    assert_eq!(asked(&home, &port).await, other);
}
