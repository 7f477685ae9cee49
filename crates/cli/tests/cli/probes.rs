//! The probes of orchestrators, and a stop behind a load balancer.

use hob_testkit::{Hold, Reply};
use rustix::process::Signal;
use tokio::net::TcpStream;

use crate::fakes::{self, END, piece};
use crate::home::{Home, engines_config};
use crate::http::{chat, get};
use crate::running::Running;

const QUESTION: &str = r#"{"model":"default","messages":[{"role":"user","content":"Hello?"}]}"#;
const STREAMED_QUESTION: &str =
    r#"{"model":"default","stream":true,"messages":[{"role":"user","content":"Hello?"}]}"#;

/// A home whose server drains for so many seconds.
fn draining(ollama: &str, seconds: f64) -> Home {
    let config = engines_config(&[("ollama", ollama)]);
    Home::with_config(&config.replace("[server]\n", &format!("[server]\ndrain_seconds = {seconds:?}\n")))
}

async fn status(address: &str, path: &str) -> String {
    let answer = get(address, path).await.all().await;
    answer.split(' ').nth(1).expect("a status").to_owned()
}

#[tokio::test]
async fn a_server_that_drains_is_not_ready_and_still_answers() {
    let ollama = fakes::ollama().await;
    let server = Running::start(&draining(&ollama.url(), 3600.0), &[]).await;
    let address = server.address().to_owned();
    assert_eq!(
        (status(&address, "/health/live").await, status(&address, "/health/ready").await),
        ("200".into(), "200".into())
    );
    server.signal(Signal::TERM);
    while status(&address, "/health/ready").await != "503" {}
    assert_eq!(
        (status(&address, "/health/live").await, status(&address, "/health").await),
        ("200".into(), "200".into())
    );
    let answer = chat(&address, QUESTION).await.all().await;
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    // A second signal does not wait.
    server.signal(Signal::TERM);
    assert_eq!(server.end().await.code, Some(143));
}

#[tokio::test]
async fn after_the_delay_new_connections_are_refused_and_running_answers_end() {
    let hold = Hold::new();
    let reply = Reply::ndjson(piece("Once")).then_held(&hold, piece(" more") + END);
    let ollama = fakes::ollama_chatting(move |_| reply.clone()).await;
    let server = Running::start(&draining(&ollama.url(), 0.05), &[]).await;
    let mut answer = chat(server.address(), STREAMED_QUESTION).await;
    answer.until("Once").await;
    server.signal(Signal::TERM);
    while TcpStream::connect(server.address()).await.is_ok() {}
    hold.release();
    let answer = answer.all().await;
    assert!(answer.contains(" more") && answer.contains("data: [DONE]"), "{answer}");
    assert_eq!(server.end().await.code, Some(0));
}
