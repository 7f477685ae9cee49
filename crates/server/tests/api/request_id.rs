//! `x-request-id`: the id of a request in its answer, in the log and in the trace.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_core::{Delta, EngineError};
use hob_testkit::{CapturedLog, ScriptedEngine};
use reqwest::Response;
use serde_json::json;

use crate::client::{RawConnection, asking};
use crate::support::TestServer;

fn id_of(answer: &Response) -> String {
    answer.headers()["x-request-id"].to_str().unwrap().to_owned()
}

#[tokio::test]
async fn every_answer_has_its_own_request_id() {
    let cors_origins = vec!["https://app.example.org".to_owned()];
    let config = ServerConfig { cors_origins, ..ServerConfig::default() };
    let server = TestServer::start_with(Arc::new(ScriptedEngine::saying(&["hi"])), config).await;
    let get = async |path: &str| server.client.get(server.url(path)).send().await.unwrap();
    let preflight = server
        .client
        .request(reqwest::Method::OPTIONS, server.url("/v1/models"))
        .header("origin", "https://app.example.org")
        .header("access-control-request-method", "POST");
    let answers = [
        server.chat(&asking(json!({}))).await,
        server.chat(&asking(json!({ "stream": true }))).await,
        server.chat(&json!({})).await,
        get("/").await,
        get("/health").await,
        get("/nothing").await,
        server.client.post(server.url("/health")).send().await.unwrap(),
        server.client.get(server.url("/health")).header("host", "evil.example").send().await.unwrap(),
        preflight.send().await.unwrap(),
    ];
    let mut ids: Vec<String> = answers.iter().map(id_of).collect();
    assert!(ids.iter().all(|id| id.starts_with("req_") && id.len() == 28), "{ids:?}");
    ids.sort();
    ids.dedup();
    assert_eq!(ids.len(), answers.len(), "no two are alike");
}

#[tokio::test]
async fn a_valid_request_id_of_the_caller_is_kept() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    let named = |id: String| server.client.get(server.url("/health")).header("x-request-id", id).send();
    assert_eq!(id_of(&named("order-66/a".to_owned()).await.unwrap()), "order-66/a");
    let longest = "x".repeat(128);
    assert_eq!(id_of(&named(longest.clone()).await.unwrap()), longest);
    for odd in ["two words".to_owned(), "x".repeat(129), String::new()] {
        assert!(id_of(&named(odd).await.unwrap()).starts_with("req_"));
    }
    let mut raw = RawConnection::connect(&server).await;
    raw.send("GET /health HTTP/1.0\r\nx-request-id: caf\u{e9}\r\n\r\n").await;
    assert!(raw.rest().await.contains("x-request-id: req_"));
}

#[tokio::test]
async fn log_lines_have_the_request_id_and_refusals_are_logged() {
    // Of the process, because the server has threads of its own.
    let log = CapturedLog::of_process();
    let engine = ScriptedEngine::new(|_| {
        let (engine, reason) = ("vllm".to_owned(), "gone".to_owned());
        vec![Ok(Delta::text("It")), Err(EngineError::Interrupted { engine, reason })]
    });
    let api_key = Some("s3cret".to_owned().into());
    let config = ServerConfig { api_key, ..ServerConfig::default() };
    let server = TestServer::start_with(Arc::new(engine), config).await;
    let streaming = server.client.post(server.url("/v1/chat/completions")).bearer_auth("s3cret");
    let streaming = streaming.header("x-request-id", "in-a-stream").json(&asking(json!({ "stream": true })));
    streaming.send().await.unwrap().text().await.unwrap();
    let lines = log.lines("request_id=in-a-stream");
    assert!(lines.len() == 1 && lines[0].contains("stream broke off"), "{lines:?}");

    let refused = server.client.get(server.url("/v1/models")).header("x-request-id", "no-key").send();
    assert_eq!(refused.await.unwrap().status(), 401);
    let foreign = server.client.get(server.url("/health")).header("x-request-id", "rebound");
    assert_eq!(foreign.header("host", "evil.example").send().await.unwrap().status(), 403);
    for (name, status) in [("no-key", "401"), ("rebound", "403")] {
        let lines = log.lines(&format!("request_id={name}"));
        assert_eq!(lines.len(), 1, "{lines:?}");
        assert!(
            lines[0].contains("a request was refused") && lines[0].contains("peer=127.0.0.1"),
            "{lines:?}"
        );
        assert!(lines[0].contains(&format!("status={status}")), "{lines:?}");
    }
    assert!(!log.lines("s3cret").iter().any(|line| !line.is_empty()), "no key is ever logged");

    // Many refusals write few lines.
    for _ in 0..100 {
        let flood = server.client.get(server.url("/v1/models")).header("x-request-id", "flood");
        assert_eq!(flood.send().await.unwrap().status(), 401);
    }
    let lines = log.lines("request_id=flood");
    assert!(lines.len() <= 10, "{}", lines.len());
}
