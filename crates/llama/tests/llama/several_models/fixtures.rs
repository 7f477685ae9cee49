//! Engines with the same model under several names.

use std::path::Path;
use std::sync::Arc;

use hob_core::{Engine, GenerateRequest, MaxTokens, Message, Role, Temperature};
use hob_llama::{LlamaEngine, LlamaOptions};
use serde_json::{Map, json};
use tempfile::TempDir;

use crate::support::model_file;

/// A directory with the same model under several names.
pub fn models_dir(names: &[String]) -> TempDir {
    dir_of(&model_file(), names)
}

/// The same with this model.
pub fn dir_of(model: &Path, names: &[String]) -> TempDir {
    let dir = TempDir::new().expect("a directory for models");
    for name in names {
        let link = dir.path().join(format!("{name}.gguf"));
        std::os::unix::fs::symlink(model, link).expect("a link to the model");
    }
    dir
}

pub fn names(count: usize) -> Vec<String> {
    (0..count).map(|number| format!("m{number}")).collect()
}

pub fn options(dir: &TempDir) -> LlamaOptions {
    LlamaOptions { context: Some(1024), parallel: Some(4), threads: 1, ..LlamaOptions::new(dir.path()) }
}

pub fn ask(model: &str, question: &str, max_tokens: i64) -> GenerateRequest {
    GenerateRequest {
        model: model.into(),
        messages: vec![Message::new(Role::User, question)],
        temperature: Some(Temperature::new(0.0).expect("zero is allowed")),
        max_tokens: Some(MaxTokens::new(max_tokens).expect("positive")),
        ..GenerateRequest::default()
    }
}

pub fn endless(model: &str) -> GenerateRequest {
    GenerateRequest {
        extra: Map::from_iter([("ignore_eos".to_owned(), json!(true))]),
        ..ask(model, "Count forever.", 900)
    }
}

/// The memory of one loaded model.
pub async fn size_of_one(dir: &TempDir) -> u64 {
    let engine = LlamaEngine::new(options(dir));
    engine.prepare("m0").await.expect("loaded");
    size_now(&engine).await
}

/// The memory that the first model uses now.
pub async fn size_now(engine: &LlamaEngine) -> u64 {
    engine.running_models().await.expect("a list")[0].size.expect("a size")
}

/// An engine with memory for this many models, and a half.
pub async fn engine_for(dir: &TempDir, models: u64) -> Arc<LlamaEngine> {
    let one = size_of_one(dir).await;
    Arc::new(LlamaEngine::new(LlamaOptions { memory_budget: one * models + one / 2, ..options(dir) }))
}
