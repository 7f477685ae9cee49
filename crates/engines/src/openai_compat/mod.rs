//! Engines with an OpenAI-compatible API: vLLM, SGLang, llama.cpp's server and a LiteLLM proxy. They differ by the
//! constants of [`Style`].
//!
//! The submodules implement the wire format: the request, the answer and the stream. They know no engine by name, and
//! [`crate::cloud`] uses them for OpenAI.

pub mod answer;
mod chunk_template;
pub mod chunks;
pub(crate) mod embeddings;
pub mod request;
pub mod tool_calls;

use async_trait::async_trait;
use hob_core::{
    AnswerWarning, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation,
    GenerationStream, ModelInfo, ReplyMode,
};

use self::chunks::ChatChunkDecoder;
use self::request::{ChatBodyOptions, LengthField, ToolsField, body};
use crate::embeddings::OverlongPolicy;
use crate::wire::client::Endpoint;
use crate::wire::deltas::deltas;
use crate::wire::engine_error::unknown_model;
use crate::wire::response::Response;

/// How these engines differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Style {
    pub key: &'static str,
    /// False for a LiteLLM proxy, which accepts names that match a pattern.
    pub lists_every_model: bool,
    /// Whether the engine can truncate a text that is too long to embed.
    pub cuts_overlong: bool,
}

impl Style {
    pub const VLLM: Style = Style { key: "vllm", lists_every_model: true, cuts_overlong: true };
    pub const SGLANG: Style = Style { key: "sglang", lists_every_model: true, cuts_overlong: false };
    pub const LLAMACPP: Style = Style { key: "llamacpp", lists_every_model: true, cuts_overlong: false };
    pub const LITELLM: Style = Style { key: "litellm", lists_every_model: false, cuts_overlong: false };
}

/// An engine with an OpenAI-compatible API.
#[derive(Debug)]
pub struct OpenAiCompat {
    style: Style,
    endpoint: Endpoint,
}

impl OpenAiCompat {
    pub fn new(style: Style, endpoint: Endpoint) -> Self {
        OpenAiCompat { style, endpoint }
    }

    /// Sends the request, and retries once without tools if the engine rejects them.
    async fn ask(
        &self,
        request: &GenerateRequest,
        reply_mode: ReplyMode,
    ) -> Result<(Response, Vec<AnswerWarning>), EngineError> {
        let options =
            ChatBodyOptions { reply_mode, tools: ToolsField::Offered, length_field: LengthField::MaxTokens };
        let refused = match self.send(request, options).await {
            Ok(response) => return Ok((response, Vec::new())),
            Err(error) => error,
        };
        // A conversation that is too long would fail again, or lose its tools without need.
        let about_tools = matches!(refused, EngineError::Refused { status: 400, .. })
            && !request.tools.is_empty()
            && !refused.is_context_overflow();
        if !about_tools {
            return Err(refused);
        }
        match self.send(request, ChatBodyOptions { tools: ToolsField::Withheld, ..options }).await {
            Ok(response) => {
                tracing::warn!(engine = self.style.key, reason = %refused, "engine rejected the tools; answered without them");
                Ok((response, vec![AnswerWarning::ToolsDropped]))
            }
            // The request fails without tools too, so the tools were not the reason. The first error is the right
            // one.
            Err(_) => Err(refused),
        }
    }

    async fn send(
        &self,
        request: &GenerateRequest,
        options: ChatBodyOptions,
    ) -> Result<Response, EngineError> {
        post_chat(&self.endpoint, "/v1/chat/completions", request, options).await
    }
}

/// Sends a chat request and checks the status of the response.
pub(crate) async fn post_chat(
    endpoint: &Endpoint,
    path: &str,
    request: &GenerateRequest,
    options: ChatBodyOptions,
) -> Result<Response, EngineError> {
    let json = body(request, options).map_err(|error| endpoint.malformed(error.to_string()))?;
    let response = endpoint.post(path, json).await?;
    endpoint.accept(response).await.map_err(|error| unknown_model(error, &request.model))
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

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let overlong_policy =
            if self.style.cuts_overlong { OverlongPolicy::CutsOnRequest } else { OverlongPolicy::Refuses };
        embeddings::post(&self.endpoint, "/v1/embeddings", request, overlong_policy).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        let response = self.endpoint.accept(self.endpoint.get("/v1/models").await?).await?;
        let body = self.endpoint.body(response).await?;
        answer::read_models(&body).map_err(|reason| self.endpoint.malformed(reason))
    }

    async fn health(&self) -> bool {
        self.endpoint.probe("/v1/models").await
    }

    fn lists_every_model(&self) -> bool {
        self.style.lists_every_model
    }
}
