//! Charges what a run causes beside its own engine to the key of the run: the memory turns a question into a vector, and does not know
//! who asks.
//!
//! The work of a run stays in one task, so the task says whose run it is.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{
    EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation, GenerationStream, KeyGrant,
    ModelInfo,
};

use crate::inference_in_progress::RecordContext;
use crate::recorded_engine::RecordedEngine;

tokio::task_local! {
    static RUN: Arc<RecordContext>;
}

/// Does the work of a run. `context` says to whom its calls are charged; without a key, nothing is.
pub async fn charging<F: Future>(context: RecordContext, work: F) -> F::Output {
    match context.key {
        Some(_) => RUN.scope(Arc::new(context), work).await,
        None => work.await,
    }
}

/// An engine whose vectors are recorded for, and charged to, the key of the current run. Without one, it is the engine itself.
pub struct ChargedEngine {
    pub engine: Arc<dyn Engine>,
    /// Refuses a key that may not use the engine. The engine was chosen without knowing who asks.
    pub check: fn(&str, &Arc<KeyGrant>) -> Result<(), EngineError>,
}

#[async_trait]
impl Engine for ChargedEngine {
    fn key(&self) -> &str {
        self.engine.key()
    }

    fn address(&self) -> &str {
        self.engine.address()
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        match RUN.try_with(Arc::clone) {
            Ok(context) => {
                if let Some(key) = &context.key {
                    (self.check)(self.engine.key(), key)?;
                }
                RecordedEngine::new(Arc::clone(&self.engine), context).embed(request).await
            }
            Err(_) => self.engine.embed(request).await,
        }
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        self.engine.generate(request).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.engine.stream(request).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.engine.list_models().await
    }

    async fn health(&self) -> bool {
        self.engine.health().await
    }

    fn lists_every_model(&self) -> bool {
        self.engine.lists_every_model()
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        self.engine.means(asked, listed)
    }

    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        self.engine.prepare(model).await
    }
}
