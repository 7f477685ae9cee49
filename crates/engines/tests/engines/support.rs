//! What the tests of several engines share.

use std::time::Duration;

use futures::StreamExt;
use hob_core::{
    Delta, EngineError, GenerateRequest, GenerationStream, MaxTokens, Message, Role, Temperature, ToolCall,
    ToolDefinition,
};
use hob_engines::{Endpoint, EndpointOptions};
use hob_testkit::{FakeServer, free_port};
use serde_json::{Value, json};

pub const CAPITAL: &str = "What is the capital of France? Answer in one sentence.";

pub fn endpoint(engine: &str, server: &FakeServer) -> Endpoint {
    Endpoint::new(EndpointOptions::new(engine, server.url())).unwrap()
}

/// An endpoint with a short timeout that a busy machine does not exceed.
pub fn hasty_endpoint(engine: &str, server: &FakeServer) -> Endpoint {
    Endpoint::new(EndpointOptions {
        timeout: Duration::from_secs(1),
        ..EndpointOptions::new(engine, server.url())
    })
    .unwrap()
}

/// An endpoint without a listening server.
pub async fn closed_endpoint(engine: &str) -> Endpoint {
    Endpoint::new(EndpointOptions::new(engine, format!("http://127.0.0.1:{}", free_port()))).unwrap()
}

/// A request as in the recordings: temperature zero, and at most this many tokens.
pub fn asking(text: &str, max_tokens: i64) -> GenerateRequest {
    GenerateRequest {
        model: "smollm2".into(),
        messages: vec![Message::new(Role::User, text)],
        temperature: Some(Temperature::new(0.0).unwrap()),
        max_tokens: Some(MaxTokens::new(max_tokens).unwrap()),
        ..GenerateRequest::default()
    }
}

/// The conversation of the recordings about the weather in three cities, with its tool.
pub fn asking_for_the_weather(max_tokens: i64) -> GenerateRequest {
    let mut messages = Vec::new();
    for (id, city, degrees) in [("c1", "London", 11), ("c2", "Rome", 22)] {
        messages.push(Message::new(Role::User, format!("What is the weather in {city}?")));
        messages.push(Message {
            tool_calls: vec![ToolCall {
                id: id.into(),
                name: "get_weather".into(),
                arguments: format!("{{\"city\": \"{city}\"}}"),
            }],
            ..Message::new(Role::Assistant, "")
        });
        messages.push(Message::tool_result(id, format!("{{\"temp_c\": {degrees}}}")));
        messages.push(Message::new(Role::Assistant, format!("It is {degrees} degrees in {city}.")));
    }
    messages.push(Message::new(Role::User, "What is the weather in Paris?"));
    GenerateRequest {
        messages,
        tools: vec![ToolDefinition {
            name: "get_weather".into(),
            description: Some("Get the current weather in a city".into()),
            parameters: Some(json!({
                "type": "object",
                "properties": { "city": { "type": "string" } },
                "required": ["city"],
            })),
            strict: None,
        }],
        ..asking("", max_tokens)
    }
}

/// Everything that a stream returns until it ends.
pub async fn all(mut stream: GenerationStream) -> (Vec<Delta>, Option<EngineError>) {
    let mut deltas = Vec::new();
    while let Some(delta) = stream.deltas.next().await {
        match delta {
            Ok(delta) => deltas.push(delta),
            Err(error) => return (deltas, Some(error)),
        }
    }
    (deltas, None)
}

/// Normalizes a body for comparison: a number with or without a decimal point is the same.
pub fn body(json: &str) -> Value {
    floats(serde_json::from_str(json).unwrap())
}

fn floats(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(floats).collect(),
        Value::Object(fields) => fields.into_iter().map(|(name, value)| (name, floats(value))).collect(),
        other => other,
    }
}
