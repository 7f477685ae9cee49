//! Clients that close their sending side. TCP has one signal for "I have sent everything" and "I am gone"; the difference is
//! whether the client said that this request is its last.

use std::time::Duration;

use hob_config::ServerConfig;
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply};
use serde_json::{Value, json};

use crate::client::{RawConnection, asking, chunk, post_chat};
use crate::fixtures::scripted;
use crate::support::{FINISH, TestServer, WAIT_LIMIT, engine_at, models};

/// Requests that announce that no other request follows.
fn last_requests(body: &Value) -> [String; 2] {
    let close = post_chat("HTTP/1.1", body).replacen("\r\n", "\r\nconnection: close\r\n", 1);
    [post_chat("HTTP/1.0", body), close]
}

/// An engine whose answers pause in the middle until `hold` is released.
async fn held(hold: &Hold, stream: bool) -> FakeServer {
    let hold = hold.clone();
    let choice = json!({ "index": 0, "message": { "role": "assistant", "content": "all of it" }, "finish_reason": "stop" });
    let whole = json!({ "choices": [choice] }).to_string();
    let (half, rest) = whole.split_at(whole.len() / 2);
    let (half, rest) = (half.to_owned(), rest.to_owned());
    FakeServer::start(move |request| match (request.method.as_str(), stream) {
        ("GET", _) => models(),
        (_, true) => Reply::sse(chunk(r#"{"content":"hi"}"#)).then_held(&hold, FINISH),
        (_, false) => Reply::json(200, half.clone()).then_held(&hold, rest.clone()),
    })
    .await
}

#[tokio::test]
async fn a_half_closed_client_still_gets_its_answer() {
    for stream in [false, true] {
        for request in last_requests(&asking(json!({ "stream": stream }))) {
            let hold = Hold::new();
            let fake = held(&hold, stream).await;
            let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
            let mut raw = RawConnection::connect(&server).await;
            raw.send(&request).await;
            raw.half_close().await;
            let asked = async {
                while !fake.requests().iter().any(|request| request.method == "POST") {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
            };
            tokio::time::timeout(WAIT_LIMIT, asked).await.expect("the engine is asked");
            hold.release();
            let answer = raw.rest().await;
            let end = if stream { "[DONE]" } else { "all of it" };
            assert!(answer.contains(" 200 OK\r\n") && answer.contains(end), "{request:?} → {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_half_closed_client_is_answered_however_its_bytes_arrive() {
    let server = scripted(ServerConfig::default()).await;
    for request in last_requests(&asking(json!({}))) {
        for cut in [1, request.len() / 2, request.len() - 1] {
            let mut raw = RawConnection::connect(&server).await;
            raw.send(&request[..cut]).await;
            tokio::task::yield_now().await;
            raw.send(&request[cut..]).await;
            raw.half_close().await;
            let answer = raw.rest().await;
            assert!(answer.contains(" 200 OK\r\n") && answer.ends_with('}'), "{cut}: {answer:?}");
        }
    }
}

#[tokio::test]
async fn a_truncated_body_is_noticed_immediately() {
    let server = scripted(ServerConfig::default()).await;
    for request in last_requests(&asking(json!({}))) {
        let mut raw = RawConnection::connect(&server).await;
        raw.send(&request[..request.len() - 1]).await;
        raw.half_close().await;
        // Much earlier than the timeout of the body, which is three times as long as this test waits.
        let answer = raw.rest().await;
        assert!(answer.contains(" 400 Bad Request\r\n") && answer.contains("is incomplete"), "{answer:?}");
    }
}

#[tokio::test]
async fn a_disconnected_client_is_noticed_at_the_next_write() {
    for request in last_requests(&asking(json!({ "stream": true }))) {
        // More than fits into the buffers of all sockets.
        let piece = chunk(&format!(r#"{{"content":"{}"}}"#, "x".repeat(64 << 10)));
        let endless = Reply::sse(piece.repeat(48 * 16)).in_packets_of(piece.len());
        let fake = FakeServer::start(move |request| match request.method.as_str() {
            "GET" => models(),
            _ => endless.clone(),
        })
        .await;
        let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
        let mut raw = RawConnection::connect(&server).await;
        raw.send(&request).await;
        raw.until("data: ").await;
        drop(raw);
        tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
    }
}
