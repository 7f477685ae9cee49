//! Answers that follow a schema, and calls of tools.

use futures::StreamExt;
use hob_core::{
    Delta, Engine, EngineError, FinishReason, GenerateRequest, JsonSchema, Message, ResponseFormat, Role,
    Sampling, Temperature, ToolCall, ToolChoice, ToolDefinition,
};
use serde_json::{Map, Value, json};

use super::{MODEL, answer, ask, engine, refusal};

#[tokio::test]
async fn answers_follow_a_schema() {
    let schemas = [
        json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 20}, "age": {"type": "integer"}},
               "required": ["name", "age"], "additionalProperties": false}),
        json!({"type": "array", "items": {"enum": ["red", "green", "blue"]}, "minItems": 2, "maxItems": 3}),
        json!({"type": "object", "properties": {"ok": {"type": "boolean"}, "tags": {"type": "array",
               "items": {"type": "string", "maxLength": 8}, "maxItems": 2}}, "required": ["ok", "tags"]}),
        json!({"$defs": {"p": {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}},
               "type": "object", "properties": {"at": {"$ref": "#/$defs/p"}}, "required": ["at"]}),
    ];
    for (at, schema) in schemas.into_iter().enumerate() {
        let temperature = Some(Temperature::new(if at % 2 == 0 { 0.0 } else { 1.5 }).expect("allowed"));
        let request = GenerateRequest {
            temperature,
            sampling: Sampling { seed: Some(1), ..Sampling::default() },
            response_format: ResponseFormat::JsonSchema(JsonSchema {
                name: "thing".into(),
                description: None,
                schema: schema.clone(),
                strict: Some(true),
            }),
            ..ask("Describe a person.", 200)
        };
        let answer = answer(&request).await.answer;
        let value: Value = serde_json::from_str(&answer.content)
            .unwrap_or_else(|error| panic!("{error} in {:?} for {schema}", answer.content));
        for key in schema["required"].as_array().into_iter().flatten() {
            assert!(!value[key.as_str().expect("a name")].is_null(), "{value} for {schema}");
        }
        assert_eq!(answer.finish_reason, FinishReason::Stop);
    }
}

#[tokio::test]
async fn json_mode_gives_an_object() {
    let request = GenerateRequest {
        response_format: ResponseFormat::JsonObject,
        ..ask("Give me a JSON object with one field 'city'.", 60)
    };
    let answer = answer(&request).await.answer;
    assert!(answer.content.trim_start().starts_with('{'), "{}", answer.content);
    if answer.finish_reason == FinishReason::Stop {
        serde_json::from_str::<Map<String, Value>>(&answer.content).expect("an object");
    }
}

fn weather() -> ToolDefinition {
    ToolDefinition {
        name: "get_weather".into(),
        description: Some("The weather in a city".into()),
        parameters: Some(
            json!({"type": "object", "properties": {"city": {"type": "string", "maxLength": 20},
            "unit": {"enum": ["c", "f"]}}, "required": ["city", "unit"], "additionalProperties": false}),
        ),
        strict: None,
    }
}

#[tokio::test]
async fn a_tool_call_can_be_forced_and_comes_in_pieces() {
    let other = ToolDefinition { name: "get_time".into(), ..weather() };
    for (choice, wanted) in
        [(ToolChoice::Required, None), (ToolChoice::Function("get_time".into()), Some("get_time"))]
    {
        let request = GenerateRequest {
            tools: vec![weather(), other.clone()],
            tool_choice: Some(choice),
            parallel_tool_calls: Some(false),
            ..ask("What is the weather in Rome?", 100)
        };
        let engine = engine().await;
        let mut stream = engine.stream(&request).await.expect("a stream").deltas;
        let mut collector = hob_core::Collector::default();
        let mut fragments = 0;
        while let Some(delta) = stream.next().await {
            let delta = delta.expect("no error");
            fragments += u32::from(matches!(&delta, Delta::ToolCall(call) if !call.arguments.is_empty()));
            collector.push(delta);
        }
        let answer = collector.finish(MODEL).expect("finished").answer;
        assert_eq!((answer.finish_reason, answer.content.as_str()), (FinishReason::ToolCalls, ""));
        let [call] = answer.tool_calls.as_slice() else {
            panic!("one call, got {:?}", answer.tool_calls);
        };
        assert!(fragments > 1 && call.id.starts_with("call_"));
        assert!(["get_weather", "get_time"].contains(&call.name.as_str()));
        assert!(wanted.is_none_or(|wanted| wanted == call.name));
        let arguments: Value = serde_json::from_str(&call.arguments).expect("arguments are JSON");
        assert!(
            arguments["city"].is_string() && ["c", "f"].contains(&arguments["unit"].as_str().unwrap_or(""))
        );
    }
}

#[tokio::test]
async fn tools_that_may_be_called_need_not_be() {
    let request =
        |choice| GenerateRequest { tools: vec![weather()], tool_choice: choice, ..ask("Say hello.", 24) };
    let free = answer(&request(None)).await.answer;
    assert!(!free.content.is_empty() || !free.tool_calls.is_empty());
    let none = answer(&request(Some(ToolChoice::None))).await.answer;
    assert!(none.tool_calls.is_empty() && !none.content.is_empty());
}

#[tokio::test]
async fn a_conversation_with_tool_results_continues() {
    let call = ToolCall {
        id: "call_1".into(),
        name: "get_weather".into(),
        arguments: "{\"city\":\"Rome\",\"unit\":\"c\"}".into(),
    };
    let mut request = GenerateRequest { tools: vec![weather()], ..ask("What is the weather in Rome?", 16) };
    request.messages.push(Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "") });
    request.messages.push(Message::tool_result("call_1", "sunny, 25 degrees"));
    assert_eq!(answer(&request).await.alternatives, []);
}

#[tokio::test]
async fn a_schema_that_cannot_be_enforced_is_refused() {
    let request = GenerateRequest {
        response_format: ResponseFormat::JsonSchema(JsonSchema {
            name: "x".into(),
            description: None,
            schema: json!({"$ref": "#/nowhere"}),
            strict: None,
        }),
        ..ask("Hello", 1)
    };
    assert!(matches!(refusal(&request).await, EngineError::Refused { status: 400, .. }));
}
