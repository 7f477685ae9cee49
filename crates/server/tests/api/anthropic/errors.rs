//! Errors have Anthropic's shape and its types, wherever they come from. Hostile bodies are refused and never crash anything.

use std::sync::Arc;

use hob_config::ServerConfig;
use hob_core::EngineError;
use hob_engines::Style;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use reqwest::{Method, Response};
use serde_json::{Value, json};

use super::{asking, create, post, saying_hello};
use crate::fixtures::scripted;
use crate::support::{TestServer, engine_at, models};

/// Status, type and message, once the body is known to have exactly the documented shape.
async fn error(response: Response) -> (u16, String, String) {
    let status = response.status().as_u16();
    assert_eq!(response.headers()["content-type"], "application/json");
    assert_eq!(response.headers()["request-id"], response.headers()["x-request-id"]);
    let body: Value = response.json().await.unwrap();
    let (kind, message) = (&body["error"]["type"], &body["error"]["message"]);
    assert_eq!(body, json!({ "type": "error", "error": { "type": kind, "message": message } }));
    (status, kind.as_str().unwrap().to_owned(), message.as_str().unwrap().to_owned())
}

#[tokio::test]
async fn an_error_names_the_wrong_field() {
    let (_engine, server) = saying_hello().await;
    let body = asking(
        json!({ "messages": [{ "role": "user", "content": [{ "type": "text", "text": "a" }, { "type": "poem" }] }] }),
    );
    let (status, kind, message) = error(create(&server, &body).await).await;
    assert_eq!((status, kind.as_str()), (400, "invalid_request_error"));
    assert!(
        message.starts_with("messages[0].content[1].type: 'poem' is not a supported type of block."),
        "{message}"
    );
}

#[tokio::test]
async fn an_image_that_the_model_cannot_read_is_named_as_this_api_does() {
    let engine = ScriptedEngine::new(|_| {
        vec![Err(EngineError::Unsupported {
            engine: "scripted".into(),
            field: "image_url".into(),
            hint: None,
        })]
    });
    let server = TestServer::start(Arc::new(engine)).await;
    let (status, _, message) = error(create(&server, &asking(json!({}))).await).await;
    assert_eq!((status, message.as_str()), (400, "image: scripted does not support 'image'"));
}

#[tokio::test]
async fn every_way_to_fail_has_the_type_that_is_documented() {
    let (_engine, server) = saying_hello().await;
    let request = |method: Method, path: &str| server.client.request(method, server.url(path));
    let json_type = ("content-type", "application/json");
    for (request, status, kind) in [
        (request(Method::GET, "/v1/messages"), 405, "invalid_request_error"),
        (request(Method::POST, "/v1/messages/batches"), 404, "not_found_error"),
        (request(Method::POST, "/v1/messages").body("{}"), 415, "invalid_request_error"),
        (
            request(Method::POST, "/v1/messages").header(json_type.0, json_type.1).body("{"),
            400,
            "invalid_request_error",
        ),
        (
            request(Method::POST, "/v1/messages").json(&asking(json!({ "model": "nope" }))),
            404,
            "not_found_error",
        ),
        (request(Method::POST, "/v1/messages/count_tokens").json(&json!({})), 400, "invalid_request_error"),
        (
            request(Method::POST, "/v1/messages").header("host", "evil.example").json(&asking(json!({}))),
            403,
            "permission_error",
        ),
    ] {
        let (found, found_kind, message) = error(request.send().await.unwrap()).await;
        assert_eq!((found, found_kind.as_str()), (status, kind), "{message}");
    }
    let small = scripted(ServerConfig { max_body_mb: 1, ..ServerConfig::default() }).await;
    let large = asking(json!({ "system": "x".repeat(2 << 20) }));
    let (status, kind, _) = error(create(&small, &large).await).await;
    assert_eq!((status, kind.as_str()), (413, "request_too_large"));
}

#[tokio::test]
async fn an_engines_refusal_is_passed_on_in_this_shape() {
    for (reply, status, kind, part) in [
        (
            Reply::json(400, r#"{"error":{"message":"top_p is odd"}}"#),
            400,
            "invalid_request_error",
            "top_p is odd",
        ),
        (Reply::json(500, r#"{"error":{"message":"CUDA"}}"#), 502, "api_error", "CUDA"),
        (Reply::json(503, r#"{"error":{"message":"loading"}}"#), 502, "api_error", "loading"),
        (
            Reply::json(
                400,
                r#"{"error":{"message":"This model's maximum context length is 2048 tokens. However, your prompt contains at least 2049 input tokens"}}"#,
            ),
            400,
            "invalid_request_error",
            "prompt is too long: 2049 tokens > 2048 maximum",
        ),
    ] {
        let fake = FakeServer::start(move |request| match request.method.as_str() {
            "GET" => models(),
            _ => reply.clone(),
        })
        .await;
        let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
        let (found, found_kind, message) = error(create(&server, &asking(json!({}))).await).await;
        assert_eq!((found, found_kind.as_str()), (status, kind), "{message}");
        assert!(message.contains(part), "{message}");
    }
}

#[tokio::test]
async fn hostile_bodies_are_refused() {
    let (engine, server) = saying_hello().await;
    let mut deep_content = json!([{ "type": "text", "text": "a" }]);
    for _ in 0..40 {
        deep_content = json!([{ "type": "tool_result", "tool_use_id": "t", "content": deep_content }]);
    }
    let mut deep_document = json!([{ "type": "text", "text": "a" }]);
    for _ in 0..30 {
        deep_document =
            json!([{ "type": "document", "source": { "type": "content", "content": deep_document } }]);
    }
    let many_blocks = vec![json!({ "type": "tool_use", "id": "t", "name": "f", "input": {} }); 2_000];
    for (fields, status) in [
        (json!({ "messages": [{ "role": "user", "content": deep_content }] }), 400),
        (json!({ "messages": [{ "role": "user", "content": deep_document }] }), 200),
        (json!({ "messages": vec![json!({ "role": "user", "content": "a" }); 30_000] }), 400),
        (
            json!({ "messages": [{ "role": "user", "content": "a" }, { "role": "assistant", "content": many_blocks }] }),
            400,
        ),
        (json!({ "messages": [{ "role": "user", "content": [] }] }), 200),
        (json!({ "messages": [{ "role": "user", "content": "" }] }), 200),
        (json!({ "messages": [{ "role": "assistant", "content": [] }] }), 200),
        (json!({ "messages": { "role": "user" } }), 400),
        (json!({ "system": { "type": "text" } }), 400),
        (json!({ "tools": {} }), 400),
        (json!({ "tools": [null] }), 400),
        (json!({ "tools": [{ "name": "f", "input_schema": { "$ref": "#" } }] }), 400),
        (json!({ "stop_sequences": [1] }), 400),
        (json!({ "thinking": "yes" }), 400),
        (json!({ "metadata": "ann" }), 400),
        (json!({ "stream": "yes" }), 400),
        (json!({ "max_tokens": 1e300 }), 400),
        (json!({ "max_tokens": -1 }), 400),
        (json!({ "model": "" }), 400),
    ] {
        let body = asking(fields);
        for path in ["/v1/messages", "/v1/messages/count_tokens"] {
            let found = post(&server, path, &body).await.status();
            assert_eq!(found, status, "{path}: {}", body.to_string().chars().take(200).collect::<String>());
        }
    }
    assert!(!engine.requests().is_empty(), "the server still answers");
}
