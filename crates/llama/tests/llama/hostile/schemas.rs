//! Schemas that stopped or hung a server, and schemas that are enforced or refused.

use futures::StreamExt;
use hob_core::{Engine, EngineError, FinishReason, GenerateRequest};
use hob_llama::LlamaEngine;
use serde_json::{Map, Value, json};

use super::{MODEL, as_tool, engine, in_form, named, options, real_models_dir, still_answers};

/// Schemas that stopped or hung a server.
fn deadly() -> Vec<Value> {
    let many: Map<String, Value> = (0..6000).map(|n| (format!("p{n}"), json!({"type": "string"}))).collect();
    let mut chain: Map<String, Value> =
        (0..5000).map(|n| (n.to_string(), json!({"$ref": format!("#/$defs/{}", n + 1)}))).collect();
    chain.insert("5000".into(), json!({"type": "object"}));
    let mut deep = json!({"type": "object"});
    for _ in 0..120 {
        deep = json!({"type": "object", "properties": {"a": deep}});
    }
    vec![
        json!({"$ref": "#"}),
        json!({"type": "object", "properties": many}),
        json!({"$defs": chain, "$ref": "#/$defs/0"}),
        deep,
        json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]}),
    ]
}

#[tokio::test]
async fn schemas_that_stopped_a_server_are_refused_with_their_field() {
    let engine = engine().await;
    for schema in deadly() {
        let error = engine.generate(&in_form(&schema, "Hello", 4)).await.expect_err("refused");
        assert_eq!(named(&error), Some("response_format"), "{error}");
        let error = engine.generate(&as_tool(&schema, "Hello", 4)).await.expect_err("refused");
        assert_eq!(named(&error), Some("tools[0]"), "{error}");
        still_answers(&engine).await;
    }
}

#[tokio::test]
async fn alternatives_that_double_are_answered_in_time() {
    let mut doubling = json!({"$defs": {"48": {"type": "null"}}, "$ref": "#/$defs/0"});
    for n in 0..48 {
        let next = format!("#/$defs/{}", n + 1);
        doubling["$defs"][n.to_string()] = json!({"anyOf": [{"$ref": next}, {"$ref": next}]});
    }
    let engine = engine().await;
    let answer = engine.generate(&in_form(&doubling, "Hello", 8)).await.expect("an answer").answer;
    assert_eq!(answer.content, "null");
}

#[tokio::test]
async fn a_schema_that_refers_to_itself_is_enforced() {
    let schema = json!({"type": "object", "properties": {"name": {"type": "string", "maxLength": 8},
        "children": {"type": "array", "items": {"$ref": "#"}, "maxItems": 1}}, "required": ["name", "children"],
        "additionalProperties": false});
    let answer =
        engine().await.generate(&in_form(&schema, "A family tree.", 200)).await.expect("an answer").answer;
    if answer.finish_reason == FinishReason::Stop {
        let value = serde_json::from_str(&answer.content).expect("JSON");
        assert!(jsonschema::is_valid(&schema, &value), "{value}");
    }
    assert!(answer.content.starts_with("{"), "{}", answer.content);
}

#[tokio::test]
async fn bounds_of_numbers_are_enforced_against_the_question() {
    for (schema, question) in [
        (json!({"type": "number", "minimum": 0}), "Answer with the number -1 and nothing else."),
        (
            json!({"type": "integer", "minimum": 3, "maximum": 5}),
            "Answer with the number 1000 and nothing else.",
        ),
        (json!({"type": "number", "multipleOf": 0.5, "exclusiveMinimum": 0, "maximum": 3}), "What is 1.3?"),
        (json!({"type": "string", "format": "date"}), "Answer with the words: no date."),
        (json!({"type": "string", "pattern": "^\\d{3}-[a-f]+$", "maxLength": 8}), "Say hello."),
    ] {
        let answer =
            engine().await.generate(&in_form(&schema, question, 40)).await.expect("an answer").answer;
        // A model may write decimals until it is stopped; what it wrote is a number all the same.
        let cut = answer.finish_reason == FinishReason::Length && schema["type"] == "number";
        assert!(cut || answer.finish_reason == FinishReason::Stop, "{schema}: {}", answer.content);
        let value = serde_json::from_str(&answer.content).expect("JSON");
        let valid = jsonschema::options().should_validate_formats(true).build(&schema).expect("valid");
        assert!(valid.is_valid(&value), "{value} for {schema}");
    }
}

#[tokio::test]
async fn unenforced_keywords_are_checked_before_anything_is_sent() {
    // Its value ends within the limit.
    let dir = real_models_dir();
    let engine = LlamaEngine::new(options(&dir));
    // No value follows it, which no grammar can know.
    let impossible = json!({"type": "integer", "minimum": 1, "maximum": 9, "not": {"type": "integer"}});
    let error = engine.generate(&in_form(&impossible, "Say a number.", 8)).await.expect_err("no answer");
    assert!(matches!(error, EngineError::Malformed { .. }) && error.to_string().contains("'not'"), "{error}");
    assert!(engine.stream(&in_form(&impossible, "Say a number.", 8)).await.is_err(), "not a piece of it");
    let mut tool = impossible.clone();
    tool = json!({"type": "object", "properties": {"n": tool}, "required": ["n"], "additionalProperties": false});
    let error = engine.generate(&as_tool(&tool, "Say a number.", 40)).await.expect_err("no call");
    assert!(error.to_string().contains("the arguments of 'f'"), "{error}");

    let possible = json!({"type": "integer", "minimum": 1, "maximum": 9, "not": {"const": 100}});
    let mut stream = engine.stream(&in_form(&possible, "Say a number.", 8)).await.expect("an answer").deltas;
    let mut collector = hob_core::Collector::default();
    while let Some(delta) = stream.next().await {
        collector.push(delta.expect("no error"));
    }
    let answer = collector.finish(MODEL).expect("finished").answer;
    assert!(matches!(answer.content.parse::<u8>(), Ok(1..=9)), "{}", answer.content);
}

#[tokio::test]
async fn unsupported_keywords_are_refused_by_name() {
    let engine = engine().await;
    for (schema, keyword) in [
        (json!({"type": "object", "unevaluatedProperties": false}), "unevaluatedProperties"),
        (
            json!({"type": "object", "properties": {"a": {"$ref": "https://example.org/x"}}}),
            "https://example.org/x",
        ),
    ] {
        let error = engine.generate(&in_form(&schema, "Hello", 4)).await.expect_err("refused");
        let EngineError::Refused { status: 400, message, code, param, .. } = &error else {
            panic!("{error}")
        };
        assert!(message.contains(keyword), "{message}");
        assert_eq!(
            (code.as_deref(), param.as_deref()),
            (Some("unsupported_by_engine"), Some("response_format"))
        );
        // A tool that is only offered is no promise, and must not spoil the others.
        let offered = GenerateRequest { tool_choice: None, ..as_tool(&schema, "Hello", 4) };
        engine.generate(&offered).await.expect("an answer");
    }
}
