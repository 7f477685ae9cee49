//! Sends chat requests, also to providers that refuse a conversation without what the model thought, as DeepSeek and Kimi do while their
//! models think. Other services with the same models refuse it as an unknown field, so only a refusal shows what a provider demands.

use std::collections::HashSet;
use std::sync::Arc;

use hob_core::{EngineError, GenerateRequest, REASONING_CONTENT, Role};
use parking_lot::Mutex;

use super::request::{ChatBodyOptions, ReasoningFields, body};
use crate::wire::client::Endpoint;
use crate::wire::error_response::unknown_model;
use crate::wire::response::Response;

/// The models that are remembered. A service has far fewer of this kind.
const MAX_MODELS: usize = 64;

/// The models of one service that demand it.
#[derive(Debug, Clone, Default)]
pub(crate) struct ReasoningDemands(Arc<Mutex<HashSet<String>>>);

impl ReasoningDemands {
    /// Sends a chat request, and once more in the other form if the provider refuses it: with the reasoning if it demands that, or
    /// without if it was remembered for the model and is refused now. A refusal can have words of the caller, so what it demands is
    /// remembered only if the provider then accepts it.
    pub(crate) async fn post_chat(
        &self,
        endpoint: &Endpoint,
        path: &str,
        request: &GenerateRequest,
        options: ChatBodyOptions,
    ) -> Result<Response, EngineError> {
        let demanded = ChatBodyOptions { reasoning: ReasoningFields::Demanded, ..options };
        let is_known = self.0.lock().contains(&request.model);
        let (first, second) = if is_known { (demanded, options) } else { (options, demanded) };
        let refused = match post(endpoint, path, request, first).await {
            Err(error)
                if has_answers(request) && (is_known && is_bad_request(&error) || is_demand(&error)) =>
            {
                error
            }
            answered => return answered,
        };
        let response = match post(endpoint, path, request, second).await {
            Ok(response) => response,
            // It refuses both forms, so the reasoning is not the reason.
            Err(error) if is_bad_request(&error) => return Err(refused),
            Err(error) => return Err(error),
        };
        match is_known {
            true => _ = self.0.lock().remove(&request.model),
            false => self.remember(&request.model),
        }
        Ok(response)
    }

    fn remember(&self, model: &str) {
        let mut models = self.0.lock();
        if models.len() >= MAX_MODELS {
            models.clear();
        }
        models.insert(model.to_owned());
    }
}

/// Sends a chat request and checks the status of the response.
async fn post(
    endpoint: &Endpoint,
    path: &str,
    request: &GenerateRequest,
    options: ChatBodyOptions,
) -> Result<Response, EngineError> {
    let json = body(request, options).map_err(|error| endpoint.malformed(error.to_string()))?;
    let response = endpoint.post(path, json).await?;
    endpoint.accept(response).await.map_err(|error| unknown_model(error, &request.model))
}

/// Whether a conversation has answers, whose reasoning could be demanded.
fn has_answers(request: &GenerateRequest) -> bool {
    request.messages.iter().any(|message| message.role == Role::Assistant)
}

/// Whether a provider refuses what a request contains. Some answer 422 to an unknown field.
pub(super) fn is_bad_request(error: &EngineError) -> bool {
    matches!(error, EngineError::Refused { status: 400 | 422, .. })
}

/// Whether a provider refuses a conversation because reasoning is missing.
fn is_demand(error: &EngineError) -> bool {
    const WORDS: [&str; 4] = ["missing", "Missing", "must be passed back", "must include"];
    match error {
        EngineError::Refused { status: 400, message, .. } => {
            message.contains(REASONING_CONTENT) && WORDS.iter().any(|words| message.contains(words))
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_demand_is_known_by_its_words() {
        for (message, expected) in [
            ("The `reasoning_content` in the thinking mode must be passed back to the API.", true),
            ("Missing `reasoning_content` field in the assistant message at message index 2.", true),
            (
                "thinking is enabled but reasoning_content is missing in assistant tool call message at index 2",
                true,
            ),
            ("'messages.1' : for 'role:assistant' property 'reasoning_content' is unsupported", false),
            ("the field 'model' is missing", false),
        ] {
            let refused = |status| EngineError::Refused {
                engine: "litellm".into(),
                status,
                message: message.into(),
                code: None,
                param: None,
                retry_after: None,
            };
            assert_eq!(is_demand(&refused(400)), expected, "{message}");
            assert!(!is_demand(&refused(500)));
        }
    }
}
