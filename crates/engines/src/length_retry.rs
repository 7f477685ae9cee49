//! Asks again without a limit of the answer, where the limit alone made an engine refuse, and adds a warning. Clients such as Claude
//! Code send one limit to every model, and some engines refuse a limit that the model's context cannot hold.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{
    AnswerDefaults, AnswerWarning, Engine, EngineError, GenerateRequest, Generation, GenerationStream,
    ModelInfo,
};

/// The same engine, which does not refuse a soft limit.
pub fn with_soft_limit(engine: Arc<dyn Engine>, request: &GenerateRequest) -> Arc<dyn Engine> {
    match request.is_max_tokens_soft {
        true => Arc::new(LengthRetry { engine }),
        false => engine,
    }
}

struct LengthRetry {
    engine: Arc<dyn Engine>,
}

/// What engines call the limit in their errors.
const WORDS: [&str; 4] = ["max_tokens", "max_completion_tokens", "completion tokens", "output tokens"];

/// Whether the limit may be the reason.
fn is_about_length(error: &EngineError) -> bool {
    let EngineError::Refused { status: 400 | 422, message, param, .. } = error else { return false };
    let names = |text: &str| WORDS.iter().any(|word| text.contains(word));
    error.is_context_overflow() || names(message) || param.as_deref().is_some_and(names)
}

/// The engine decides how long the answer gets.
fn unlimited(request: &GenerateRequest) -> GenerateRequest {
    GenerateRequest {
        max_tokens: None,
        defaults: AnswerDefaults { max_tokens: None, ..request.defaults },
        ..request.clone()
    }
}

fn without_limit() -> AnswerWarning {
    AnswerWarning::Ignored("max_tokens".to_owned())
}

#[async_trait]
impl Engine for LengthRetry {
    fn key(&self) -> &str {
        self.engine.key()
    }

    fn address(&self) -> &str {
        self.engine.address()
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        match self.engine.generate(request).await {
            Err(error) if is_about_length(&error) => {
                tracing::debug!(%error, "engine refused the limit of the answer; asking without it");
                let mut generation = self.engine.generate(&unlimited(request)).await?;
                generation.warnings.push(without_limit());
                Ok(generation)
            }
            outcome => outcome,
        }
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        match self.engine.stream(request).await {
            Err(error) if is_about_length(&error) => {
                tracing::debug!(%error, "engine refused the limit of the answer; asking without it");
                let mut stream = self.engine.stream(&unlimited(request)).await?;
                stream.warnings.push(without_limit());
                Ok(stream)
            }
            outcome => outcome,
        }
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.engine.list_models().await
    }

    async fn health(&self) -> bool {
        self.engine.health().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(status: u16, message: &str, param: Option<&str>) -> EngineError {
        EngineError::Refused {
            engine: "vllm".into(),
            status,
            message: message.into(),
            code: None,
            param: param.map(str::to_owned),
            retry_after: None,
        }
    }

    #[test]
    fn only_a_refusal_because_of_the_length_is_asked_again() {
        for (error, is_length) in [
            (
                refused(
                    400,
                    "'max_tokens' is too large: 32000. This model's maximum context length is 8192 tokens and your request has 42 input tokens",
                    None,
                ),
                true,
            ),
            (refused(400, "max_tokens: 128000 > 64000, which is the maximum", None), true),
            (refused(400, "This model supports at most 16384 completion tokens", None), true),
            (refused(422, "Input should be less than 4096", Some("max_tokens")), true),
            (refused(400, "temperature is odd", None), false),
            (refused(500, "max_tokens", None), false),
            (EngineError::Malformed { engine: "vllm".into(), reason: "max_tokens".into() }, false),
        ] {
            assert_eq!(is_about_length(&error), is_length, "{error}");
        }
    }
}
