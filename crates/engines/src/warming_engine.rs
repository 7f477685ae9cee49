//! An engine that processes prompts and answers nothing, for warm-up.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{
    Answer, Engine, EngineError, FinishReason, GenerateRequest, Generation, GenerationStream, ModelInfo,
};

/// An engine with empty answers that only processes the prompt, so that the agent's prompt is exactly that of a real run.
pub struct WarmingEngine(pub Arc<dyn Engine>);

#[async_trait]
impl Engine for WarmingEngine {
    fn key(&self) -> &str {
        self.0.key()
    }

    fn address(&self) -> &str {
        self.0.address()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        self.0.warm(request).await?;
        Ok(Generation {
            model: request.model.clone(),
            answer: Answer {
                content: String::new(),
                reasoning: None,
                tool_calls: Vec::new(),
                finish_reason: FinishReason::Stop,
                sealed_reasoning: Vec::new(),
                later_thoughts: Vec::new(),
                logprobs: None,
            },
            alternatives: Vec::new(),
            usage: None,
            warnings: Vec::new(),
        })
    }

    async fn stream(&self, _request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        Err(EngineError::Unsupported {
            engine: self.key().to_owned(),
            field: "stream".to_owned(),
            hint: None,
        })
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.0.list_models().await
    }

    async fn health(&self) -> bool {
        self.0.health().await
    }
}
