//! Several models, less memory than they need, and restarts.

mod fixtures;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{StreamExt, stream};
use hob_core::{AnswerWarning, EmbedRequest, Engine, EngineError, Generation, Message, Role};
use hob_llama::{FlashAttention, LlamaEngine, LlamaOptions, PrefixStoreOptions};
use hob_models::KvPrecision;
use tempfile::TempDir;

use crate::support::real_model_file;
use fixtures::{ask, dir_of, endless, engine_for, models_dir, names, options, size_now, size_of_one};

fn cached(generation: &Generation) -> u64 {
    generation.usage.as_ref().and_then(|usage| usage.cached_tokens).unwrap_or(0)
}

/// A directory with the real model, for tests that read its answers or know its sizes.
fn real_models_dir() -> TempDir {
    dir_of(&real_model_file(), &names(1))
}

#[tokio::test]
async fn ten_models_with_memory_for_two_are_all_answered_with_few_loads() {
    let names = names(10);
    let dir = models_dir(&names);
    let engine = engine_for(&dir, 2).await;
    // The headers of the files are read once. All requests would read them, and join the queue one after the other.
    engine.list_models().await.expect("a list");
    // Ten callers, each with its own order of models.
    let requests = (0..10).flat_map(|caller| (0..10).map(move |turn| (caller * 3 + turn * 7) % 10));
    let answered = stream::iter(requests.map(|model| {
        let (engine, model) = (Arc::clone(&engine), names[model].clone());
        async move {
            let answer = engine.generate(&ask(&model, "Say hello.", 3)).await;
            (model, answer.map(|generation| generation.warnings))
        }
    }))
    .buffer_unordered(100)
    .collect::<Vec<_>>()
    .await;
    let mut count = HashMap::new();
    let mut queued = 0;
    for (model, answer) in answered {
        let warnings = answer.expect("an answer");
        queued += warnings.iter().filter(|warning| matches!(warning, AnswerWarning::Queued { .. })).count();
        *count.entry(model).or_insert(0) += 1;
    }
    assert_eq!(count, names.iter().map(|name| (name.clone(), 10)).collect());
    // Each once, and a few again because their turn was over.
    assert!((10..=20).contains(&engine.loads()), "{} loads", engine.loads());
    assert!(queued >= 50, "{queued}");
    assert!(engine.loaded_models().len() <= 2, "{:?}", engine.loaded_models());
}

#[tokio::test]
async fn a_busy_model_does_not_starve_another() {
    let names = names(2);
    let dir = models_dir(&names);
    let engine = engine_for(&dir, 1).await;
    // Two callers that never pause.
    let busy = |question: &'static str| {
        let engine = Arc::clone(&engine);
        tokio::spawn(async move {
            loop {
                engine.generate(&ask("m0", question, 2)).await.expect("an answer");
            }
        })
    };
    let callers = [busy("One?"), busy("Two?")];
    engine.prepare("m0").await.expect("loaded");
    let other = tokio::time::timeout(Duration::from_secs(600), engine.generate(&ask("m1", "Hello", 2))).await;
    let other = other.expect("its turn").expect("an answer");
    assert!(matches!(other.warnings[..], [AnswerWarning::Queued { position: 1, seconds: 1.. }]), "{other:?}");
    callers.iter().for_each(tokio::task::JoinHandle::abort);
}

#[tokio::test]
async fn a_caller_with_several_requests_in_a_row_does_not_load_its_model_for_each() {
    let names = names(3);
    let dir = models_dir(&names);
    let engine = engine_for(&dir, 1).await;
    let callers = names.iter().map(|name| {
        let engine = Arc::clone(&engine);
        async move {
            for _ in 0..8 {
                engine.generate(&ask(name, "Hello", 2)).await.expect("an answer");
            }
        }
    });
    futures::future::join_all(callers).await;
    // A turn has a time limit, so a slow machine needs more than one for each model.
    assert!(engine.loads() <= 12, "{} loads for 24 requests", engine.loads());
}

#[tokio::test]
async fn a_full_queue_for_memory_refuses_with_the_expected_wait() {
    let dir = models_dir(&names(2));
    let one = size_of_one(&dir).await;
    let options = LlamaOptions { memory_budget: one * 3 / 2, queue: 1, ..options(&dir) };
    let engine = Arc::new(LlamaEngine::new(options));
    let mut busy = engine.stream(&endless("m0")).await.expect("a stream").deltas;
    assert!(busy.next().await.expect("a piece").is_ok());
    let request = ask("m1", "Hello", 1);
    let mut waiting = engine.generate(&request);
    let moment = Duration::from_millis(50);
    let refused = loop {
        let first = tokio::time::timeout(moment, waiting.as_mut()).await;
        assert!(first.is_err(), "there is memory for one only: {first:?}");
        match tokio::time::timeout(moment, engine.generate(&request)).await {
            Ok(answer) => break answer.expect_err("there is memory for one only"),
            // It was first in the queue itself.
            Err(_) => continue,
        }
    };
    assert!(
        matches!(refused, EngineError::Refused { status: 429, retry_after: Some(1..=600), .. }),
        "{refused}"
    );
    drop(busy);
    waiting.await.expect("an answer");
}

#[tokio::test]
async fn a_request_that_gives_up_leaves_the_queue() {
    let dir = models_dir(&names(3));
    let engine = engine_for(&dir, 1).await;
    let mut busy = engine.stream(&endless("m0")).await.expect("a stream").deltas;
    assert!(busy.next().await.expect("a piece").is_ok());
    let gone =
        tokio::time::timeout(Duration::from_millis(100), engine.generate(&ask("m1", "Hello", 1))).await;
    assert!(gone.is_err(), "{gone:?}");
    drop(busy);
    engine.generate(&ask("m2", "Hello", 1)).await.expect("an answer");
    assert_eq!((engine.loaded_models(), engine.loads()), (vec!["m2".to_owned()], 2));
}

#[tokio::test]
async fn a_context_that_cannot_be_allocated_is_an_error_and_the_engine_continues() {
    let dir = models_dir(&names(1));
    // 770 GB. Our own limit would refuse it before the system does.
    let huge = LlamaOptions { context: Some(1 << 25), memory_budget: u64::MAX, ..options(&dir) };
    let engine = LlamaEngine::new(huge);
    let request = ask("m0", "Hello", (1 << 25) - 100);
    let error = engine.generate(&request).await.expect_err("no such memory").to_string();
    assert!(error.contains("not enough memory for"), "{error}");
    engine.generate(&ask("m0", "Hello", 4)).await.expect("an answer");
    // Within our limit, it is refused before anything is loaded.
    let engine = LlamaEngine::new(LlamaOptions { context: Some(1 << 25), ..options(&dir) });
    let error = engine.generate(&ask("m0", "Hello", 4)).await.expect_err("too large").to_string();
    assert!(error.contains("but the limit for models is"), "{error}");
    assert_eq!(engine.loaded_models(), [""; 0]);
}

#[tokio::test]
async fn the_context_is_smaller_on_a_small_machine() {
    let dir = real_models_dir();
    let context_with = async |memory: u64| {
        let options = LlamaOptions { context: None, parallel: None, memory_budget: memory, ..options(&dir) };
        let engine = LlamaEngine::new(options);
        engine.generate(&ask("m0", "Hello", 1)).await.expect("an answer");
        let models = engine.list_models().await.expect("a list");
        engine.describe(&models[0]).await.and_then(|model| model.context).expect("a context")
    };
    assert_eq!(context_with(4 << 30).await, 8192);
    let small = context_with(300_000_000).await;
    assert!((2000..8000).contains(&small), "{small}");
}

#[tokio::test]
async fn a_cache_of_eight_bits_answers_with_half_the_memory() {
    let dir = real_models_dir();
    let question = ask("m0", "What is the capital of France? Answer in one sentence.", 16);
    let mut sizes = Vec::new();
    for (kv, flash_attention) in [
        (KvPrecision::F16, FlashAttention::Off),
        (KvPrecision::F16, FlashAttention::On),
        (KvPrecision::Q8, FlashAttention::Auto),
    ] {
        let engine = LlamaEngine::new(LlamaOptions { kv, flash_attention, ..options(&dir) });
        let answer = engine.generate(&question).await.expect("an answer").answer.content;
        assert!(answer.contains("Paris"), "{kv:?} {flash_attention:?}: {answer}");
        sizes.push(engine.running_models().await.expect("a list")[0].size.expect("a size"));
    }
    // 1024 tokens of 23,040 bytes.
    assert_eq!(sizes[1] - sizes[2], 1024 * 23_040 / 64 * 30);
    let options = LlamaOptions { kv: KvPrecision::Q8, flash_attention: FlashAttention::Off, ..options(&dir) };
    let error = LlamaEngine::new(options).generate(&question).await.expect_err("not possible").to_string();
    assert!(error.contains("flash"), "{error}");
}

#[tokio::test]
async fn a_prompt_need_not_be_read_again_after_a_restart() {
    let dir = models_dir(&names(1));
    let directory = dir.path().join("prefixes");
    let options = LlamaOptions {
        prefix_store: Some(PrefixStoreOptions { directory: directory.clone(), bytes: 64 << 20 }),
        ..options(&dir)
    };
    let long = ask("m0", &"The quick brown fox jumps over the lazy dog. ".repeat(20), 4);
    let first = {
        let engine = LlamaEngine::new(options.clone());
        engine.generate(&long).await.expect("an answer")
    };
    let prompt = first.usage.as_ref().expect("usage").prompt_tokens;
    assert_eq!(cached(&first), 0);
    let again = {
        let engine = LlamaEngine::new(options.clone());
        let again = engine.generate(&long).await.expect("an answer");
        // Another prompt with the same beginning, too.
        let mut other = long.clone();
        other.messages.push(Message::new(Role::Assistant, "Yes."));
        other.messages.push(Message::new(Role::User, "Why?"));
        assert!(cached(&engine.generate(&other).await.expect("an answer")) > prompt / 2);
        again
    };
    assert_eq!((cached(&again), again.answer), (prompt - 1, first.answer));
    // A damaged file is ignored.
    for file in std::fs::read_dir(&directory).expect("saved").map(|entry| entry.expect("a file").path()) {
        let mut bytes = std::fs::read(&file).expect("a file");
        let middle = bytes.len() / 2;
        bytes[middle] ^= 1;
        std::fs::write(&file, bytes).expect("written");
    }
    let damaged = LlamaEngine::new(options.clone()).generate(&long).await.expect("an answer");
    assert_eq!(cached(&damaged), 0);
    // Not with another kind of cache, and not without the setting.
    let other = LlamaEngine::new(LlamaOptions { kv: KvPrecision::Q8, ..options.clone() });
    assert_eq!(cached(&other.generate(&long).await.expect("an answer")), 0);
    drop(other);
    let off = LlamaEngine::new(LlamaOptions { prefix_store: None, ..options });
    assert_eq!(cached(&off.generate(&long).await.expect("an answer")), 0);
}

#[tokio::test]
async fn vectors_of_a_model_that_answers_are_counted_and_replace_earlier_conversations() {
    let dir = models_dir(&names(1));
    let inputs = vec!["The cat sits on the mat.".to_owned()];
    let texts = EmbedRequest { model: "m0".into(), inputs: inputs.into(), ..EmbedRequest::default() };
    let alone = size_of_one(&dir).await;
    let engine = LlamaEngine::new(options(&dir));
    let vectors = engine.embed(&texts).await.expect("vectors").vectors;
    let with_vectors = size_now(&engine).await;
    drop(engine);
    // Scores of 49,152 words for each of 1024 tokens.
    assert!(with_vectors - alone >= 1024 * 49_152 * 4, "{alone}, {with_vectors}");

    let engine = LlamaEngine::new(LlamaOptions { memory_budget: with_vectors - 1, ..options(&dir) });
    let error = engine.embed(&texts).await.expect_err("no memory");
    assert!(matches!(error, EngineError::Refused { status: 429, .. }), "{error}");
    assert_eq!(size_now(&engine).await, alone);
    engine.generate(&ask("m0", "Hello", 2)).await.expect("an answer");
    drop(engine);

    let question = ask("m0", "What is the capital of France? Answer in one sentence.", 16);
    let engine = LlamaEngine::new(LlamaOptions { memory_budget: with_vectors, ..options(&dir) });
    let expected = engine.generate(&question).await.expect("an answer").answer.content;
    for sentence in ["The sea is wide and blue. ", "Every cat likes warm milk. "] {
        engine.generate(&ask("m0", &sentence.repeat(100), 2)).await.expect("an answer");
    }
    assert!(size_now(&engine).await > alone, "the memory has not grown");
    assert_eq!(engine.embed(&texts).await.expect("vectors").vectors, vectors);
    assert_eq!(size_now(&engine).await, with_vectors);
    assert_eq!(engine.generate(&question).await.expect("an answer").answer.content, expected);
}
