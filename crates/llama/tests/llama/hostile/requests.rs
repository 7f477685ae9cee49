//! Huge numbers, unknown fields, and prompts that need more memory.

use std::sync::Arc;

use hob_core::{
    AnswerWarning, Engine, GenerateRequest, Message, Role, Temperature, TokenizeInput, TokenizeRequest,
};
use hob_llama::{LlamaEngine, LlamaOptions};
use hob_testkit::gguf::{MetadataValue, copy_with_metadata};
use serde_json::{Map, Value, json};
use tempfile::TempDir;

use super::{MODEL, ask, engine, model_file, models_dir, named, options, real_models_dir, still_answers};

#[tokio::test]
async fn huge_numbers_are_harmless() {
    let engine = engine().await;
    let biases: Map<String, Value> = (0..60_000).map(|n| (n.to_string(), json!(-1e300))).collect();
    for (field, value) in [
        ("top_k", json!(4_611_686_018_427_387_904_i64)),
        ("top_k", json!(i64::MAX)),
        ("top_k", json!(-5)),
        ("repeat_last_n", json!(u64::MAX)),
        ("logit_bias", json!({"-1": 1e300, "2147483647": -1e300, "5": 1e300})),
        ("logit_bias", Value::Object(biases)),
    ] {
        let request = GenerateRequest {
            extra: Map::from_iter([(field.to_owned(), value)]),
            temperature: Some(Temperature::new(1.0).expect("allowed")),
            ..ask("Hello", 3)
        };
        engine.generate(&request).await.expect("an answer");
    }
    for value in [json!(1e300), json!(1e-300), json!(-1)] {
        let extra = Map::from_iter([("repeat_penalty".to_owned(), value)]);
        let error =
            engine.generate(&GenerateRequest { extra, ..ask("Hello", 3) }).await.expect_err("refused");
        assert_eq!(named(&error), Some("repeat_penalty"), "{error}");
    }
    still_answers(&engine).await;
}

#[tokio::test]
async fn an_undocumented_field_is_ignored_and_named() {
    let extra = Map::from_iter([("future_field".to_owned(), json!([1]))]);
    let generation =
        engine().await.generate(&GenerateRequest { extra, ..ask("Hello", 1) }).await.expect("an answer");
    assert_eq!(generation.warnings, [AnswerWarning::Ignored("future_field".into())]);
}

#[tokio::test]
async fn memory_grows_with_the_requests() {
    let dir = real_models_dir();
    let engine = Arc::new(LlamaEngine::new(LlamaOptions {
        context: None,
        threads: 2,
        ..LlamaOptions::new(dir.path())
    }));
    // Together more than a model begins with, while others are being answered.
    let capitals = [("France", "Paris"), ("Italy", "Rome"), ("Spain", "Madrid"), ("Japan", "Tokyo")];
    let filler = "The sea is wide and blue. ".repeat(60);
    let running = capitals.map(|(country, capital)| {
        let engine = Arc::clone(&engine);
        let question = format!("{filler}\nWhat is the capital of {country}? Answer in one sentence.");
        tokio::spawn(async move {
            let answer = engine.generate(&ask(&question, 1024)).await.expect("an answer").answer;
            assert!(answer.content.contains(capital), "{country}: {}", answer.content);
        })
    });
    for answer in running {
        answer.await.expect("its own answer");
    }
}

#[tokio::test]
async fn a_prompt_that_was_read_ahead_is_not_read_again() {
    let dir = models_dir();
    let engine = LlamaEngine::new(options(&dir));
    let system = Message::new(Role::System, "You are a helpful assistant of few words. ".repeat(20));
    let ahead = GenerateRequest { messages: vec![system.clone()], ..ask("", 1) };
    engine.warm(&ahead).await.expect("read");
    let read = engine.computed_tokens();
    let mut request = ask("Hello", 1);
    request.messages.insert(0, system);
    let usage = engine.generate(&request).await.expect("an answer").usage.expect("usage");
    let cached = usage.cached_tokens.expect("told");
    assert!(read > 150 && cached + 20 >= usage.prompt_tokens, "{cached} of {} tokens", usage.prompt_tokens);
    // Reading ahead blocks no request, and leaves nothing behind when cancelled.
    let long = GenerateRequest {
        messages: vec![Message::new(Role::System, "Once upon a time. ".repeat(150))],
        ..ask("", 1)
    };
    let hello = ask("Hello", 1);
    let (warmed, answered) = tokio::join!(engine.warm(&long), engine.generate(&hello));
    warmed.expect("given up or done");
    answered.expect("an answer");
}

#[tokio::test]
async fn a_word_of_any_length_is_split_into_tokens() {
    // Tokenizers whose words llama.cpp finds with regular expressions.
    for tokenizer in ["gpt-4o", "tekken", "deepseek-v3", "exaone-moe"] {
        let dir = TempDir::new().expect("a directory for models");
        let entries = [("tokenizer.ggml.pre", MetadataValue::Text(tokenizer))];
        copy_with_metadata(&model_file(), &dir.path().join("model.gguf"), &entries)
            .expect("a copy of the model");
        let engine = LlamaEngine::new(options(&dir));
        for (part, count) in [("a", 200_000), ("A", 200_000), ("é", 100_000), (" ", 200_000), ("=", 200_000)]
        {
            let text = part.repeat(count);
            let input = TokenizeInput::Text { text: text.clone(), add_special: false, parse_special: true };
            let request = TokenizeRequest { model: MODEL.into(), input, pieces: true };
            let tokenized = engine.tokenize(&request).await.expect("tokens");
            let pieces = tokenized.pieces.expect("asked for").concat();
            assert!(pieces == text.as_bytes(), "{tokenizer}: {} bytes of {part:?}", pieces.len());
        }
    }
}
