//! Ollama, over its native API: chat, embeddings, its models, and their download. Knows nothing of agents or of serving HTTP.

mod embed;
mod lines;
mod models;
mod options;
mod pull;
mod request;

use async_trait::async_trait;
use hob_core::{
    EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation, GenerationStream, ModelInfo,
};

use serde_json::json;

use self::lines::Lines;
use self::request::Body;
use crate::chat_completions::request::Delivery;
use crate::embeddings::{Gathered, Habit, MAX_INPUTS, batches};
use crate::openai_compat::unknown_model;
use crate::wire::client::Endpoint;
use crate::wire::deltas::deltas;
use crate::wire::response::Response;

pub use self::models::{ModelDetails, same_model};
pub use self::pull::{PullProgress, PullStream};

/// An Ollama server.
#[derive(Debug)]
pub struct Ollama {
    endpoint: Endpoint,
}

impl Ollama {
    pub const KEY: &'static str = "ollama";

    pub fn new(endpoint: Endpoint) -> Self {
        Ollama { endpoint }
    }

    /// Downloads a model, and tells how far it is. The stream ends well only after Ollama said that it has all of it.
    pub async fn pull(&self, model: &str) -> Result<PullStream, EngineError> {
        let response = self.post("/api/pull", json!({ "model": model }).to_string().into(), model).await?;
        Ok(pull::progress(&self.endpoint, response))
    }

    /// What Ollama knows of one model, its context window included.
    pub async fn show(&self, model: &str) -> Result<ModelDetails, EngineError> {
        let response = self.post("/api/show", json!({ "model": model }).to_string().into(), model).await?;
        let body = self.endpoint.body(response).await?;
        models::read_details(&body).map_err(|reason| self.endpoint.malformed(reason))
    }

    async fn chat(&self, request: &GenerateRequest, delivery: Delivery) -> Result<Response, EngineError> {
        let body = Body::of(request, delivery)
            .map_err(|refused| self.endpoint.unsupported(refused.field, refused.hint.as_deref()))?;
        let json = serde_json::to_vec(&body).map_err(|error| self.endpoint.malformed(error.to_string()))?;
        self.post("/api/chat", json, &request.model).await
    }

    async fn post(&self, path: &str, json: Vec<u8>, model: &str) -> Result<Response, EngineError> {
        let response = self.endpoint.post(path, json).await?;
        self.endpoint.accept(response).await.map_err(|error| unknown_model(error, model))
    }
}

#[async_trait]
impl Engine for Ollama {
    fn key(&self) -> &str {
        Self::KEY
    }

    fn address(&self) -> &str {
        self.endpoint.host()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let response = self.chat(request, Delivery::Whole).await?;
        let body = self.endpoint.body(response).await?;
        lines::read_whole(&body, request).map_err(|error| error.into_engine_error(&self.endpoint, false))
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let response = self.chat(request, Delivery::Streamed).await?;
        Ok(GenerationStream {
            warnings: Vec::new(),
            deltas: deltas(&self.endpoint, response, Lines::new(request)),
        })
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let mut gathered = Gathered::new(&self.endpoint, request, Habit::Obeys);
        for inputs in batches(&request.inputs, MAX_INPUTS) {
            let json = serde_json::to_vec(&embed::Body::of(request, inputs))
                .map_err(|error| self.endpoint.malformed(error.to_string()))?;
            let response = self.post("/api/embed", json, &request.model).await?;
            let body = self.endpoint.body(response).await?;
            let part = embed::read(&body).map_err(|reason| self.endpoint.malformed(reason))?;
            gathered.add(inputs.len(), part)?;
        }
        Ok(gathered.finish())
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        let response = self.endpoint.accept(self.endpoint.get("/api/tags").await?).await?;
        let body = self.endpoint.body(response).await?;
        models::read_tags(&body).map_err(|reason| self.endpoint.malformed(reason))
    }

    async fn health(&self) -> bool {
        self.endpoint.probe("/api/tags").await
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        same_model(asked, listed)
    }

    /// A conversation without messages makes Ollama load the model and say nothing.
    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        let body = json!({ "model": model, "messages": [] }).to_string();
        let response = self.post("/api/chat", body.into(), model).await?;
        self.endpoint.body(response).await.map(drop)
    }
}
