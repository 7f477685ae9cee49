//! Model files: listed, loaded, unloaded, broken or too large.

use std::time::{Duration, Instant};

use futures::StreamExt;
use hob_core::{Engine, EngineError, GenerateRequest};
use hob_llama::{LlamaEngine, LlamaOptions};
use serde_json::{Map, json};

use super::{
    MODEL, ask, model_file, models_dir, options, real_engine, real_model_file, real_models_dir, refusal,
};

#[tokio::test]
async fn an_idle_model_is_unloaded_and_loaded_again() {
    let dir = models_dir();
    let engine = LlamaEngine::new(LlamaOptions { keep_alive: Duration::from_millis(50), ..options(&dir) });
    engine.generate(&ask("Hello", 1)).await.expect("an answer");
    let deadline = Instant::now() + Duration::from_secs(60);
    while !engine.loaded_models().is_empty() {
        assert!(Instant::now() < deadline, "the model stays");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    engine.generate(&ask("Hello", 1)).await.expect("an answer");
}

#[tokio::test]
async fn a_second_model_takes_the_place_of_an_idle_one_but_not_of_a_busy_one() {
    let dir = real_models_dir();
    std::os::unix::fs::symlink(real_model_file(), dir.path().join("other.gguf")).expect("a link");
    let options = options(&dir);
    // Room for one and a half.
    let one = std::fs::metadata(real_model_file()).expect("a size").len() + 200_000_000;
    let engine = LlamaEngine::new(LlamaOptions { memory_budget: one, ..options });
    let endless = GenerateRequest {
        extra: Map::from_iter([("ignore_eos".to_owned(), json!(true))]),
        ..ask("Count forever.", 900)
    };
    let mut busy = engine.stream(&endless).await.expect("a stream").deltas;
    assert!(busy.next().await.expect("a piece").is_ok());
    let other = GenerateRequest { model: "other".into(), ..ask("Hello", 1) };
    let waits = tokio::time::timeout(Duration::from_millis(300), engine.generate(&other)).await;
    assert!(waits.is_err(), "the other model did not wait: {waits:?}");
    assert_eq!(engine.loaded_models(), ["model"]);
    assert!(busy.next().await.expect("still going").is_ok());
    drop(busy);
    engine.generate(&other).await.expect("an answer");
    assert_eq!(engine.loaded_models(), ["other"]);
}

#[tokio::test]
async fn a_model_is_unloaded_on_request_but_not_while_it_answers() {
    let dir = models_dir();
    let engine = LlamaEngine::new(options(&dir));
    engine.prepare(MODEL).await.expect("loaded");
    let running = engine.running_models().await.expect("a list");
    assert_eq!(running.iter().map(|model| model.id.as_str()).collect::<Vec<_>>(), [MODEL]);
    assert!(running[0].size.is_some() && running[0].expires.is_some(), "{running:?}");
    let endless = GenerateRequest {
        extra: Map::from_iter([("ignore_eos".to_owned(), json!(true))]),
        ..ask("Count for ever.", 900)
    };
    let mut busy = engine.stream(&endless).await.expect("a stream").deltas;
    assert!(busy.next().await.expect("a piece").is_ok());
    let refused = engine.unload(MODEL).await.expect_err("in use").to_string();
    assert!(refused.contains("is in use"), "{refused}");
    assert!(busy.next().await.expect("still going").is_ok());
    drop(busy);
    engine.unload(MODEL).await.expect("unloaded");
    assert_eq!(engine.running_models().await.expect("a list"), []);
    engine.unload(MODEL).await.expect("nothing to do");
    engine.generate(&ask("Hello", 1)).await.expect("loaded anew");
}

#[tokio::test]
async fn broken_files_are_named_and_the_service_continues() {
    let dir = models_dir();
    let bytes = std::fs::read(model_file()).expect("the model");
    std::fs::write(dir.path().join("cut.gguf"), &bytes[..bytes.len() / 2]).expect("written");
    std::fs::write(dir.path().join("page.gguf"), b"<!DOCTYPE html><html></html>").expect("written");
    std::fs::write(dir.path().join("empty.gguf"), b"").expect("written");
    // Right up to its header, and of an architecture that does not exist.
    let mut foreign = bytes.clone();
    let name = b"general.architecture";
    let at = foreign.windows(name.len()).position(|window| window == name).expect("the key");
    let value = at + name.len() + 4 + 8;
    foreign[value..value + 5].copy_from_slice(b"zzzzz");
    std::fs::write(dir.path().join("strange.gguf"), &foreign).expect("written");
    let engine = LlamaEngine::new(options(&dir));
    for (model, reason) in
        [("cut", "is incomplete"), ("page", "web page"), ("empty", "too short"), ("strange", "zzzzz")]
    {
        let request = GenerateRequest { model: model.into(), ..ask("Hello", 1) };
        let error = engine.generate(&request).await.expect_err("unusable").to_string();
        assert!(error.contains(model) && error.contains(reason), "{error}");
        assert!(engine.health().await);
    }
    engine.generate(&ask("Hello", 1)).await.expect("an answer");
    let names: Vec<String> =
        engine.list_models().await.expect("a list").into_iter().map(|model| model.id).collect();
    assert_eq!(names.first().map(String::as_str), Some(MODEL));
    assert_eq!(names.len(), 5);
}

#[tokio::test]
async fn a_model_larger_than_the_memory_is_refused_with_both_numbers() {
    let dir = models_dir();
    let engine = LlamaEngine::new(LlamaOptions { memory_budget: 50 << 20, ..options(&dir) });
    let error = engine.generate(&ask("Hello", 1)).await.expect_err("too large").to_string();
    assert!(error.contains("50 MB") && error.contains("MB of memory"), "{error}");
}

#[tokio::test]
async fn an_unknown_model_is_an_error_with_the_known_ones() {
    let request = GenerateRequest { model: "gpt-9".into(), ..ask("Hello", 1) };
    let error = refusal(&request).await;
    assert_eq!(error.to_string(), "embedded has no model 'gpt-9'; it has model");
}

#[tokio::test]
async fn a_list_of_models_has_their_properties() {
    let models = real_engine().await.list_models().await.expect("a list");
    let [model] = models.as_slice() else {
        panic!("one model, got {models:?}");
    };
    assert_eq!((model.id.as_str(), model.context), (MODEL, Some(8192)));
    assert_eq!(model.quantization.as_deref(), Some("Q4_1"));
    assert!(model.parameters.is_some_and(|count| count > 130_000_000));
}

#[tokio::test]
async fn a_model_that_was_removed_no_longer_answers() {
    let dir = models_dir();
    let engine = LlamaEngine::new(options(&dir));
    engine.generate(&ask("Hello.", 1)).await.expect("an answer");
    std::fs::remove_file(dir.path().join("model.gguf")).expect("removed");
    let refused = engine.generate(&ask("Hello.", 1)).await.expect_err("it is gone, though still in memory");
    assert!(matches!(refused, EngineError::ModelNotFound { .. }), "{refused}");
}
