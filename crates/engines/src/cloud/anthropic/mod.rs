//! Anthropic's Messages API.

mod answer;
mod events;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod messages;
mod output_limits;
mod request;

use async_trait::async_trait;
use hob_core::{
    AnswerWarning, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation,
    GenerationStream, ModelInfo, ReplyMode,
};

use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use super::access::ProviderAccess;
use crate::wire::client::{Endpoint, EndpointOptions, KeyHeader};
use crate::wire::error_response::unknown_model;
use crate::wire::resend::Resend;
use crate::wire::response::Response;
use crate::wire::stream_decoder::deltas;
use events::AnthropicDecoder;
use output_limits::{OutputLimit, OutputLimits, SMALLEST_MAXIMUM};

/// The version of the API that this module implements. Anthropic makes incompatible changes only under a new date.
const VERSION: (HeaderName, HeaderValue) =
    (HeaderName::from_static("anthropic-version"), HeaderValue::from_static("2023-06-01"));

/// One page has at most a thousand models, which is all of them.
const MODELS: &str = "/v1/models?limit=1000";

pub(super) struct Anthropic {
    endpoint: Endpoint,
    limits: OutputLimits,
}

impl Anthropic {
    pub(super) fn new(access: ProviderAccess<'_>) -> Result<Self, EngineError> {
        let endpoint = Endpoint::new(EndpointOptions {
            timeout: access.timeout,
            key: Some(KeyHeader { name: HeaderName::from_static("x-api-key"), prefix: "", key: access.key }),
            headers: HeaderMap::from_iter([VERSION]),
            resend: Resend::Never,
            ..EndpointOptions::new(access.label, access.host)
        })?;
        Ok(Anthropic { endpoint, limits: OutputLimits::default() })
    }

    /// The head of the response, and what the caller should know.
    async fn ask(
        &self,
        request: &GenerateRequest,
        reply_mode: ReplyMode,
    ) -> Result<(Response, Vec<AnswerWarning>), EngineError> {
        if request.max_tokens().is_none()
            && !self.limits.is_known()
            && let Err(error) = self.list_models().await
        {
            tracing::warn!(
                %error,
                "Anthropic's models cannot be listed, so answers have at most {SMALLEST_MAXIMUM} tokens. Set \
                 max_tokens for longer ones"
            );
            self.limits.give_up();
        }
        let limit = self.limits.limit(request);
        match self.post(request, reply_mode, &limit).await {
            Err(error) => match limit.after(&error) {
                Some(smaller) => self.post(request, reply_mode, &smaller).await,
                None => Err(error),
            },
            accepted => accepted,
        }
    }

    async fn post(
        &self,
        request: &GenerateRequest,
        reply_mode: ReplyMode,
        limit: &OutputLimit,
    ) -> Result<(Response, Vec<AnswerWarning>), EngineError> {
        let mut body = request::body(request, reply_mode, limit.tokens)
            .map_err(|unsupported| unsupported.into_error(&self.endpoint))?;
        body.ignored.extend(limit.warning.clone());
        let json = serde_json::to_vec(&body).map_err(|error| self.endpoint.malformed(error.to_string()))?;
        let response = self.endpoint.post("/v1/messages", json).await?;
        let accepted = self.endpoint.accept(response).await;
        Ok((accepted.map_err(|error| unknown_model(error, &request.model))?, body.ignored))
    }
}

#[async_trait]
impl Engine for Anthropic {
    fn key(&self) -> &str {
        self.endpoint.engine()
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
            deltas: deltas(&self.endpoint, response, AnthropicDecoder::default()),
        })
    }

    async fn embed(&self, _request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let hint =
            "Anthropic has no embedding models; set [memory] embedding_model to a model of another engine";
        Err(self.endpoint.unsupported("embeddings", Some(hint)))
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        let listed = self.endpoint.fetch(MODELS, answer::read_models).await?;
        self.limits.replace(listed.output_limits);
        Ok(listed.models)
    }

    async fn health(&self) -> bool {
        self.endpoint.probe(MODELS).await
    }
}
