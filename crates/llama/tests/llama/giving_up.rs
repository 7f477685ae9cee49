//! A caller that disconnects ends the work of the engine. These tests count the tokens that were computed afterwards.

use std::time::Duration;

use futures::StreamExt;
use hob_core::{
    Delta, Engine, GenerateRequest, MaxTokens, Message, Role, Temperature, ToolChoice, ToolDefinition,
};
use hob_llama::{LlamaEngine, LlamaOptions};
use serde_json::{Map, json};
use tempfile::TempDir;

use crate::support::{MODEL, models_dir};

/// No step of the worker is larger. A running step cannot be interrupted.
const STEP: u64 = 128;

/// Long enough that it is cancelled before it is read.
const LONG: usize = 7_000;

/// An engine with a model that writes so many answers at a time, and the directory that this lies in.
fn engine_with(parallel: usize) -> (TempDir, LlamaEngine) {
    let dir = models_dir();
    let options = LlamaOptions { parallel: Some(parallel), threads: 1, ..LlamaOptions::new(dir.path()) };
    let engine = LlamaEngine::new(options);
    (dir, engine)
}

/// A question that is answered until `max_tokens` are written.
fn ask(question: &str, max_tokens: i64) -> GenerateRequest {
    GenerateRequest {
        model: MODEL.into(),
        messages: vec![Message::new(Role::User, question)],
        temperature: Some(Temperature::new(0.0).expect("zero is allowed")),
        max_tokens: Some(MaxTokens::new(max_tokens).expect("positive")),
        extra: Map::from_iter([("ignore_eos".to_owned(), json!(true))]),
        ..GenerateRequest::default()
    }
}

fn long() -> GenerateRequest {
    ask(&"word ".repeat(LONG), 16)
}

fn forced_call() -> GenerateRequest {
    let note = ToolDefinition {
        name: "note".into(),
        description: None,
        parameters: Some(
            json!({"type": "object", "properties": {"text": {"type": "string", "minLength": 400}},
            "required": ["text"], "additionalProperties": false}),
        ),
        strict: None,
    };
    GenerateRequest {
        tools: vec![note],
        tool_choice: Some(ToolChoice::Required),
        ..ask("Write a long note about the sea.", 500)
    }
}

/// Waits until the engine has computed something.
async fn at_work(engine: &LlamaEngine) {
    while engine.computed_tokens() == 0 {
        // The model needs the processor more than this loop.
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

/// Tokens that go through the model for others while it writes an answer of sixteen tokens.
async fn computed_beside(engine: &LlamaEngine) -> u64 {
    let before = engine.computed_tokens();
    let usage = engine.generate(&ask("Hello", 16)).await.expect("an answer").usage.expect("usage");
    // The last token is sent, but not computed.
    let own = usage.prompt_tokens - usage.cached_tokens.unwrap_or(0) + usage.completion_tokens - 1;
    engine.computed_tokens() - before - own
}

#[tokio::test]
async fn a_cancelled_prompt_is_not_read_further() {
    for streamed in [false, true] {
        let (_dir, engine) = engine_with(2);
        let request = long();
        let asking = async {
            if streamed {
                let mut deltas = engine.stream(&request).await.expect("a stream").deltas;
                drop(deltas.next().await);
            } else {
                drop(engine.generate(&request).await);
            }
        };
        tokio::select! {
            () = asking => panic!("it was answered, streamed: {streamed}"),
            () = at_work(&engine) => {}
        }
        let beside = computed_beside(&engine).await;
        assert!(beside <= STEP, "{beside} tokens without a caller, streamed: {streamed}");
    }
}

#[tokio::test]
async fn a_cancelled_answer_is_not_generated_further() {
    let (_dir, engine) = engine_with(2);
    for request in [ask("Count forever.", 2_000), forced_call()] {
        let mut deltas = engine.stream(&request).await.expect("a stream").deltas;
        let begun = deltas.next().await.expect("a piece").expect("no error");
        assert!(matches!(begun, Delta::Text(_) | Delta::ToolCall(_)), "{begun:?}");
        drop(deltas);
        let beside = computed_beside(&engine).await;
        assert!(beside <= 1, "{beside} tokens without a caller");
    }
}

#[tokio::test]
async fn a_request_cancelled_in_the_queue_is_never_started_and_frees_its_slot() {
    let (_dir, engine) = engine_with(1);
    let mut busy = engine.stream(&ask("Count forever.", 2_000)).await.expect("a stream").deltas;
    assert!(busy.next().await.expect("a piece").is_ok());
    // With one slot, these wait.
    for _ in 0..3 {
        drop(engine.stream(&long()).await.expect("a place in the queue"));
    }
    drop(busy);
    let beside = computed_beside(&engine).await;
    assert!(beside <= 1, "{beside} tokens without a caller");
}

#[tokio::test]
async fn the_prompt_of_a_cancelled_request_is_not_read_again() {
    let (_dir, engine) = engine_with(2);
    let request = ask(&"word ".repeat(600), 1);
    let mut deltas = engine.stream(&request).await.expect("a stream").deltas;
    tokio::select! {
        _ = deltas.next() => {}
        () = at_work(&engine) => {}
    }
    drop(deltas);
    let usage = engine.generate(&request).await.expect("an answer").usage.expect("usage");
    assert!(usage.cached_tokens.expect("told") >= STEP, "{usage:?}");
    assert!(engine.computed_tokens() <= usage.prompt_tokens + STEP, "{usage:?}");
}

#[tokio::test]
async fn a_common_prefix_of_concurrent_prompts_is_read_once() {
    let (_dir, engine) = engine_with(4);
    let beginning = "word ".repeat(600);
    let questions = ["one", "two", "three"].map(|last| ask(&format!("{beginning}{last}"), 1));
    let usages = futures::future::join_all(questions.iter().map(|question| engine.generate(question))).await;
    let read = usages[0].as_ref().expect("an answer").usage.expect("usage").prompt_tokens;
    let computed = engine.computed_tokens();
    assert!(usages.iter().all(Result::is_ok) && computed < read + 200, "{computed} for prompts of {read}");
}
