//! Several requests at once, and requests that are given up.

use std::num::NonZero;
use std::sync::Arc;
use std::thread::{available_parallelism, spawn};

use futures::StreamExt;
use hob_core::{Delta, Engine, EngineError, GenerateRequest};
use hob_llama::{LlamaEngine, LlamaOptions};
use serde_json::{Map, json};

use super::{ask, models_dir, options, real_engine};

/// Word for word the same as alone is not what llama.cpp promises: it adds up numbers in another order when it works on
/// several sequences at once. What must hold is that every stream ends properly and gets the answer to its own question.
#[tokio::test]
async fn eight_streams_at_once_each_get_their_own_answer() {
    let capitals = [
        ("France", "Paris"),
        ("Italy", "Rome"),
        ("Spain", "Madrid"),
        ("Germany", "Berlin"),
        ("Japan", "Tokyo"),
        ("England", "London"),
        ("Russia", "Moscow"),
        ("China", "Beijing"),
    ];
    let engine = real_engine().await;
    let running = capitals.map(|(country, capital)| {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            let request = ask(&format!("What is the capital of {country}? Answer in one sentence."), 16);
            let mut stream = engine.stream(&request).await.expect("a stream").deltas;
            let (mut text, mut done) = (String::new(), false);
            while let Some(delta) = stream.next().await {
                match delta.expect("no error") {
                    Delta::Text(piece) => text.push_str(&piece.text),
                    Delta::Done { usage } => done = usage.is_some(),
                    _ => {}
                }
            }
            assert!(done && text.contains(capital), "{country}: {text}");
        })
    });
    for stream in running {
        stream.await.expect("its own answer");
    }
}

/// Compute threads that wait for one without a core sleep, and are woken.
#[tokio::test]
async fn an_answer_on_a_busy_machine_is_right() {
    let dir = models_dir();
    let engine = LlamaEngine::new(LlamaOptions { threads: 4, ..options(&dir) });
    let question = ask("What is the capital of France? Answer in one sentence.", 16);
    let expected = engine.generate(&question).await.expect("an answer").answer.content;
    // They end when this is dropped, also if the test fails.
    let other_work = Arc::new(());
    for _ in 0..2 * available_parallelism().map_or(1, NonZero::get) {
        let other_work = Arc::downgrade(&other_work);
        spawn(move || while other_work.strong_count() > 0 {});
    }
    let answer = engine.generate(&question).await.expect("an answer").answer.content;
    assert_eq!(answer, expected);
}

#[tokio::test]
async fn a_disconnect_frees_the_slot_within_a_step() {
    let dir = models_dir();
    let engine = LlamaEngine::new(LlamaOptions { parallel: Some(1), ..options(&dir) });
    let endless = GenerateRequest {
        extra: Map::from_iter([("ignore_eos".to_owned(), json!(true))]),
        ..ask("Count forever.", 900)
    };
    let mut stream = engine.stream(&endless).await.expect("a stream").deltas;
    assert!(stream.next().await.expect("a piece").is_ok());
    drop(stream);
    let before = engine.computed_tokens();
    // With one slot, this begins when the other has ended. The rest of its 900 tokens is not computed.
    engine.generate(&ask("Hello", 1)).await.expect("an answer");
    let computed = engine.computed_tokens() - before;
    assert!(computed < 100, "{computed} tokens were computed");
}

#[tokio::test]
async fn a_full_queue_refuses_with_retry_after() {
    let dir = models_dir();
    let engine = Arc::new(LlamaEngine::new(LlamaOptions { parallel: Some(1), queue: 1, ..options(&dir) }));
    let endless = GenerateRequest {
        extra: Map::from_iter([("ignore_eos".to_owned(), json!(true))]),
        ..ask("Count forever.", 900)
    };
    let mut first = engine.stream(&endless).await.expect("a stream").deltas;
    assert!(first.next().await.expect("a piece").is_ok());
    let second = engine.stream(&endless).await.expect("a place in the queue");
    let error = engine.stream(&endless).await.err().expect("no third place");
    assert!(matches!(error, EngineError::Refused { status: 429, retry_after: Some(1..=600), .. }), "{error}");
    drop(first);
    let mut second = second.deltas;
    assert!(second.next().await.expect("a piece").is_ok());
}
