//! What of a request reaches the engine.

use hob_core::{
    Content, ContentPart, GenerateRequest, Image, JsonSchema, MaxTokens, Message, ResponseFormat, Role,
    Sampling, Temperature, ToolCall, ToolDefinition,
};
use hob_testkit::ScriptedEngine;
use serde_json::{Map, Value, json};

use super::{post, server};

/// The smallest PNG.
const PNG: &str =
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// The request as an Ollama behind Hob gets it.
async fn reaching(path: &str, fields: Value) -> GenerateRequest {
    let mut body = json!({ "model": "m", "stream": false });
    body.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
    let (server, engine) = server(ScriptedEngine::saying(&["hi"]).called("ollama")).await;
    let response = post(&server, path, &body).await;
    assert_eq!(response.status(), 200, "{}", response.text().await.unwrap());
    engine.requests().remove(0)
}

fn question() -> Value {
    json!([{ "role": "user", "content": "hi" }])
}

fn fields(value: Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap()
}

#[tokio::test]
async fn options_become_sampling_and_the_rest_reaches_an_engine_that_knows_it() {
    let options = json!({
        "temperature": 0.2, "num_predict": 12.0, "top_p": 0.9, "seed": 7, "stop": ["a", ""], "presence_penalty": 0.5,
        "frequency_penalty": -0.5, "num_ctx": 4096.0, "repeat_penalty": 1.1, "top_k": 40, "use_mmap": true,
    });
    let request =
        reaching("/api/chat", json!({ "messages": question(), "options": options, "keep_alive": "5m" }))
            .await;
    assert_eq!(request.temperature, Temperature::new(0.2).ok());
    assert_eq!(request.max_tokens, MaxTokens::new(12).ok());
    let sampling = Sampling {
        top_p: Some(0.9),
        stop: vec!["a".into()],
        seed: Some(7),
        presence_penalty: Some(0.5),
        frequency_penalty: Some(-0.5),
        ..Sampling::default()
    };
    assert_eq!(request.sampling, sampling);
    let extra = fields(
        json!({ "num_ctx": 4096, "repeat_penalty": 1.1, "top_k": 40, "use_mmap": true, "keep_alive": "5m" }),
    );
    assert_eq!(request.extra, extra);
}

#[tokio::test]
async fn an_answer_has_no_limit_unless_the_caller_sets_one() {
    for length in [-1, -2, 0] {
        let request =
            reaching("/api/chat", json!({ "messages": question(), "options": { "num_predict": length } }))
                .await;
        assert_eq!(request.max_tokens(), None, "{length}");
    }
    let request = reaching("/api/chat", json!({ "messages": question(), "options": { "seed": -1 } })).await;
    assert_eq!((request.max_tokens(), request.sampling.seed), (None, None));
    assert_eq!(reaching("/api/chat", json!({ "messages": question() })).await.max_tokens(), None);
    assert_eq!(reaching("/api/generate", json!({ "prompt": "hi" })).await.max_tokens(), None);
    assert_eq!(reaching("/api/generate", json!({ "prompt": "hi", "raw": true })).await.max_tokens(), None);
}

#[tokio::test]
async fn a_format_is_json_or_a_schema() {
    let of = async |format: Value| {
        reaching("/api/chat", json!({ "messages": question(), "format": format })).await.response_format
    };
    assert_eq!(of(json!("")).await, ResponseFormat::Text);
    assert_eq!(of(json!(null)).await, ResponseFormat::Text);
    assert_eq!(of(json!("json")).await, ResponseFormat::JsonObject);
    let schema = json!({ "type": "object", "properties": { "city": { "type": "string" } } });
    let expected =
        JsonSchema { name: "answer".into(), description: None, schema: schema.clone(), strict: None };
    assert_eq!(of(schema).await, ResponseFormat::JsonSchema(expected));
}

#[tokio::test]
async fn thinking_is_an_effort() {
    for (think, effort) in [
        (json!(true), "medium"),
        (json!(false), "none"),
        (json!("low"), "low"),
        (json!("high"), "high"),
        (json!("max"), "high"),
    ] {
        let request = reaching("/api/chat", json!({ "messages": question(), "think": think })).await;
        assert_eq!(request.extra, fields(json!({ "reasoning_effort": effort })), "{think}");
    }
    assert!(reaching("/api/chat", json!({ "messages": question() })).await.extra.is_empty());
}

#[tokio::test]
async fn a_conversation_with_calls_gets_the_ids_that_other_engines_need() {
    let messages = json!([
        { "role": "System", "content": "Be brief." },
        { "role": "user", "content": "Weather in Rome and Paris, and the time?" },
        { "role": "assistant", "content": "", "thinking": "two cities", "tool_calls": [
            { "function": { "name": "weather", "arguments": { "city": "Rome" } } },
            { "function": { "name": "weather", "arguments": { "city": "Paris" } } },
            { "id": "own", "type": "function", "function": { "index": 2, "name": "now", "arguments": {} } },
        ] },
        { "role": "tool", "content": "noon", "tool_name": "now" },
        { "role": "tool", "content": "22", "tool_name": "weather" },
        { "role": "tool", "content": "11" },
        { "role": "tool", "content": "stray" },
    ]);
    let tools = json!([{ "type": "function", "function": { "name": "weather", "description": "d", "parameters": {} } }]);
    let request = reaching("/api/chat", json!({ "messages": messages, "tools": tools })).await;
    let call = |id: &str, name: &str, arguments: &str| ToolCall {
        id: id.into(),
        name: name.into(),
        arguments: arguments.into(),
    };
    let calls = Message {
        content: Content::Empty,
        tool_calls: vec![
            call("call_2_0", "weather", r#"{"city":"Rome"}"#),
            call("call_2_1", "weather", r#"{"city":"Paris"}"#),
            call("own", "now", "{}"),
        ],
        extra: fields(json!({ "reasoning_content": "two cities" })),
        ..Message::new(Role::Assistant, "")
    };
    let expected = [
        Message::new(Role::System, "Be brief."),
        Message::new(Role::User, "Weather in Rome and Paris, and the time?"),
        calls,
        Message::tool_result("own", "noon"),
        Message::tool_result("call_2_0", "22"),
        Message::tool_result("call_2_1", "11"),
        Message::new(Role::Tool, "stray"),
    ];
    assert_eq!(request.messages, expected);
    let tool = ToolDefinition {
        name: "weather".into(),
        description: Some("d".into()),
        parameters: Some(json!({})),
        strict: None,
    };
    assert_eq!(request.tools, [tool]);
}

#[tokio::test]
async fn images_get_the_type_that_their_bytes_have() {
    let image = |payload: &str, kind: &str| {
        ContentPart::Image(Image { url: format!("data:image/{kind};base64,{payload}"), detail: None })
    };
    let jpeg = "/9j/4AAQSkZJRgABAQAAAQABAAD/2wBD";
    let wrapped = format!("{}\n{}\r\n", &PNG[..40], &PNG[40..]);
    let whole = format!("data:image/x;base64,{jpeg}");
    let messages = json!([{ "role": "user", "content": "look", "images": [wrapped, jpeg, whole] }]);
    let request = reaching("/api/chat", json!({ "messages": messages })).await;
    let text = ContentPart::Text("look".into());
    let parts = vec![image(PNG, "png"), image(jpeg, "jpeg"), image(jpeg, "jpeg"), text];
    assert_eq!(request.messages, [Message::new(Role::User, Content::Parts(parts))]);

    let request = reaching("/api/generate", json!({ "prompt": "", "images": [PNG] })).await;
    assert_eq!(request.messages, [Message::new(Role::User, Content::Parts(vec![image(PNG, "png")]))]);
}

#[tokio::test]
async fn probabilities_are_asked_for_and_come_as_a_list() {
    let messages = question();
    let request =
        reaching("/api/chat", json!({ "messages": messages, "logprobs": true, "top_logprobs": 2 })).await;
    assert_eq!((request.sampling.logprobs, request.sampling.top_logprobs), (true, Some(2)));
    let request = reaching("/api/chat", json!({ "messages": question(), "top_logprobs": 2 })).await;
    assert_eq!((request.sampling.logprobs, request.sampling.top_logprobs), (false, None));
}
