//! What the embedded engine does with requests and with model files.

mod answers;
mod completions;
mod concurrency;
mod drafts;
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

use std::path::Path;
use std::sync::Arc;

use hob_core::{
    Engine, EngineError, GenerateRequest, Generation, MaxTokens, Message, Role, Temperature, TokenizeInput,
    TokenizeRequest,
};
use hob_llama::{LlamaEngine, LlamaOptions};
use tokio::sync::OnceCell;

use crate::support::{MODEL, lasting_models_dir, model_file, models_dir, real_model_file, real_models_dir};

fn options(dir: impl AsRef<Path>) -> LlamaOptions {
    LlamaOptions {
        context: Some(1024),
        // Tests run side by side; more threads than cores only wait for each other.
        threads: 1,
        ..LlamaOptions::new(dir.as_ref())
    }
}

/// One engine for all tests that need nothing special of it, so that the model is loaded once.
async fn engine() -> Arc<LlamaEngine> {
    static ENGINE: OnceCell<Arc<LlamaEngine>> = OnceCell::const_new();
    let made = async || Arc::new(LlamaEngine::new(options(lasting_models_dir("short", &model_file()))));
    Arc::clone(ENGINE.get_or_init(made).await)
}

/// The same with the real model.
async fn real_engine() -> Arc<LlamaEngine> {
    static ENGINE: OnceCell<Arc<LlamaEngine>> = OnceCell::const_new();
    let made = async || Arc::new(LlamaEngine::new(options(lasting_models_dir("real", &real_model_file()))));
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

async fn answer(request: &GenerateRequest) -> Generation {
    engine().await.generate(request).await.expect("an answer")
}

async fn real_answer(request: &GenerateRequest) -> Generation {
    real_engine().await.generate(request).await.expect("an answer")
}

async fn refusal(request: &GenerateRequest) -> EngineError {
    engine().await.generate(request).await.expect_err("a refusal")
}

async fn split(input: TokenizeInput) -> Vec<u32> {
    let request = TokenizeRequest { model: MODEL.into(), input, pieces: false };
    engine().await.tokenize(&request).await.expect("tokens").tokens
}
