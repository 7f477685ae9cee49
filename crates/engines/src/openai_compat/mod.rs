//! Engines with an OpenAI-compatible API: vLLM, SGLang, llama.cpp's server and a LiteLLM proxy. They differ by the
//! constants of [`Style`].
//!
//! The submodules implement the wire format: the request, the answer and the stream. They know no engine by name, and
//! [`crate::cloud`] uses them for OpenAI.

pub mod answer;
mod chunk_template;
pub mod chunks;
mod completions;
pub(crate) mod embeddings;
mod fill_in_middle;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod infill;
mod legacy_logprobs;
pub(crate) mod media;
mod message_content;
pub(crate) mod reasoning_demands;
pub mod request;
mod rerank;
mod retry_without_tools;
mod style;
mod tokens;
pub mod tool_calls;

use std::collections::HashMap;
use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{
    AnswerWarning, CompletionRequest, DeltaStream, DetokenizeRequest, EmbedRequest, Embeddings, Engine,
    EngineError, GenerateRequest, Generation, GenerationStream, MediaAnswer, MediaRequest, ModelInfo, Prompt,
    ReplyMode, RerankRequest, Reranking, TokenizeRequest, Tokenized,
};
use parking_lot::Mutex;

use self::chunks::ChatChunkDecoder;
use self::completions::CompletionBodyOptions;
use self::fill_in_middle::GapMarkers;
use self::infill::InfillDecoder;
use self::reasoning_demands::ReasoningDemands;
use self::request::{ChatBodyOptions, LengthField, ReasoningFields, ToolsField};
pub use self::style::{ServerKind, Style};
use crate::embeddings::OverlongPolicy;
use crate::multiple_choices;
use crate::wire::client::Endpoint;
use crate::wire::error_response::unknown_model;
use crate::wire::response::Response;
use crate::wire::stream_decoder::deltas;

/// The models whose markers are remembered. A server has far fewer.
const MAX_KNOWN_MARKERS: usize = 64;

const NO_MARKERS: &str =
    "the model has no tokens to fill in the middle; choose a model for code, such as one of Qwen-Coder";

/// An engine with an OpenAI-compatible API.
#[derive(Debug, Clone)]
pub struct OpenAiCompat {
    style: Style,
    endpoint: Endpoint,
    /// The markers of the gap to fill, of the models that were asked to fill one; `None` for those without.
    gap_markers: Arc<Mutex<HashMap<String, Option<&'static GapMarkers>>>>,
    reasoning_demands: ReasoningDemands,
}

impl OpenAiCompat {
    pub fn new(style: Style, endpoint: Endpoint) -> Self {
        OpenAiCompat {
            style,
            endpoint,
            gap_markers: Arc::default(),
            reasoning_demands: ReasoningDemands::default(),
        }
    }

    /// Sends the request, and retries once without tools if the engine rejects them.
    async fn ask(
        &self,
        request: &GenerateRequest,
        reply_mode: ReplyMode,
    ) -> Result<(Response, Vec<AnswerWarning>), EngineError> {
        let options = ChatBodyOptions {
            reply_mode,
            tools: ToolsField::Offered,
            length_field: LengthField::MaxTokens,
            reasoning: match self.style.server {
                ServerKind::Generic => ReasoningFields::All,
                ServerKind::LlamaCpp | ServerKind::Vllm | ServerKind::Sglang => ReasoningFields::Text,
            },
        };
        let refused = match self.send(request, options).await {
            Ok(response) => return Ok((response, Vec::new())),
            Err(error) => error,
        };
        if !retry_without_tools::is_worth_a_retry(request, &refused) {
            return Err(refused);
        }
        match self.send(request, ChatBodyOptions { tools: ToolsField::Withheld, ..options }).await {
            Ok(response) => {
                tracing::warn!(
                    engine = self.style.key,
                    reason = %refused,
                    "the engine rejected the tools and answered without them. Use a model that supports \
                     tools"
                );
                Ok((response, vec![AnswerWarning::ToolsDropped]))
            }
            Err(error) => Err(retry_without_tools::error_of_both(refused, error)),
        }
    }

    async fn send(
        &self,
        request: &GenerateRequest,
        options: ChatBodyOptions,
    ) -> Result<Response, EngineError> {
        self.reasoning_demands.post_chat(&self.endpoint, "/v1/chat/completions", request, options).await
    }

    /// Sends a text to continue, with its suffix in the form that the server takes.
    async fn ask_to_complete(
        &self,
        request: &CompletionRequest,
        reply_mode: ReplyMode,
    ) -> Result<Response, EngineError> {
        let options = CompletionBodyOptions { reply_mode, server: self.style.server };
        match &request.suffix {
            Some(suffix) if self.style.server != ServerKind::Generic => {
                let Some(prefix) = request.prompt.text() else {
                    let hint = "with a suffix it must be text, not tokens";
                    return Err(self.endpoint.unsupported("prompt", Some(hint)));
                };
                let markers = self.gap_markers(&request.model).await?;
                let prompt = Prompt::Text(markers.prompt(prefix, suffix));
                completions::post(&self.endpoint, request, &prompt, options).await
            }
            _ => completions::post(&self.endpoint, request, &request.prompt, options).await,
        }
    }

    /// The markers that a model has for the texts around a gap.
    async fn gap_markers(&self, model: &str) -> Result<&'static GapMarkers, EngineError> {
        let known = self.gap_markers.lock().get(model).copied();
        let markers = match known {
            Some(markers) => markers,
            None => {
                let found = self.find_gap_markers(model).await?;
                let mut known = self.gap_markers.lock();
                if known.len() >= MAX_KNOWN_MARKERS {
                    known.clear();
                }
                known.insert(model.to_owned(), found);
                found
            }
        };
        markers.ok_or_else(|| self.endpoint.unsupported("suffix", Some(NO_MARKERS)))
    }

    async fn find_gap_markers(&self, model: &str) -> Result<Option<&'static GapMarkers>, EngineError> {
        for markers in &fill_in_middle::KNOWN {
            let mut has_all = true;
            for marker in markers.each() {
                has_all =
                    has_all && tokens::is_one_token(&self.endpoint, self.style.server, model, marker).await?;
            }
            if has_all {
                return Ok(Some(markers));
            }
        }
        Ok(None)
    }

    /// Sends the texts around a gap to llama.cpp, for the answer with the index `answer`.
    async fn ask_to_fill(
        &self,
        request: &CompletionRequest,
        reply_mode: ReplyMode,
        answer: u32,
    ) -> Result<Response, EngineError> {
        let json =
            infill::body(request, reply_mode, answer).map_err(|field| field.into_error(&self.endpoint))?;
        let response = self.endpoint.post("/infill", json).await?;
        self.endpoint.accept(response).await.map_err(|error| match error {
            EngineError::Refused { status: 501, message, .. } => {
                self.endpoint.unsupported("suffix", Some(&message))
            }
            other => unknown_model(other, &request.model),
        })
    }

    async fn filled(&self, request: &CompletionRequest, answer: u32) -> Result<Generation, EngineError> {
        let response = self.ask_to_fill(request, ReplyMode::Complete, answer).await?;
        let body = self.endpoint.body(response).await?;
        infill::read(&body, &request.model).map_err(|error| error.into_engine_error(&self.endpoint, false))
    }

    async fn stream_filled(
        &self,
        request: &CompletionRequest,
        answer: u32,
    ) -> Result<DeltaStream, EngineError> {
        let response = self.ask_to_fill(request, ReplyMode::Streamed, answer).await?;
        Ok(deltas(&self.endpoint, response, InfillDecoder))
    }

    /// Whether the request goes to llama.cpp's own path for gaps.
    fn has_gap_path(&self, request: &CompletionRequest) -> bool {
        request.suffix.is_some() && self.style.server == ServerKind::LlamaCpp
    }
}

#[async_trait]
impl Engine for OpenAiCompat {
    fn key(&self) -> &str {
        self.style.key
    }

    fn address(&self) -> &str {
        self.endpoint.host()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let (response, warnings) = self.ask(request, ReplyMode::Complete).await?;
        let body = self.endpoint.body(response).await?;
        let generation = answer::read(&body, &request.model)
            .map_err(|error| error.into_engine_error(&self.endpoint, false))?;
        Ok(Generation { warnings, ..generation })
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let (response, warnings) = self.ask(request, ReplyMode::Streamed).await?;
        Ok(GenerationStream {
            warnings,
            deltas: deltas(&self.endpoint, response, ChatChunkDecoder::new(request.answers())),
        })
    }

    async fn complete(&self, request: &CompletionRequest) -> Result<Generation, EngineError> {
        if self.has_gap_path(request) {
            let ask = |answer| self.filled(request, answer);
            return multiple_choices::collected(&self.endpoint, request.answers(), ask).await;
        }
        let response = self.ask_to_complete(request, ReplyMode::Complete).await?;
        let body = self.endpoint.body(response).await?;
        answer::read(&body, &request.model).map_err(|error| error.into_engine_error(&self.endpoint, false))
    }

    async fn stream_completion(&self, request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        if self.has_gap_path(request) {
            let deltas = self.stream_filled(request, 0).await?;
            let first = GenerationStream { warnings: Vec::new(), deltas };
            let shared = Arc::new((self.clone(), request.clone()));
            return Ok(multiple_choices::streamed(first, request.answers(), |answer| {
                let shared = Arc::clone(&shared);
                async move { shared.0.stream_filled(&shared.1, answer).await }
            }));
        }
        let response = self.ask_to_complete(request, ReplyMode::Streamed).await?;
        Ok(GenerationStream {
            warnings: Vec::new(),
            deltas: deltas(&self.endpoint, response, ChatChunkDecoder::new(request.answers())),
        })
    }

    async fn tokenize(&self, request: &TokenizeRequest) -> Result<Tokenized, EngineError> {
        tokens::tokenize(&self.endpoint, self.style.server, request).await
    }

    async fn detokenize(&self, request: &DetokenizeRequest) -> Result<String, EngineError> {
        tokens::detokenize(&self.endpoint, self.style.server, request).await
    }

    async fn rerank(&self, request: &RerankRequest) -> Result<Reranking, EngineError> {
        rerank::post(&self.endpoint, request).await
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let overlong_policy =
            if self.style.cuts_overlong { OverlongPolicy::CutsOnRequest } else { OverlongPolicy::Refuses };
        embeddings::post(&self.endpoint, "/v1/embeddings", request, overlong_policy).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.endpoint.fetch("/v1/models", answer::read_models).await
    }

    async fn media(&self, request: &MediaRequest) -> Result<MediaAnswer, EngineError> {
        media::post(&self.endpoint, &format!("/v1{}", request.task.path()), request).await
    }

    /// llama.cpp reports what its chat template supports.
    async fn describe(&self, model: &ModelInfo) -> Option<ModelInfo> {
        if self.style.server != ServerKind::LlamaCpp {
            return None;
        }
        let supported = self.endpoint.fetch("/props", answer::read_props).await.ok()?;
        Some(ModelInfo { capabilities: model.capabilities.or(supported), ..model.clone() })
    }

    async fn health(&self) -> bool {
        self.endpoint.probe("/v1/models").await
    }

    fn lists_every_model(&self) -> bool {
        self.style.lists_every_model
    }
}
