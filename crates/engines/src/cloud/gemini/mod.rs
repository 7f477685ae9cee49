//! Google's `generateContent` API for the Gemini models, and `batchEmbedContents` for embeddings.

mod answer;
mod call_id;
mod contents;
mod embed;
mod events;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod request;
mod wire_types;

use async_trait::async_trait;
use hob_core::{
    AnswerWarning, Cut, EmbedRequest, Embeddings, Engine, EngineError, GenerateRequest, Generation,
    GenerationStream, ModelInfo,
};

use reqwest::header::HeaderName;

use super::access::ProviderAccess;
use crate::embeddings::{EmbeddingCollector, ONLY_TEXT, OverlongPolicy, batches};
use crate::wire::client::{Endpoint, EndpointOptions, KeyHeader};
use crate::wire::error_response::unknown_model;
use crate::wire::resend::Resend;
use crate::wire::response::Response;
use crate::wire::stream_decoder::deltas;
use events::GeminiDecoder;

/// One page has at most a thousand models, which is more than there are.
const MODELS: &str = "/v1beta/models?pageSize=1000";

pub(super) struct Gemini {
    endpoint: Endpoint,
}

impl Gemini {
    pub(super) fn new(access: ProviderAccess<'_>) -> Result<Self, EngineError> {
        let endpoint = Endpoint::new(EndpointOptions {
            timeout: access.timeout,
            key: Some(KeyHeader {
                name: HeaderName::from_static("x-goog-api-key"),
                prefix: "",
                key: access.key,
            }),
            resend: Resend::Never,
            ..EndpointOptions::new(access.label, access.host)
        })?;
        Ok(Gemini { endpoint })
    }

    /// The head of the response, and the request's fields that have no effect on the answer.
    async fn ask(
        &self,
        request: &GenerateRequest,
        method: &str,
    ) -> Result<(Response, Vec<AnswerWarning>), EngineError> {
        let body = request::body(request).map_err(|unsupported| unsupported.into_error(&self.endpoint))?;
        let json = serde_json::to_vec(&body).map_err(|error| self.endpoint.malformed(error.to_string()))?;
        Ok((self.post(&request.model, method, json).await?, body.ignored))
    }

    async fn post(&self, model: &str, method: &str, json: Vec<u8>) -> Result<Response, EngineError> {
        let path = format!("/v1beta/models/{}:{method}", segment(model));
        let response = self.endpoint.post(&path, json).await?;
        self.endpoint.accept(response).await.map_err(|error| unknown_model(error, model))
    }
}

/// A model's name as one path segment, with any characters escaped. Google lists names with the prefix
/// `models/`, so callers may send it too.
fn segment(model: &str) -> String {
    let name = model.strip_prefix("models/").unwrap_or(model);
    name.bytes()
        .map(|byte| match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'-' | b'.' | b'_' => char::from(byte).to_string(),
            other => format!("%{other:02X}"),
        })
        .collect()
}

#[async_trait]
impl Engine for Gemini {
    fn key(&self) -> &str {
        self.endpoint.engine()
    }

    fn address(&self) -> &str {
        self.endpoint.host()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let (response, warnings) = self.ask(request, "generateContent").await?;
        let body = self.endpoint.body(response).await?;
        let generation =
            answer::read(&body, request).map_err(|error| error.into_engine_error(&self.endpoint, false))?;
        Ok(Generation { warnings, ..generation })
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        let (response, warnings) = self.ask(request, "streamGenerateContent?alt=sse").await?;
        Ok(GenerationStream {
            warnings,
            deltas: deltas(&self.endpoint, response, GeminiDecoder::new(request)),
        })
    }

    /// Google truncates a text that is too long and does not report it.
    async fn embed(&self, request: &EmbedRequest) -> Result<Embeddings, EngineError> {
        let Some(texts) = request.inputs.texts() else {
            return Err(self.endpoint.unsupported("input", Some(ONLY_TEXT)));
        };
        let mut collected = EmbeddingCollector::new(&self.endpoint, request, OverlongPolicy::Refuses);
        for inputs in batches(texts, embed::MAX_INPUTS) {
            let json = embed::body(request, inputs).to_string().into_bytes();
            let response = self.post(&request.model, "batchEmbedContents", json).await?;
            let body = self.endpoint.body(response).await?;
            let batch = embed::read(&body).map_err(|reason| self.endpoint.malformed(reason))?;
            collected.add(inputs.len(), batch)?;
        }
        Ok(Embeddings { cut: Cut::Unreported, ..collected.finish() })
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.endpoint.fetch(MODELS, answer::read_models).await
    }

    async fn health(&self) -> bool {
        self.endpoint.probe(MODELS).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hostile_model_name_stays_one_segment() {
        assert_eq!(segment("gemini-2.5-flash"), "gemini-2.5-flash");
        assert_eq!(segment("models/gemini-2.5-flash"), "gemini-2.5-flash");
        assert_eq!(segment("gemini/../../x?key=#"), "gemini%2F..%2F..%2Fx%3Fkey%3D%23");
        assert_eq!(segment("gemini é\r\n:%2e"), "gemini%20%C3%A9%0D%0A%3A%252e");
    }
}
