//! OpenAI: chat completions with an API key, and `max_completion_tokens` in place of `max_tokens`.

use async_trait::async_trait;
use hob_core::{
    EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation, GenerationStream,
    MediaAnswer, MediaRequest, ModelInfo, ReplyMode,
};

use super::access::ProviderAccess;
use crate::embeddings::OverlongPolicy;
use crate::openai_compat::answer;
use crate::openai_compat::chunks::ChatChunkDecoder;
use crate::openai_compat::embeddings;
use crate::openai_compat::media;
use crate::openai_compat::reasoning_demands::ReasoningDemands;
use crate::openai_compat::request::{ChatBodyOptions, LengthField, ReasoningFields, ToolsField};
use crate::wire::client::{Endpoint, EndpointOptions, KeyHeader};
use crate::wire::resend::Resend;
use crate::wire::response::Response;
use crate::wire::stream_decoder::deltas;

const MODELS: &str = "/models";

pub(super) struct OpenAi {
    endpoint: Endpoint,
    /// Of a compatible service in the place of OpenAI.
    reasoning_demands: ReasoningDemands,
}

impl OpenAi {
    pub(super) fn new(access: ProviderAccess<'_>) -> Result<Self, EngineError> {
        let endpoint = Endpoint::new(EndpointOptions {
            timeout: access.timeout,
            key: Some(KeyHeader::bearer(access.key)),
            resend: Resend::Never,
            ..EndpointOptions::new(access.label, access.host)
        })?;
        Ok(OpenAi { endpoint, reasoning_demands: ReasoningDemands::default() })
    }

    /// Every chat model of OpenAI accepts tools, so Hob does not retry without them.
    async fn ask(&self, request: &GenerateRequest, reply_mode: ReplyMode) -> Result<Response, EngineError> {
        let options = ChatBodyOptions {
            reply_mode,
            tools: ToolsField::Offered,
            length_field: LengthField::MaxCompletionTokens,
            reasoning: ReasoningFields::LeftOut,
        };
        self.reasoning_demands.post_chat(&self.endpoint, "/chat/completions", request, options).await
    }
}

#[async_trait]
impl Engine for OpenAi {
    fn key(&self) -> &str {
        self.endpoint.engine()
    }

    fn address(&self) -> &str {
        self.endpoint.host()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let response = self.ask(request, ReplyMode::Complete).await?;
        let body = self.endpoint.body(response).await?;
        answer::read(&body, &request.model).map_err(|error| error.into_engine_error(&self.endpoint, false))
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let response = self.ask(request, ReplyMode::Streamed).await?;
        Ok(GenerationStream {
            warnings: Vec::new(),
            deltas: deltas(&self.endpoint, response, ChatChunkDecoder::new(request.answers())),
        })
    }

    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        embeddings::post(&self.endpoint, "/embeddings", request, OverlongPolicy::Refuses).await
    }

    async fn media(&self, request: &MediaRequest) -> Result<MediaAnswer, EngineError> {
        media::post(&self.endpoint, request.task.path(), request).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.endpoint.fetch(MODELS, answer::read_models).await
    }

    async fn health(&self) -> bool {
        self.endpoint.probe(MODELS).await
    }
}
