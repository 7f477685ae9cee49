//! The contract of an engine.

use std::sync::Arc;

use async_trait::async_trait;

use crate::completion::CompletionRequest;
use crate::device::ComputeDevice;
use crate::embed::{EmbedRequest, Embeddings};
use crate::engine_error::EngineError;
use crate::generate::{GenerateRequest, Generation};
use crate::media::{MediaAnswer, MediaRequest};
use crate::model::{ModelInfo, RunningModel};
use crate::rerank::{RerankRequest, Reranking};
use crate::stream::GenerationStream;
use crate::tokenize::{DetokenizeRequest, TokenizeRequest, Tokenized};

/// The key of the engine that sends conversations to cloud providers. It never replaces another engine silently.
pub const CLOUD: &str = "cloud";

/// A model server on this machine, a cloud provider, or a model in this process.
///
/// Dropping a future or a stream of an engine cancels the work behind it.
#[async_trait]
pub trait Engine: Send + Sync {
    /// The key under which the engine is configured, such as `ollama`.
    fn key(&self) -> &str;

    /// Where it listens, for people to read; empty when it has no address.
    fn address(&self) -> &str;

    /// The engines behind this one, if it is several servers under one key. The list can change.
    fn members(&self) -> Vec<Arc<dyn Engine>> {
        Vec::new()
    }

    /// The whole answer at once.
    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError>;

    /// The answer as it comes. An error here means that nothing was answered yet.
    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError>;

    /// Texts as vectors, where the engine can.
    async fn embed(&self, _request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        Err(cannot(self.key(), "embeddings"))
    }

    /// A text continued as it stands, where the engine can.
    async fn complete(&self, _request: &CompletionRequest) -> Result<Generation, EngineError> {
        Err(cannot(self.key(), "completions"))
    }

    /// The same as it comes. An error here means that nothing was written yet.
    async fn stream_completion(&self, _request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        Err(cannot(self.key(), "completions"))
    }

    /// A text as the tokens of a model, where the engine can.
    async fn tokenize(&self, _request: &TokenizeRequest) -> Result<Tokenized, EngineError> {
        Err(cannot(self.key(), "tokenize"))
    }

    /// Tokens of a model as text, where the engine can.
    async fn detokenize(&self, _request: &DetokenizeRequest) -> Result<String, EngineError> {
        Err(cannot(self.key(), "detokenize"))
    }

    /// Documents in the order in which they answer a question, where the engine can.
    async fn rerank(&self, _request: &RerankRequest) -> Result<Reranking, EngineError> {
        Err(cannot(self.key(), "rerank"))
    }

    /// Sound or pictures, where the engine has models for them.
    async fn media(&self, request: &MediaRequest) -> Result<MediaAnswer, EngineError> {
        Err(cannot(self.key(), request.task.name()))
    }

    /// The models it has.
    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError>;

    /// More about a model than [`Self::list_models`] returns, if the engine has details of single models.
    async fn describe(&self, _model: &ModelInfo) -> Option<ModelInfo> {
        None
    }

    /// Whether it answers. Takes at most two seconds.
    async fn health(&self) -> bool;

    /// Whether [`Self::list_models`] is complete. Some engines answer an unknown name with any model that is loaded; others accept
    /// models that they do not list.
    fn lists_every_model(&self) -> bool {
        true
    }

    /// Whether a caller who asks for `asked` means the model listed as `listed`.
    fn means(&self, asked: &str, listed: &str) -> bool {
        asked == listed
    }

    /// Loads a model before it is needed, where the engine can.
    async fn prepare(&self, _model: &str) -> Result<(), EngineError> {
        Ok(())
    }

    /// Frees the memory of a model, where the engine can.
    async fn unload(&self, _model: &str) -> Result<(), EngineError> {
        Err(EngineError::Unsupported {
            engine: self.key().to_owned(),
            field: "keep_alive".to_owned(),
            hint: Some("it decides itself which models are in memory".to_owned()),
        })
    }

    /// The models that are in memory now, if the engine reports them.
    async fn running_models(&self) -> Result<Vec<RunningModel>, EngineError> {
        Ok(Vec::new())
    }

    /// The graphics cards that it computes with, if it runs in this process and has started.
    async fn devices(&self) -> Vec<ComputeDevice> {
        Vec::new()
    }

    /// Reads the prompt of a request before it is asked, where the engine can keep it, so that the first real request that begins
    /// with the same messages and tools is answered sooner. Generates nothing. Requests take precedence, so success does not
    /// mean that the prompt was read.
    async fn warm(&self, _request: &GenerateRequest) -> Result<(), EngineError> {
        Ok(())
    }
}

/// The error of an engine that cannot do something at all.
fn cannot(engine: &str, what: &str) -> EngineError {
    EngineError::Unsupported { engine: engine.to_owned(), field: what.to_owned(), hint: None }
}
