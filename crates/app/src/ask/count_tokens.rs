//! How many tokens a request has before it is answered.

use hob_core::token_estimate::whole_prompt_tokens;
use hob_core::{AskError, Caller, EngineError, GenerateRequest, TokenizeInput, TokenizeRequest};

use super::AskService;

/// The tokens of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenCount {
    pub tokens: u64,
    /// Whether the engine cannot count, and Hob did by the length of the texts.
    pub is_estimate: bool,
}

impl AskService {
    /// Counts without answering. The model must be one that would answer.
    pub async fn count_tokens(
        &self,
        request: GenerateRequest,
        caller: &Caller,
    ) -> Result<TokenCount, AskError> {
        let estimate = TokenCount { tokens: whole_prompt_tokens(&request), is_estimate: true };
        let request = TokenizeRequest {
            model: request.model.clone(),
            input: TokenizeInput::Conversation(Box::new(request)),
            pieces: false,
        };
        match self.tokenize(request, caller).await {
            Ok(tokenized) => Ok(TokenCount { tokens: tokenized.tokens.len() as u64, is_estimate: false }),
            // A conversation that is too long for its model can be counted.
            Err(AskError::Engine(error)) if error.is_context_overflow() => {
                let length = error.context_overflow().and_then(|overflow| overflow.length);
                Ok(length.map_or(estimate, |tokens| TokenCount { tokens, is_estimate: false }))
            }
            // It has no tokenizer to ask, or none for pictures.
            Err(AskError::Engine(
                EngineError::Unsupported { .. } | EngineError::Refused { .. } | EngineError::Malformed { .. },
            )) => Ok(estimate),
            Err(error) => Err(error),
        }
    }
}
