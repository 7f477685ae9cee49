//! The legacy `functions` and `function_call`, answered in the same format.

use std::sync::Arc;

use hob_core::{Delta, Engine, FinishReason, Message, ToolCallDelta, ToolChoice};
use hob_testkit::ScriptedEngine;
use serde_json::{Value, json};

use crate::admin::openapi::{assert_fits, document_of};
use crate::client::{asking, completion, events};
use crate::support::TestServer;

/// Calls two functions, the first in two pieces.
async fn calling() -> (TestServer, Arc<ScriptedEngine>) {
    let engine = Arc::new(ScriptedEngine::new(|_| {
        let piece = |index, id: Option<&str>, arguments: &str| {
            Ok(Delta::ToolCall(ToolCallDelta {
                choice: 0,
                index,
                id: id.map(str::to_owned),
                name: id.map(|_| "weather".to_owned()),
                arguments: arguments.to_owned(),
            }))
        };
        vec![
            piece(0, Some("c1"), "{\"city\":"),
            piece(0, None, "\"Graz\"}"),
            piece(1, Some("c2"), "{}"),
            Ok(Delta::Finish { choice: 0, reason: FinishReason::ToolCalls }),
            Ok(Delta::Done { usage: None }),
        ]
    }));
    (TestServer::start(Arc::clone(&engine) as Arc<dyn Engine>).await, engine)
}

fn functions() -> Value {
    json!([{ "name": "weather", "parameters": { "type": "object" } }])
}

#[tokio::test]
async fn a_complete_answer_has_the_call_in_the_format_of_the_request() {
    let (server, engine) = calling().await;
    let document = document_of(&server).await;
    let request = asking(json!({
        "functions": functions(),
        "function_call": { "name": "weather" },
        "messages": [
            { "role": "user", "content": "Weather?" },
            { "role": "assistant", "content": null, "function_call": { "name": "weather", "arguments": "{}" } },
            { "role": "function", "name": "weather", "content": "Where?" },
        ],
    }));
    assert_fits(&document, "ChatRequest", &request);
    let answer = completion(server.chat(&request).await).await;
    let expected = json!({
        "index": 0,
        "message": {
            "role": "assistant",
            "content": "",
            "tool_calls": null,
            "function_call": { "name": "weather", "arguments": "{\"city\":\"Graz\"}" },
        },
        "finish_reason": "function_call",
    });
    assert_eq!(answer["choices"], json!([expected]));
    let asked = engine.requests().remove(0);
    assert_eq!(asked.tool_choice, Some(ToolChoice::Function("weather".into())));
    assert_eq!(asked.messages[2], Message::tool_result("function_call_1", "Where?"));
    assert_eq!(asked.messages[1].tool_calls[0].id, "function_call_1");
}

#[tokio::test]
async fn a_stream_has_the_call_in_the_format_of_the_request() {
    let (server, _engine) = calling().await;
    let document = document_of(&server).await;
    let text = events(server.chat(&asking(json!({ "functions": functions(), "stream": true }))).await).await;
    let chunks: Vec<Value> = text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .filter_map(|chunk| serde_json::from_str(chunk).ok())
        .collect();
    let deltas: Vec<(&Value, &Value)> = chunks
        .iter()
        .map(|chunk| (&chunk["choices"][0]["delta"], &chunk["choices"][0]["finish_reason"]))
        .collect();
    assert_eq!(
        deltas,
        [
            (&json!({ "role": "assistant" }), &Value::Null),
            (&json!({ "function_call": { "name": "weather", "arguments": "{\"city\":" } }), &Value::Null),
            (&json!({ "function_call": { "arguments": "\"Graz\"}" } }), &Value::Null),
            (&json!({}), &json!("function_call")),
        ]
    );
    assert!(text.ends_with("data: [DONE]\n\n"));
    for chunk in &chunks {
        assert_fits(&document, "ChatCompletionChunk", chunk);
    }
}

#[tokio::test]
async fn a_request_with_tools_is_answered_with_tool_calls() {
    let (server, _engine) = calling().await;
    let request = asking(json!({ "tools": [{ "function": { "name": "weather" } }] }));
    let answer = completion(server.chat(&request).await).await;
    assert_eq!(answer["choices"][0]["message"]["tool_calls"].as_array().unwrap().len(), 2);
    assert_eq!(answer["choices"][0]["message"].get("function_call"), None);
    assert_eq!(answer["choices"][0]["finish_reason"], "tool_calls");
}

#[tokio::test]
async fn ignored_fields_are_named_on_complete_answers_and_streams() {
    let server = TestServer::start(Arc::new(ScriptedEngine::saying(&["hi"]))).await;
    for stream in [false, true] {
        let options = json!({ "include_obfuscation": true, "größe\n": 1 });
        let response = server.chat(&asking(json!({ "stream": stream, "stream_options": options }))).await;
        assert_eq!(response.status(), 200);
        let named: Vec<_> = response.headers().get_all("x-hob-warning").iter().collect();
        assert_eq!(named, ["ignored=stream_options.include_obfuscation", "ignored=stream_options.gr??e?"]);
    }
}
