//! Hostile schemas and requests against the embedded engine with a model: each is answered or refused, and the engine
//! continues.

mod generated;
mod requests;
mod schemas;

use std::path::Path;
use std::sync::Arc;

use hob_core::{
    Engine, EngineError, GenerateRequest, JsonSchema, MaxTokens, Message, ResponseFormat, Role, Temperature,
    ToolChoice, ToolDefinition,
};
use hob_llama::{LlamaEngine, LlamaOptions};
use serde_json::Value;
use tokio::sync::OnceCell;

use crate::support::{MODEL, lasting_models_dir, model_file, models_dir, real_models_dir};

fn options(dir: impl AsRef<Path>) -> LlamaOptions {
    // Tests run side by side; more threads than cores only wait for each other.
    LlamaOptions { context: Some(1024), threads: 1, ..LlamaOptions::new(dir.as_ref()) }
}

/// One engine for all tests, so that each meets what the others left behind.
async fn engine() -> Arc<LlamaEngine> {
    static ENGINE: OnceCell<Arc<LlamaEngine>> = OnceCell::const_new();
    let made = async || Arc::new(LlamaEngine::new(options(lasting_models_dir("short", &model_file()))));
    Arc::clone(ENGINE.get_or_init(made).await)
}

fn ask(question: &str, max_tokens: i64) -> GenerateRequest {
    GenerateRequest {
        model: MODEL.into(),
        messages: vec![Message::new(Role::User, question)],
        temperature: Some(Temperature::new(0.0).expect("zero is allowed")),
        max_tokens: Some(MaxTokens::new(max_tokens).expect("positive")),
        ..GenerateRequest::default()
    }
}

fn in_form(schema: &Value, question: &str, max_tokens: i64) -> GenerateRequest {
    let wanted = JsonSchema { name: "x".into(), description: None, schema: schema.clone(), strict: None };
    GenerateRequest { response_format: ResponseFormat::JsonSchema(wanted), ..ask(question, max_tokens) }
}

fn as_tool(schema: &Value, question: &str, max_tokens: i64) -> GenerateRequest {
    let tool = ToolDefinition {
        name: "f".into(),
        description: None,
        parameters: Some(schema.clone()),
        strict: None,
    };
    GenerateRequest {
        tools: vec![tool],
        tool_choice: Some(ToolChoice::Required),
        ..ask(question, max_tokens)
    }
}

/// Asserts that the engine answers as one that has seen nothing else.
async fn still_answers(engine: &LlamaEngine) {
    static EXPECTED: OnceCell<String> = OnceCell::const_new();
    let asked = async |engine: &LlamaEngine| {
        let answer =
            engine.generate(&ask("What is the capital of France? Answer in one sentence.", 16)).await;
        answer.expect("an answer").answer.content
    };
    let dir = models_dir();
    let expected = EXPECTED.get_or_init(async || asked(&LlamaEngine::new(options(&dir))).await).await;
    assert!(!expected.is_empty());
    assert_eq!(asked(engine).await, *expected);
}

/// The field that a refusal names.
fn named(error: &EngineError) -> Option<&str> {
    match error {
        EngineError::Refused { status: 400, param, .. } => param.as_deref(),
        _ => None,
    }
}
