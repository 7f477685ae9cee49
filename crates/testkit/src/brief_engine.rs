//! An engine that writes short answers, for tests that ask a real model many questions.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{
    CompletionRequest, DetokenizeRequest, Engine, EngineError, GenerateRequest, Generation, GenerationStream,
    MaxTokens, ModelInfo, ResponseFormat, RunningModel, TokenizeRequest, Tokenized, ToolChoice,
};

/// Tokens of an answer in words.
const WORDS: i64 = 1;

/// Tokens of an answer in a form that needs more than one, such as a call.
const FORM: i64 = 48;

/// The engine behind it answers; only the limit of an answer is another one.
pub struct BriefEngine(pub Arc<dyn Engine>);

fn limit(format: &ResponseFormat, choice: Option<&ToolChoice>) -> Option<MaxTokens> {
    let is_free =
        *format == ResponseFormat::Text && matches!(choice, None | Some(ToolChoice::Auto | ToolChoice::None));
    MaxTokens::new(if is_free { WORDS } else { FORM }).ok()
}

fn brief(request: &GenerateRequest) -> GenerateRequest {
    let max_tokens = limit(&request.response_format, request.tool_choice.as_ref());
    GenerateRequest { max_tokens, ..request.clone() }
}

fn brief_text(request: &CompletionRequest) -> CompletionRequest {
    CompletionRequest { max_tokens: limit(&request.response_format, None), ..request.clone() }
}

#[async_trait]
impl Engine for BriefEngine {
    fn key(&self) -> &str {
        self.0.key()
    }

    fn address(&self) -> &str {
        self.0.address()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        self.0.generate(&brief(request)).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.0.stream(&brief(request)).await
    }

    async fn complete(&self, request: &CompletionRequest) -> Result<Generation, EngineError> {
        self.0.complete(&brief_text(request)).await
    }

    async fn stream_completion(&self, request: &CompletionRequest) -> Result<GenerationStream, EngineError> {
        self.0.stream_completion(&brief_text(request)).await
    }

    async fn tokenize(&self, request: &TokenizeRequest) -> Result<Tokenized, EngineError> {
        self.0.tokenize(request).await
    }

    async fn detokenize(&self, request: &DetokenizeRequest) -> Result<String, EngineError> {
        self.0.detokenize(request).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.0.list_models().await
    }

    async fn describe(&self, model: &ModelInfo) -> Option<ModelInfo> {
        self.0.describe(model).await
    }

    async fn health(&self) -> bool {
        self.0.health().await
    }

    fn means(&self, asked: &str, listed: &str) -> bool {
        self.0.means(asked, listed)
    }

    async fn prepare(&self, model: &str) -> Result<(), EngineError> {
        self.0.prepare(model).await
    }

    async fn unload(&self, model: &str) -> Result<(), EngineError> {
        self.0.unload(model).await
    }

    async fn running_models(&self) -> Result<Vec<RunningModel>, EngineError> {
        self.0.running_models().await
    }
}
