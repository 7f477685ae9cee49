//! Forced tool calls of a real model in the formats of other models' templates: the grammar of a format and its parser agree.

use std::path::Path;

use hob_core::{
    Engine, FinishReason, GenerateRequest, MaxTokens, Message, Role, Temperature, ToolCall, ToolChoice,
    ToolDefinition,
};
use hob_llama::{LlamaEngine, LlamaOptions};
use hob_testkit::gguf::{MetadataValue, copy_with_metadata};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::support::{MODEL, model_file, real_model_file};

/// JSON alone, arguments in tags, a list of calls, channels, calls with ids. Their grammars enforce these arguments completely.
/// `formats_and_tools` forces calls of JSON in tags.
const FORMATS: [&str; 6] = ["llama-3", "qwen3-coder", "glm-4.5", "mistral-nemo", "gpt-oss", "kimi-k2"];

/// The template of an example file.
fn template(format: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/formats/{format}.txt"));
    let text = std::fs::read_to_string(path).expect("an example");
    let rest = text.strip_prefix("=== template\n").expect("a template");
    rest.split_once("\n=== ").expect("an answer").0.to_owned()
}

#[tokio::test]
async fn a_forced_call_is_found_in_every_format() {
    let parameters = json!({"type": "object", "properties": {"days": {"type": "integer", "minimum": 1, "maximum": 9},
        "unit": {"enum": [true, false]}}, "required": ["days", "unit"], "additionalProperties": false});
    let tool = ToolDefinition {
        name: "get_weather".into(),
        description: Some("The weather of the next days".into()),
        parameters: Some(parameters.clone()),
        strict: None,
    };
    for format in FORMATS {
        let dir = TempDir::new().expect("a directory for models");
        let entries = [("tokenizer.chat_template", MetadataValue::Text(&template(format)))];
        // What precedes a call in these formats has an end that only the real model finds.
        let original = match format {
            "gpt-oss" | "kimi-k2" => real_model_file(),
            _ => model_file(),
        };
        copy_with_metadata(&original, &dir.path().join("model.gguf"), &entries).expect("a copy of the model");
        let options = LlamaOptions { context: Some(512), threads: 1, ..LlamaOptions::new(dir.path()) };
        let request = GenerateRequest {
            model: MODEL.into(),
            messages: vec![Message::new(Role::User, "What is the weather?")],
            tools: vec![tool.clone()],
            tool_choice: Some(ToolChoice::Function("get_weather".into())),
            temperature: Some(Temperature::new(0.0).expect("zero is allowed")),
            max_tokens: Some(MaxTokens::new(300).expect("positive")),
            ..GenerateRequest::default()
        };
        let answer = LlamaEngine::new(options).generate(&request).await.expect("an answer").answer;
        let [call] = &answer.tool_calls[..] else { panic!("{format}: {answer:?}") };
        let arguments: Value = serde_json::from_str(&call.arguments)
            .unwrap_or_else(|error| panic!("{format}: {error}: {answer:?}"));
        assert_eq!(
            (call.name.as_str(), answer.content.as_str(), answer.finish_reason),
            ("get_weather", "", FinishReason::ToolCalls),
            "{format}"
        );
        assert!(jsonschema::is_valid(&parameters, &arguments), "{format}: {arguments}");
    }
}

/// The check of Mistral's templates.
const NINE: &str =
    "{%- if call.id|length != 9 %}{{ raise_exception('IDs should have length 9!') }}{%- endif %}";

#[tokio::test]
async fn a_conversation_that_began_elsewhere_continues_with_a_template_that_demands_short_ids() {
    let begin = "{%- for call in message.tool_calls %}\n";
    let checked = template("mistral-nemo").replace(begin, &format!("{begin}{NINE}"));
    assert!(checked.contains(NINE));
    let dir = TempDir::new().expect("a directory for models");
    let entries = [("tokenizer.chat_template", MetadataValue::Text(&checked))];
    copy_with_metadata(&model_file(), &dir.path().join("model.gguf"), &entries).expect("a copy of the model");
    let engine =
        LlamaEngine::new(LlamaOptions { context: Some(512), threads: 1, ..LlamaOptions::new(dir.path()) });
    for id in ["call_8xY--thought--EqQBCgIYAhIM", "123456780", "functions.get_weather:0"] {
        let call = ToolCall { id: id.into(), name: "get_weather".into(), arguments: "{}".into() };
        let request = GenerateRequest {
            model: MODEL.into(),
            messages: vec![
                Message::new(Role::User, "What is the weather?"),
                Message { tool_calls: vec![call], ..Message::new(Role::Assistant, "") },
                Message::tool_result(id, "sunny"),
            ],
            tools: vec![ToolDefinition {
                name: "get_weather".into(),
                description: None,
                parameters: None,
                strict: None,
            }],
            max_tokens: Some(MaxTokens::new(1).expect("positive")),
            ..GenerateRequest::default()
        };
        let generation = engine.generate(&request).await;
        assert!(generation.is_ok(), "{id}: {generation:?}");
    }
}
