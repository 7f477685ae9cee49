//! Concurrent requests, and requests that wait.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hob_config::ServerConfig;
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply};
use serde_json::{Value, json};

use crate::client::{asking, chunk};
use crate::support::{FINISH, TestServer, WAIT_LIMIT, engine_at, models};

pub fn streaming() -> Value {
    asking(json!({ "stream": true }))
}

/// An engine whose first answer pauses in the middle until `hold` is released; the others do not.
pub async fn first_held(hold: &Hold) -> FakeServer {
    let (hold, answers) = (hold.clone(), AtomicUsize::new(0));
    FakeServer::start(move |request| {
        let half = chunk(r#"{"content":"hi"}"#);
        match request.method.as_str() {
            "GET" => models(),
            _ if answers.fetch_add(1, Ordering::Relaxed) == 0 => Reply::sse(half).then_held(&hold, FINISH),
            _ => Reply::sse(format!("{half}{FINISH}")),
        }
    })
    .await
}

#[tokio::test]
async fn a_request_over_the_limit_is_refused_until_a_stream_ends() {
    let hold = Hold::new();
    let fake = first_held(&hold).await;
    let config = ServerConfig { max_in_flight: 1, max_waiting: 0, ..ServerConfig::default() };
    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), config).await;

    let first = server.chat(&streaming()).await;
    let refused = server.chat(&streaming()).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (429, &"1".parse().unwrap()));
    assert_eq!(refused.json::<Value>().await.unwrap()["error"]["code"], "queue_full");

    hold.release();
    assert!(first.text().await.unwrap().ends_with("data: [DONE]\n\n"));
    assert_eq!(server.chat(&streaming()).await.status(), 200);
}

#[tokio::test]
async fn a_request_waits_no_longer_than_the_timeout() {
    let hold = Hold::new();
    let fake = first_held(&hold).await;
    let queue_timeout = Duration::from_millis(20);
    let config = ServerConfig { max_in_flight: 1, queue_timeout, ..ServerConfig::default() };
    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), config).await;

    let _first = server.chat(&streaming()).await;
    let refused = server.chat(&streaming()).await;
    assert_eq!((refused.status().as_u16(), &refused.headers()["retry-after"]), (503, &"5".parse().unwrap()));
    let error = &refused.json::<Value>().await.unwrap()["error"];
    assert_eq!(
        (error["code"].as_str(), error["message"].as_str()),
        (
            Some("queue_timeout"),
            Some(
                "no engine slot became free within 0.02 s. Try again later, or raise [server] max_in_flight or queue_timeout"
            )
        )
    );
}

#[tokio::test]
async fn a_client_that_disconnects_frees_its_slot() {
    let hold = Hold::new();
    let fake = first_held(&hold).await;
    let config = ServerConfig { max_in_flight: 1, max_waiting: 1, ..ServerConfig::default() };
    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), config).await;

    let first = server.chat(&streaming()).await;
    drop(first);
    let second =
        tokio::time::timeout(WAIT_LIMIT, server.chat(&streaming())).await.expect("room for the second");
    assert!(second.text().await.unwrap().ends_with("data: [DONE]\n\n"));
}
