//! The contract of everything that can answer, and how it fails.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use thiserror::Error;

use crate::context_overflow::ContextOverflow;
use crate::embed::{EmbedRequest, Embeddings};
use crate::generate::{GenerateRequest, Generation};
use crate::model::ModelInfo;
use crate::stream::GenerationStream;

/// The key of the engine that sends conversations to cloud providers. It never replaces another engine silently.
pub const CLOUD: &str = "cloud";

/// Something that answers: a server on this machine, a cloud provider, a model in this process.
///
/// Dropping a future or a stream of an engine cancels the work behind it.
#[async_trait]
pub trait Engine: Send + Sync {
    /// The key under which the engine is configured, such as `ollama`.
    fn key(&self) -> &str;

    /// Where it listens, for people to read; empty when it has no address.
    fn address(&self) -> &str;

    /// The engines that it stands for, where it is several servers under one key.
    fn members(&self) -> &[Arc<dyn Engine>] {
        &[]
    }

    /// The whole answer at once.
    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError>;

    /// The answer as it comes. An error here means that nothing was answered yet.
    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError>;

    /// Texts as vectors, where the engine can.
    async fn embed(&self, _request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        Err(EngineError::Unsupported {
            engine: self.key().to_owned(),
            field: "embeddings".to_owned(),
            hint: None,
        })
    }

    /// The models it has.
    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError>;

    /// Whether it answers, found out within two seconds.
    async fn health(&self) -> bool;

    /// Whether a name that is not in [`Self::list_models`] can be no model of this engine. Some engines answer a foreign
    /// name with whatever they have loaded, others know more models than they list.
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

    /// Reads the prompt of a request before it is asked, where the engine can keep it, so that the first real request that begins
    /// with the same messages and tools is answered sooner. Generates nothing. It gives way to real work, so success does not
    /// promise that the prompt was read.
    async fn warm(&self, _request: &GenerateRequest) -> Result<(), EngineError> {
        Ok(())
    }
}

/// How an engine fails. Every backend maps its trouble to one of these.
#[derive(Debug, Error)]
pub enum EngineError {
    /// There was no connection to it, so nothing of the question can have been seen by anybody.
    #[error("cannot reach {engine} at {address}: {reason}")]
    Unreachable { engine: String, address: String, reason: String },

    #[error("{engine} did not answer within {} s", after.as_secs_f32())]
    Timeout { engine: String, after: Duration },

    /// The engine answered with an error of its own.
    #[error("{engine} answered {status}: {message}")]
    Refused {
        engine: String,
        status: u16,
        message: String,
        /// The engine's own word for the error, such as `context_length_exceeded`, where it tells.
        code: Option<String>,
        /// The field the engine complains of, where it tells.
        param: Option<String>,
        /// Seconds after which the engine wants to be asked again.
        retry_after: Option<u64>,
    },

    #[error("{engine} has no model '{model}'{}", known(available))]
    ModelNotFound { engine: String, model: String, available: Vec<String> },

    /// The caller asked for something this engine cannot do.
    #[error("{engine} does not support '{field}'{}", hint.as_ref().map(|hint| format!(": {hint}")).unwrap_or_default())]
    Unsupported { engine: String, field: String, hint: Option<String> },

    /// The engine is not set up, such as a provider without a key.
    #[error("{engine} is not set up: {reason}")]
    NotConfigured { engine: String, reason: String },

    /// The engine's answer makes no sense.
    #[error("{engine} gave an answer that cannot be read: {reason}")]
    Malformed { engine: String, reason: String },

    /// The connection broke after the question went out, before or in the middle of the answer, or the engine reported an
    /// error in its middle.
    #[error("{engine} broke off its answer: {reason}")]
    Interrupted { engine: String, reason: String },
}

impl EngineError {
    /// What the engine says of a conversation that is too long for its model. Every engine has its own words for it.
    pub fn context_overflow(&self) -> Option<ContextOverflow> {
        let EngineError::Refused { status, message, code, .. } = self else { return None };
        ContextOverflow::read(*status, code.as_deref(), message)
    }

    /// Whether the conversation is too long for the model.
    pub fn is_context_overflow(&self) -> bool {
        self.context_overflow().is_some()
    }
}

fn known(available: &[String]) -> String {
    match available {
        [] => String::new(),
        names => format!("; it has {}", names.join(", ")),
    }
}
