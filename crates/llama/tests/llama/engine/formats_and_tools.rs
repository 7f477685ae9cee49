//! Answers that follow a schema, and calls of tools.

use futures::StreamExt;
use hob_core::{
    AnswerWarning, Delta, Engine, EngineError, FinishReason, GenerateRequest, JsonSchema, Message,
    ResponseFormat, Role, Sampling, Temperature, TokenizeInput, ToolCall, ToolChoice, ToolDefinition,
};
use hob_llama::LlamaEngine;
use hob_testkit::gguf::{MetadataValue, copy_with_metadata};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{MODEL, answer, ask, engine, model_file, options, refusal, split};

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

/// A bias for the token with this text.
async fn bias(text: &str, bias: i32) -> Map<String, Value> {
    let input = TokenizeInput::Text { text: text.into(), add_special: false, parse_special: true };
    let tokens = split(input).await;
    let [token] = tokens[..] else { panic!("'{text}' is not one token: {tokens:?}") };
    Map::from_iter([("logit_bias".to_owned(), json!({ (token.to_string()): bias }))])
}

fn capital() -> ResponseFormat {
    let schema = json!({"type": "object", "properties": {"capital": {"type": "string", "maxLength": 20}},
        "required": ["capital"], "additionalProperties": false});
    ResponseFormat::JsonSchema(JsonSchema {
        name: "capital".into(),
        description: None,
        schema,
        strict: Some(true),
    })
}

#[tokio::test]
async fn an_answer_by_a_schema_may_be_a_call_instead() {
    // A call begins with '<' in this model's format, and an answer by the schema with '{'.
    for (weight, calls) in [(100, true), (-100, false)] {
        let request = GenerateRequest {
            tools: vec![weather()],
            parallel_tool_calls: Some(false),
            response_format: capital(),
            extra: bias("<", weight).await,
            ..ask("What is the capital of Italy?", 150)
        };
        let generation = answer(&request).await;
        assert!(!generation.warnings.contains(&AnswerWarning::Ignored("tools".into())));
        let answer = generation.answer;
        let written = if calls {
            let [call] = answer.tool_calls.as_slice() else { panic!("one call, got {answer:?}") };
            assert_eq!((call.name.as_str(), answer.content.as_str()), ("get_weather", ""));
            &call.arguments
        } else {
            assert_eq!(answer.tool_calls, []);
            &answer.content
        };
        let value: Value =
            serde_json::from_str(written).unwrap_or_else(|error| panic!("{error}: {answer:?}"));
        assert!(value[if calls { "city" } else { "capital" }].is_string(), "{value}");
        let reason = if calls { FinishReason::ToolCalls } else { FinishReason::Stop };
        assert_eq!(answer.finish_reason, reason);
    }
}

#[tokio::test]
async fn an_answer_that_is_required_does_not_end_within_a_thought() {
    let template = "{% for message in messages %}{{ '<|im_start|>' + message['role'] + '\\n' + message['content'] \
        + '<|im_end|>\\n' }}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n<think>\\n' }}{% endif %}";
    let dir = TempDir::new().expect("a directory for models");
    let entries = [("tokenizer.chat_template", MetadataValue::Text(template))];
    copy_with_metadata(&model_file(), &dir.path().join("model.gguf"), &entries).expect("a copy of the model");
    let engine = LlamaEngine::new(options(&dir));
    // The model ends wherever it may.
    let free =
        GenerateRequest { extra: bias("<|im_end|>", 100).await, ..ask("What is the capital of Italy?", 12) };
    let by_schema = GenerateRequest { response_format: capital(), ..free.clone() };
    let forced =
        GenerateRequest { tools: vec![weather()], tool_choice: Some(ToolChoice::Required), ..free.clone() };
    for (request, reason) in
        [(&free, FinishReason::Stop), (&by_schema, FinishReason::Length), (&forced, FinishReason::Length)]
    {
        let answer = engine.generate(request).await.expect("an answer").answer;
        assert_eq!(answer.finish_reason, reason, "{answer:?}");
    }
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
