//! Slow, silent and unusual clients, and how long the server waits for them.

use std::time::Duration;

use hob_config::ServerConfig;
use hob_engines::Style;
use hob_testkit::{FakeServer, Hold, Reply};
use serde_json::json;

use super::concurrency_limit::{first_held, streaming};
use crate::client::{RawConnection, asking, chunk, post_chat};
use crate::fixtures::scripted;
use crate::support::{TestServer, WAIT_LIMIT, engine_at, models};

#[tokio::test]
async fn a_request_head_that_never_ends_times_out() {
    let header_timeout = Duration::from_millis(50);
    let server = scripted(ServerConfig { header_timeout, ..ServerConfig::default() }).await;
    for beginning in ["", "POST /v1/chat/completions HTTP/1.1\r\nhost: localhost\r\nx-slow: "] {
        let mut raw = RawConnection::connect(&server).await;
        raw.send(beginning).await;
        assert_eq!(raw.rest().await, "");
    }
}

#[tokio::test]
async fn an_idle_connection_is_closed() {
    let mut header_timeout = Duration::from_secs(1);
    loop {
        let server = scripted(ServerConfig { header_timeout, ..ServerConfig::default() }).await;
        let mut raw = RawConnection::connect(&server).await;
        raw.send_what_is_taken(b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n").await;
        let answer = raw.rest().await;
        // On a busy machine the time may be up before the request arrives.
        if !answer.is_empty() {
            assert!(answer.ends_with(r#"{"status":"ok"}"#), "{answer}");
            return;
        }
        header_timeout *= 2;
    }
}

#[tokio::test]
async fn a_stream_may_take_longer_than_the_head_timeout() {
    let mut short = Duration::from_secs(1);
    loop {
        let hold = Hold::new();
        let fake = first_held(&hold).await;
        let config = ServerConfig { header_timeout: short, body_timeout: short, ..ServerConfig::default() };
        let server = TestServer::start_with(engine_at(&fake, Style::VLLM), config).await;
        let mut slow = RawConnection::connect(&server).await;
        slow.send_what_is_taken(post_chat("HTTP/1.1", &streaming()).as_bytes()).await;
        // On a busy machine the time may be up before the request arrives.
        let content = r#""hi""#;
        if slow.until_or_closed(content).await.contains(content) {
            // A second connection reaches the same timeout while the stream is silent.
            assert_eq!(RawConnection::connect(&server).await.rest().await, "");
            hold.release();
            slow.until("[DONE]").await;
            return;
        }
        short *= 2;
    }
}

#[tokio::test]
async fn a_keep_alive_client_that_closes_its_sending_side_is_disconnected() {
    let fake = first_held(&Hold::new()).await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let mut raw = RawConnection::connect(&server).await;
    raw.send_chat(&streaming()).await;
    raw.until("hi").await;
    raw.half_close().await;
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
    assert!(!raw.rest().await.contains("[DONE]"));
}

#[tokio::test]
async fn an_http_1_0_request_gets_an_http_1_0_answer() {
    let server = scripted(ServerConfig::default()).await;

    let mut raw = RawConnection::connect(&server).await;
    raw.send(post_chat("HTTP/1.0", &asking(json!({})))).await;
    let whole = raw.rest().await;
    assert!(whole.starts_with("HTTP/1.0 200 OK\r\n"), "{whole}");
    assert!(whole.contains("content-length: "), "{whole}");
    assert!(whole.ends_with('}'), "{whole}");

    let mut raw = RawConnection::connect(&server).await;
    raw.send(post_chat("HTTP/1.0", &streaming())).await;
    let stream = raw.rest().await;
    assert!(stream.starts_with("HTTP/1.0 200 OK\r\n"), "{stream}");
    assert!(!stream.contains("transfer-encoding"), "{stream}");
    assert!(!stream.contains("keep-alive"), "only its end ends it: {stream}");
    assert!(stream.ends_with("}\n\ndata: [DONE]\n\n"), "{stream}");

    let mut raw = RawConnection::connect(&server).await;
    raw.send("GET /health HTTP/1.0\r\n\r\n").await;
    assert!(raw.rest().await.ends_with(r#"{"status":"ok"}"#));
}

#[tokio::test]
async fn pipelined_requests_are_answered_in_order() {
    let server = scripted(ServerConfig::default()).await;
    let mut raw = RawConnection::connect(&server).await;
    let ahead = [
        post_chat("HTTP/1.1", &streaming()),
        "GET /nothing HTTP/1.1\r\nhost: localhost\r\n\r\n".to_owned(),
        post_chat("HTTP/1.1", &asking(json!({}))),
        "GET /health HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n".to_owned(),
    ];
    raw.send(ahead.concat()).await;
    let answers = raw.rest().await;
    let mut rest = answers.as_str();
    for mark in ["[DONE]", "/nothing does not exist", "\"chat.completion\"", r#"{"status":"ok"}"#] {
        let (_, after) = rest.split_once(mark).unwrap_or_else(|| panic!("no {mark} in {rest}"));
        rest = after;
    }
    assert_eq!(rest, "");
}

#[tokio::test]
async fn a_request_that_is_not_http_is_refused_and_others_are_served() {
    let server = scripted(ServerConfig::default()).await;
    let long_path = format!("GET /{} HTTP/1.1\r\nhost: localhost\r\n\r\n", "x".repeat(100_000));
    let long_head = format!("GET / HTTP/1.1\r\nx: {}\r\n\r\n", "x".repeat(1_000_000));
    let many_heads = format!("GET / HTTP/1.1\r\n{}\r\n", "x: y\r\n".repeat(1000));
    let table: [(&[u8], &str); 6] = [
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 a TLS hello\r\n\r\n", "HTTP/1.1 400 "),
        (b"GET / HTTP/9.9\r\n\r\n", "HTTP/1.1 400 "),
        (b"POST / HTTP/1.1\r\ncontent-length: -1\r\n\r\n", "HTTP/1.1 400 "),
        (long_path.as_bytes(), "HTTP/1.1 414 "),
        (long_head.as_bytes(), "HTTP/1.1 431 "),
        (many_heads.as_bytes(), "HTTP/1.1 431 "),
    ];
    for (garbage, expected) in table {
        let mut raw = RawConnection::connect(&server).await;
        raw.send_what_is_taken(garbage).await;
        let answer = raw.rest().await;
        let shown = String::from_utf8_lossy(&garbage[..garbage.len().min(40)]).into_owned();
        assert!(answer.starts_with(expected), "{shown:?} → {answer:?}");
    }
    assert_eq!(server.chat(&asking(json!({}))).await.status(), 200);
}

#[tokio::test]
async fn a_client_that_reads_nothing_is_disconnected_and_its_engine_request_cancelled() {
    // More than fits into the buffers of both connections, so that the server waits for the client.
    let piece = chunk(&format!(r#"{{"content":"{}"}}"#, "x".repeat(64 << 10)));
    let endless = Reply::sse(piece.repeat(48 * 16)).in_packets_of(piece.len());
    let fake = FakeServer::start(move |request| match request.method.as_str() {
        "GET" => models(),
        _ => endless.clone(),
    })
    .await;
    let write_timeout = Duration::from_millis(100);
    let config = ServerConfig { write_timeout, ..ServerConfig::default() };
    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), config).await;
    let mut deaf = RawConnection::connect(&server).await;
    deaf.send_chat(&streaming()).await;
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
    assert!(!deaf.rest().await.contains("[DONE]"));
}
