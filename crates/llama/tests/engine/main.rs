//! The embedded engine with a real model. `./dev test` fetches it and says where it is.
#![expect(clippy::expect_used, reason = "a test that cannot set itself up should fail loudly")]
#![cfg(unix)]

mod answers;
mod completions;
mod concurrency;
// These call the processor's backend, which is a library that is loaded at the start then.
#[cfg(not(feature = "dynamic-backends"))]
mod exceptions;
mod formats_and_tools;
mod loading;
#[cfg(not(feature = "dynamic-backends"))]
mod products;
mod sliding_window;
mod tuning;
mod vectors;

use std::path::PathBuf;
use std::sync::Arc;

use hob_core::{
    Engine, EngineError, GenerateRequest, Generation, MaxTokens, Message, Role, Temperature, TokenizeInput,
    TokenizeRequest,
};
use hob_llama::{LlamaEngine, LlamaOptions};
use tempfile::TempDir;
use tokio::sync::OnceCell;

const MODEL: &str = "model";

/// The file that `./dev test` fetched.
fn model_file() -> PathBuf {
    let path = std::env::var_os("HOB_TEST_MODEL")
        .expect("HOB_TEST_MODEL is not set: these tests need a real model. Run them with './dev test'.");
    PathBuf::from(path)
}

/// A directory with the model in it under the name [`MODEL`].
fn models_dir() -> TempDir {
    let dir = TempDir::new().expect("a directory for models");
    std::os::unix::fs::symlink(model_file(), dir.path().join("model.gguf")).expect("a link to the model");
    dir
}

fn options(dir: &TempDir) -> LlamaOptions {
    LlamaOptions {
        context: Some(1024),
        // Tests run side by side; more threads than cores only wait for each other.
        threads: 1,
        ..LlamaOptions::new(dir.path())
    }
}

/// One engine for all tests that need nothing special of it, so that the model is loaded once.
async fn engine() -> Arc<LlamaEngine> {
    static ENGINE: OnceCell<(TempDir, Arc<LlamaEngine>)> = OnceCell::const_new();
    let (_, engine) = ENGINE
        .get_or_init(|| async {
            let dir = models_dir();
            let engine = Arc::new(LlamaEngine::new(options(&dir)));
            (dir, engine)
        })
        .await;
    Arc::clone(engine)
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

async fn answer(request: &GenerateRequest) -> Generation {
    engine().await.generate(request).await.expect("an answer")
}

async fn refusal(request: &GenerateRequest) -> EngineError {
    engine().await.generate(request).await.expect_err("a refusal")
}

async fn split(input: TokenizeInput) -> Vec<u32> {
    let request = TokenizeRequest { model: MODEL.into(), input, pieces: false };
    engine().await.tokenize(&request).await.expect("tokens").tokens
}
