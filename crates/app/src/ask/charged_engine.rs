//! Charges what a run causes beside its own engine to the key of the run: the memory turns a question into a vector, and does not know
//! who asks.
//!
//! The work of a run stays in one task, so the task says whose run it is.

use std::future::Future;
use std::sync::Arc;

use async_trait::async_trait;
use hob_core::engine::CLOUD;
use hob_core::{
    CallerRights, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation,
    GenerationStream, ModelInfo,
};
use hob_telemetry::{RecordContext, RecordedEngine};

tokio::task_local! {
    static RUN: Arc<RecordContext>;
}

/// Does the work of a run. `context` says to whom its calls are charged; without a key, nothing is.
pub(crate) async fn charging<F: Future>(context: RecordContext, work: F) -> F::Output {
    match context.key {
        Some(_) => RUN.scope(Arc::new(context), work).await,
        None => work.await,
    }
}

/// An engine whose vectors are recorded for, and charged to, the key of the current run. Without one, it is the engine itself.
pub(crate) struct ChargedEngine(pub(crate) Arc<dyn Engine>);

#[async_trait]
impl Engine for ChargedEngine {
    fn key(&self) -> &str {
        self.0.key()
    }

    fn address(&self) -> &str {
        self.0.address()
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        match RUN.try_with(Arc::clone) {
            Ok(context) => {
                check_cloud(self.0.key(), &context)?;
                RecordedEngine::new(Arc::clone(&self.0), context).embed(request).await
            }
            Err(_) => self.0.embed(request).await,
        }
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        self.0.generate(request).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.0.stream(request).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.0.list_models().await
    }

    async fn health(&self) -> bool {
        self.0.health().await
    }

    fn lists_every_model(&self) -> bool {
        self.0.lists_every_model()
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        self.0.means(asked, listed)
    }

    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        self.0.prepare(model).await
    }
}

/// Refuses the cloud to a key that may not use it. The memory chose the engine, so no other check has seen it. The field is the one of a
/// search; passages for a question are then found by words.
fn check_cloud(engine: &str, context: &RecordContext) -> Result<(), EngineError> {
    let Some(key) = context.key.as_ref().filter(|_| engine == CLOUD) else { return Ok(()) };
    if (CallerRights { role: key.role, key: Some(Arc::clone(key)) }).may_use_cloud() {
        return Ok(());
    }
    let hint = format!(
        "the key '{}' may not use the cloud, and the memory's embedding model is there. Search by words, with the backend 'sqlite'",
        key.name
    );
    Err(EngineError::Unsupported { engine: engine.to_owned(), field: "backend".to_owned(), hint: Some(hint) })
}
