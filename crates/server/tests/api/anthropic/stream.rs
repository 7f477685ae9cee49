//! Streamed answers: the documented sequence of events, broken engines, and clients that hang up.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Delta, EngineError};
use hob_engines::Style;
use hob_testkit::{FakeServer, Reply, ScriptedEngine};
use serde_json::{Value, json};

use super::{asking, create, events, saying_hello, serving};
use crate::client::chunk;
use crate::fixtures::{calculating, loopback_config, parts};
use crate::support::{FINISH, TestServer, WAIT_LIMIT, engine_at, models};

fn streaming(fields: Value) -> Value {
    let mut body = asking(fields);
    body["stream"] = json!(true);
    body
}

fn kinds(events: &[Value]) -> Vec<&str> {
    events.iter().map(|event| event["type"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn a_stream_has_the_documented_events() {
    let (_engine, server) = saying_hello().await;
    let response = create(&server, &streaming(json!({}))).await;
    assert_eq!(response.status(), 200);
    assert_eq!(response.headers()["cache-control"], "no-cache");
    assert!(response.headers().contains_key("request-id"));
    let counts = |input: u64, output: u64| json!({ "input_tokens": input, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": output });
    assert_eq!(
        events(response).await,
        [
            json!({ "type": "message_start", "message": {
                "id": "[id]", "type": "message", "role": "assistant", "model": "m", "content": [],
                "stop_reason": null, "stop_sequence": null, "usage": counts(0, 0),
            } }),
            json!({ "type": "ping" }),
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "Hel" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "text_delta", "text": "lo" } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "message_delta", "delta": { "stop_reason": "end_turn", "stop_sequence": null }, "usage": counts(3, 2) }),
            json!({ "type": "message_stop" }),
        ]
    );
}

#[tokio::test]
async fn every_message_has_an_id_of_its_own() {
    let (_engine, server) = saying_hello().await;
    let mut ids = Vec::new();
    for _ in 0..2 {
        let text = create(&server, &streaming(json!({}))).await.text().await.unwrap();
        ids.push(text.split("\"id\":\"").nth(1).unwrap().split('"').next().unwrap().to_owned());
    }
    assert_ne!(ids[0], ids[1]);
}

#[tokio::test]
async fn the_pieces_of_a_call_arrive_as_the_engine_sends_them() {
    let call = |call: &str| chunk(&format!(r#"{{"tool_calls":[{call}]}}"#));
    let body = [
        chunk(r#"{"reasoning_content":"hm"}"#),
        chunk(r#"{"content":"I look."}"#),
        call(r#"{"index":0,"id":"call_1","type":"function","function":{"name":"look","arguments":""}}"#),
        call(r#"{"index":0,"function":{"arguments":"{\"where\":"}}"#),
        call(r#"{"index":0,"function":{"arguments":"\"left\"}"}}"#),
        FINISH.replace("\"stop\"", "\"tool_calls\""),
    ]
    .concat();
    let fake = FakeServer::start(move |request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::sse(body.clone()),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let tools = json!([{ "name": "look", "input_schema": { "type": "object" } }]);
    let body = streaming(json!({ "tools": tools, "thinking": { "type": "enabled", "budget_tokens": 1024 } }));
    let written = events(create(&server, &body).await).await;
    let blocks = &written[2..written.len() - 2];
    assert_eq!(
        blocks,
        [
            json!({ "type": "content_block_start", "index": 0, "content_block": { "type": "thinking", "thinking": "", "signature": "" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "thinking_delta", "thinking": "hm" } }),
            json!({ "type": "content_block_delta", "index": 0, "delta": { "type": "signature_delta", "signature": "hob." } }),
            json!({ "type": "content_block_stop", "index": 0 }),
            json!({ "type": "content_block_start", "index": 1, "content_block": { "type": "text", "text": "" } }),
            json!({ "type": "content_block_delta", "index": 1, "delta": { "type": "text_delta", "text": "I look." } }),
            json!({ "type": "content_block_stop", "index": 1 }),
            json!({ "type": "content_block_start", "index": 2, "content_block": { "type": "tool_use", "id": "call_1", "name": "look", "input": {} } }),
            json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "input_json_delta", "partial_json": "{\"where\":" } }),
            json!({ "type": "content_block_delta", "index": 2, "delta": { "type": "input_json_delta", "partial_json": "\"left\"}" } }),
            json!({ "type": "content_block_stop", "index": 2 }),
        ]
    );
    assert_eq!(written[written.len() - 2]["delta"]["stop_reason"], "tool_use");
    let asked: Value = serde_json::from_slice(&fake.requests().last().unwrap().body).unwrap();
    assert_eq!(asked["reasoning_effort"], "low");
}

#[tokio::test]
async fn a_stream_that_breaks_ends_with_an_error_and_never_looks_complete() {
    let engine = Arc::new(ScriptedEngine::new(|_| {
        let reason = "cable".to_owned();
        vec![Ok(Delta::text("It")), Err(EngineError::Interrupted { engine: "vllm".to_owned(), reason })]
    }));
    let server = serving(&engine).await;
    let written = events(create(&server, &streaming(json!({}))).await).await;
    assert_eq!(
        kinds(&written),
        ["message_start", "ping", "content_block_start", "content_block_delta", "error"]
    );
    assert_eq!(
        written[4]["error"],
        json!({ "type": "api_error", "message": "vllm broke off its answer: cable" })
    );
}

#[tokio::test]
async fn trouble_before_the_first_piece_is_an_error_and_not_a_stream() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::json(429, r#"{"error":{"message":"slow down"}}"#),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let response = create(&server, &streaming(json!({}))).await;
    assert_eq!(response.status(), 429);
    let body: Value = response.json().await.unwrap();
    assert_eq!(body["error"]["type"], "rate_limit_error");
}

#[tokio::test]
async fn hanging_up_ends_the_engines_request() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::sse(chunk(r#"{"content":"hi"}"#)).then_silence(),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    let mut response = create(&server, &streaming(json!({}))).await;
    response.chunk().await.unwrap().expect("the stream has begun");
    drop(response);
    tokio::time::timeout(WAIT_LIMIT, fake.hung_up(1)).await.expect("the engine's request ends");
}

#[tokio::test]
async fn calls_that_an_engine_mixes_end_the_stream_and_the_engines_work() {
    let call = |call: &str| chunk(&format!(r#"{{"tool_calls":[{call}]}}"#));
    let begin = |index: u32| {
        call(&format!(
            r#"{{"index":{index},"id":"call_{index}","type":"function","function":{{"name":"look","arguments":"{{"}}}}"#
        ))
    };
    let body = [begin(0), begin(1), call(r#"{"index":0,"function":{"arguments":"}"}}"#)].concat();
    let fake = FakeServer::start(move |request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::sse(body.clone()).then_silence(),
    })
    .await;
    let server = TestServer::start(engine_at(&fake, Style::VLLM)).await;
    for (attempt, path) in ["/v1/messages", "/v1/responses"].into_iter().enumerate() {
        let mut body = streaming(json!({ "input": "hi", "store": false }));
        for field in ["messages", "max_tokens"].into_iter().filter(|_| path == "/v1/responses") {
            body.as_object_mut().unwrap().remove(field);
        }
        let text = tokio::time::timeout(WAIT_LIMIT, super::post(&server, path, &body).await.text()).await;
        let text = text.expect("the stream ends").unwrap();
        assert!(text.contains("it mixed the pieces of two tool calls"), "{path}: {text}");
        tokio::time::timeout(WAIT_LIMIT, fake.hung_up(attempt + 1)).await.expect("the engine's request ends");
    }
}

#[tokio::test]
async fn what_an_agent_does_is_a_comment_between_the_events() {
    let server = TestServer::start_system(parts(calculating()), loopback_config()).await;
    let body = streaming(json!({ "agent": "orchestrator" }));
    let text = create(&server, &body).await.text().await.unwrap();
    assert!(text.contains("\n: hob TOOL_CALL_START {"), "{text}");
    let said = events(create(&server, &body).await).await;
    let text: String = said.iter().filter_map(|event| event["delta"]["text"].as_str()).collect();
    assert_eq!((text.as_str(), said.last().unwrap()["type"].as_str()), ("It is 391.", Some("message_stop")));
}

#[tokio::test]
async fn a_server_that_stops_says_so_in_the_stream() {
    let fake = FakeServer::start(|request| match request.method.as_str() {
        "GET" => models(),
        _ => Reply::sse(chunk(r#"{"content":"hi"}"#)).then_silence(),
    })
    .await;
    let config = hob_config::ServerConfig { shutdown_grace: Duration::ZERO, ..Default::default() };
    let server = TestServer::start_with(engine_at(&fake, Style::VLLM), config).await;
    let mut response = create(&server, &streaming(json!({}))).await;
    let mut text = String::from_utf8(response.chunk().await.unwrap().unwrap().to_vec()).unwrap();
    server.shutdown.cancel();
    while let Ok(Some(piece)) = response.chunk().await {
        text.push_str(std::str::from_utf8(&piece).unwrap());
    }
    assert!(text.contains("event: error") && text.contains("overloaded_error"), "{text}");
    assert!(!text.contains("message_stop"), "{text}");
}
