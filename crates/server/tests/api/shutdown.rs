//! Shutdown lets running answers end, accepts no new requests, and ends in time.

use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use hob_config::ServerConfig;
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply, ScriptedEngine};
use serde_json::{Value, json};
use tokio::net::TcpStream;

use crate::client::{RawConnection, asking, chunk};
use crate::support::{FINISH, TestServer, WAIT_LIMIT, engine_at, models};

/// An engine whose answers pause in the middle until `hold` is released.
async fn held(hold: &Hold) -> FakeServer {
    let hold = hold.clone();
    FakeServer::start(move |request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::sse(chunk(r#"{"content":"hi"}"#)).then_held(&hold, FINISH),
    })
    .await
}

#[tokio::test]
async fn a_running_stream_completes_while_new_connections_are_refused() {
    let hold = Hold::new();
    let fake = held(&hold).await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let response = server.chat(&asking(json!({ "stream": true }))).await;
    server.shutdown.cancel();
    let refused = async { while TcpStream::connect(server.address).await.is_ok() {} };
    tokio::time::timeout(WAIT_LIMIT, refused).await.expect("new connections are refused");

    hold.release();
    assert!(response.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    assert_eq!(server.stop().await, 0);
}

#[tokio::test]
async fn idle_connections_do_not_delay_shutdown() {
    let fake = held(&Hold::new()).await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let mut used = RawConnection::connect(&server).await;
    used.send("GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
    used.until(r#"{"status":"ok"}"#).await;
    let mut fresh = RawConnection::connect(&server).await;
    // Proves that the new connection is accepted: connections are accepted in the order of arrival.
    assert_eq!(server.client.get(server.url("/health")).send().await.unwrap().status(), 200);

    let stopped = tokio::time::timeout(WAIT_LIMIT, server.stop()).await;
    assert_eq!(stopped.expect("well before the grace period of 30 s"), 0);
    assert_eq!((used.rest().await, fresh.rest().await), (String::new(), String::new()));
}

#[tokio::test]
async fn a_stream_that_exceeds_the_grace_period_ends_with_an_error_and_is_counted() {
    let fake = held(&Hold::new()).await;
    let shutdown_grace = Duration::from_millis(50);
    let config = ServerConfig { shutdown_grace, ..ServerConfig::default() };
    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), config).await;
    let mut response = server.chat(&asking(json!({ "stream": true }))).await;
    let mut text = String::new();
    while !text.contains("hi") {
        let piece = response.chunk().await.unwrap().expect("the stream continues");
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
    let (stopped, rest) = tokio::join!(tokio::time::timeout(WAIT_LIMIT, server.stop()), response.text());
    assert_eq!(stopped.expect("the grace period ends"), 1);
    text.push_str(&rest.unwrap());
    let last = text.trim_end().rsplit("\n\n").next().and_then(|event| event.strip_prefix("data: ")).unwrap();
    let error: Value = serde_json::from_str(last).unwrap();
    assert_eq!(error["error"]["code"], "server_shutting_down", "{text}");
    assert!(text.contains("hi"), "what was there is kept: {text}");
    assert!(!text.contains("[DONE]") && !text.contains("\"stop\""), "it must not look complete: {text}");
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
}

#[tokio::test]
async fn a_complete_answer_that_exceeds_the_grace_period_is_a_503() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::silence(),
    })
    .await;
    let shutdown_grace = Duration::from_millis(50);
    let config = ServerConfig { shutdown_grace, ..ServerConfig::default() };
    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), config).await;
    let (client, url) = (server.client.clone(), server.url("/v1/chat/completions"));
    let answer = tokio::spawn(client.post(url).json(&asking(json!({}))).send());
    let asked = async {
        while !fake.requests().iter().any(|request| request.method == "POST") {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    tokio::time::timeout(WAIT_LIMIT, asked).await.expect("the engine is asked");
    assert_eq!(server.stop().await, 1);
    let answer = answer.await.unwrap().unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (503, &"5".parse().unwrap()));
    assert_eq!(answer.json::<Value>().await.unwrap()["error"]["code"], "server_shutting_down");
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
}

#[tokio::test(start_paused = true)]
async fn a_blocked_thread_does_not_delay_shutdown() {
    let (held_up, mut seen) = tokio::sync::mpsc::unbounded_channel();
    let (release, released) = mpsc::channel::<()>();
    let released = Mutex::new(released);
    // Releases the thread of the connection at the end of the test.
    let engine = ScriptedEngine::new(move |_| {
        held_up.send(()).unwrap();
        let _ = released.lock().unwrap().recv();
        Vec::new()
    });
    let server = TestServer::start(Arc::new(engine)).await;
    let question = server.client.post(server.url("/v1/chat/completions")).json(&asking(json!({}))).send();
    let asking = tokio::spawn(question);
    seen.recv().await.unwrap();
    let stopped = tokio::time::timeout(Duration::from_secs(3600), server.stop()).await;
    assert_eq!(stopped.expect("it ends"), 1);
    asking.abort();
    drop(release);
}
