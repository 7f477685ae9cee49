//! Ollama, with its native API: chat, embeddings, models and their download. Knows nothing of agents or of serving
//! HTTP.

mod chat_response;
mod embed;
mod forced_tool_call;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod generate;
mod models;
pub(crate) mod options;
mod pull;
mod request;

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{
    AnswerWarning, CompletionRequest, ContextOverflow, EmbedRequest, Embeddings, Engine, EngineError,
    GenerateRequest, Generation, GenerationStream, ModelInfo, REASONING_EFFORT, ReplyMode, RunningModel,
};

use serde_json::json;

use self::chat_response::OllamaDecoder;
use self::options::chosen_context;
use self::request::{Body, OllamaBodyOptions, Thinking};
use crate::embeddings::{EmbeddingCollector, MAX_INPUTS, ONLY_TEXT, OverlongPolicy, batches};
use crate::multiple_choices;
use crate::wire::client::Endpoint;
use crate::wire::error_response::unknown_model;
use crate::wire::response::Response;
use crate::wire::stream_decoder::deltas;
use crate::wire::unsupported_field::UnsupportedField;

pub use self::models::{ModelDetails, same_model};
pub use self::pull::{OllamaPullProgress, OllamaPullStream};

/// An Ollama server.
#[derive(Debug, Clone)]
pub struct Ollama {
    endpoint: Endpoint,
}

impl Ollama {
    pub const KEY: &'static str = "ollama";

    pub fn new(endpoint: Endpoint) -> Self {
        Ollama { endpoint }
    }

    /// Downloads a model and reports the progress. The stream ends without an error only after Ollama reported
    /// success.
    pub async fn pull(&self, model: &str) -> Result<OllamaPullStream, EngineError> {
        let response = self.post("/api/pull", json!({ "model": model }).to_string().into(), model).await?;
        Ok(pull::progress(&self.endpoint, response))
    }

    /// The details of one model, including its context window.
    pub async fn show(&self, model: &str) -> Result<ModelDetails, EngineError> {
        let response = self.post("/api/show", json!({ "model": model }).to_string().into(), model).await?;
        let body = self.endpoint.description(response).await?;
        models::read_details(&body).map_err(|reason| self.endpoint.malformed(reason))
    }

    /// Deletes a model.
    pub async fn delete(&self, model: &str) -> Result<(), EngineError> {
        let json = json!({ "model": model }).to_string().into();
        let response = self.endpoint.delete("/api/delete", json).await?;
        self.endpoint.accept(response).await.map_err(|error| unknown_model(error, model)).map(drop)
    }

    /// Gives a model a second name.
    pub async fn copy(&self, source: &str, destination: &str) -> Result<(), EngineError> {
        let json = json!({ "source": source, "destination": destination }).to_string();
        self.post("/api/copy", json.into(), source).await.map(drop)
    }

    /// Requests the answer with the index `answer`. If the model does not support `think`, retries without it and
    /// adds a warning.
    async fn chat(
        &self,
        request: &GenerateRequest,
        reply_mode: ReplyMode,
        answer: u32,
    ) -> Result<(Response, Vec<AnswerWarning>), EngineError> {
        let unsupported = |refused: UnsupportedField| refused.into_error(&self.endpoint);
        let mut warnings = request::check(request).map_err(unsupported)?;
        let mut form = OllamaBodyOptions { reply_mode, thinking: Thinking::Level, answer };
        loop {
            let body = Body::of(request, form).map_err(unsupported)?;
            let json =
                serde_json::to_vec(&body).map_err(|error| self.endpoint.malformed(error.to_string()))?;
            let refused = match self.post("/api/chat", json, &request.model).await {
                Ok(response) => return Ok((response, warnings)),
                Err(error) => self.with_limit(error, request).await,
            };
            let next = match &refused {
                EngineError::Refused { status: 400, message, .. } if request::asks_for_effort(request) => {
                    form.thinking.after_refusal(message)
                }
                _ => None,
            };
            form.thinking = next.ok_or(refused)?;
            if form.thinking == Thinking::LeftOut {
                warnings.push(AnswerWarning::Ignored(REASONING_EFFORT.to_owned()));
            }
        }
    }

    async fn whole(&self, request: &GenerateRequest, answer: u32) -> Result<Generation, EngineError> {
        let (response, warnings) = self.chat(request, ReplyMode::Complete, answer).await?;
        let body = self.endpoint.body(response).await?;
        let generation = chat_response::read_whole(&body, request)
            .map_err(|error| error.into_engine_error(&self.endpoint, false))?;
        Ok(Generation { warnings, ..generation })
    }

    async fn streamed(
        &self,
        request: &GenerateRequest,
        answer: u32,
    ) -> Result<GenerationStream, EngineError> {
        let (response, warnings) = self.chat(request, ReplyMode::Streamed, answer).await?;
        Ok(GenerationStream {
            warnings,
            deltas: deltas(&self.endpoint, response, OllamaDecoder::new(request)),
        })
    }

    /// Requests the continuation with the index `answer`. The response is read with the settings of the request.
    async fn continuation(
        &self,
        request: &CompletionRequest,
        reply_mode: ReplyMode,
        answer: u32,
    ) -> Result<(Response, GenerateRequest, Vec<AnswerWarning>), EngineError> {
        let settings = request.settings();
        let unsupported = |refused: UnsupportedField| refused.into_error(&self.endpoint);
        let warnings = generate::check(request, &settings).map_err(unsupported)?;
        let body = generate::Body::of(request, &settings, reply_mode, answer).map_err(unsupported)?;
        let json = serde_json::to_vec(&body).map_err(|error| self.endpoint.malformed(error.to_string()))?;
        let response = match self.post("/api/generate", json, &request.model).await {
            Ok(response) => response,
            Err(EngineError::Refused { status: 400, message, .. })
                if message.contains("does not support insert") =>
            {
                return Err(self.endpoint.unsupported("suffix", Some(&message)));
            }
            Err(error) => return Err(self.with_limit(error, &settings).await),
        };
        Ok((response, settings, warnings))
    }

    /// The error, with the limit of the context if that is exceeded: Ollama does not name it, and clients search for it.
    async fn with_limit(&self, mut error: EngineError, request: &GenerateRequest) -> EngineError {
        let Some(overflow) = error.context_overflow().filter(|overflow| overflow.limit.is_none()) else {
            return error;
        };
        // The model can hold more than the context with which it runs, which is what counts.
        let running = self.endpoint.fetch("/api/ps", models::read_running_contexts).await.unwrap_or_default();
        let limit = match running.iter().find(|(name, _)| same_model(name, &request.model)) {
            Some((_, context)) => Some(*context),
            None => chosen_context(request),
        };
        if let EngineError::Refused { message, .. } = &mut error
            && let Some(sentence) = (ContextOverflow { limit, ..overflow }).sentence()
        {
            *message = format!("{sentence} ({message})");
        }
        error
    }

    async fn continued(&self, request: &CompletionRequest, answer: u32) -> Result<Generation, EngineError> {
        let (response, settings, warnings) = self.continuation(request, ReplyMode::Complete, answer).await?;
        let body = self.endpoint.body(response).await?;
        let generation = chat_response::read_whole(&body, &settings)
            .map_err(|error| error.into_engine_error(&self.endpoint, false))?;
        Ok(Generation { warnings, ..generation })
    }

    async fn stream_continued(
        &self,
        request: &CompletionRequest,
        answer: u32,
    ) -> Result<GenerationStream, EngineError> {
        let (response, settings, warnings) = self.continuation(request, ReplyMode::Streamed, answer).await?;
        let deltas = deltas(&self.endpoint, response, OllamaDecoder::new(&settings));
        Ok(GenerationStream { warnings, deltas })
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
        let ask = |answer| self.whole(request, answer);
        multiple_choices::collected(&self.endpoint, request.answers(), ask).await
    }

    /// The first answer is requested before the others, so that an error comes before the stream starts.
    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let first = self.streamed(request, 0).await?;
        if request.answers() <= 1 {
            return Ok(first);
        }
        let shared = Arc::new((self.clone(), request.clone()));
        Ok(multiple_choices::streamed(first, request.answers(), |answer| {
            let shared = Arc::clone(&shared);
            async move { shared.0.streamed(&shared.1, answer).await.map(|stream| stream.deltas) }
        }))
    }

    async fn complete(&self, request: &CompletionRequest) -> Result<Generation, EngineError> {
        let ask = |answer| self.continued(request, answer);
        multiple_choices::collected(&self.endpoint, request.answers(), ask).await
    }

    async fn stream_completion(&self, request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        let first = self.stream_continued(request, 0).await?;
        if request.answers() <= 1 {
            return Ok(first);
        }
        let shared = Arc::new((self.clone(), request.clone()));
        Ok(multiple_choices::streamed(first, request.answers(), |answer| {
            let shared = Arc::clone(&shared);
            async move { shared.0.stream_continued(&shared.1, answer).await.map(|stream| stream.deltas) }
        }))
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let Some(texts) = request.inputs.texts() else {
            return Err(self.endpoint.unsupported("input", Some(ONLY_TEXT)));
        };
        let mut collected = EmbeddingCollector::new(&self.endpoint, request, OverlongPolicy::CutsOnRequest);
        for inputs in batches(texts, MAX_INPUTS) {
            let json = serde_json::to_vec(&embed::Body::of(request, inputs))
                .map_err(|error| self.endpoint.malformed(error.to_string()))?;
            let response = self.post("/api/embed", json, &request.model).await?;
            let body = self.endpoint.body(response).await?;
            let batch = embed::read(&body).map_err(|reason| self.endpoint.malformed(reason))?;
            collected.add(inputs.len(), batch)?;
        }
        Ok(collected.finish())
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.endpoint.fetch("/api/tags", models::read_tags).await
    }

    async fn describe(&self, model: &ModelInfo) -> Option<ModelInfo> {
        Some(self.show(&model.id).await.ok()?.added_to(model))
    }

    async fn health(&self) -> bool {
        self.endpoint.probe("/api/tags").await
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        same_model(asked, listed)
    }

    /// Ollama loads the model for a conversation without messages, and answers nothing.
    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        let body = json!({ "model": model, "messages": [] }).to_string();
        let response = self.post("/api/chat", body.into(), model).await?;
        self.endpoint.body(response).await.map(drop)
    }

    async fn unload(&self, model: &str) -> Result<(), EngineError> {
        let body = json!({ "model": model, "messages": [], "keep_alive": 0 }).to_string();
        let response = self.post("/api/chat", body.into(), model).await?;
        self.endpoint.body(response).await.map(drop)
    }

    async fn running_models(&self) -> Result<Vec<RunningModel>, EngineError> {
        self.endpoint.fetch("/api/ps", models::read_running).await
    }
}
