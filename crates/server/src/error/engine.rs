//! Errors of engines as HTTP errors, and what of them a caller can see.

use std::num::NonZeroU32;

use axum::http::StatusCode;
use hob_core::{CONTEXT_LENGTH_EXCEEDED, CallerRole, ContextOverflow, EngineError};
use hob_models::catalogue;

use super::ApiError;

/// The type of errors of an engine, not of the request.
const ENGINE_ERROR: &str = "engine_error";

/// Seconds after which an engine that was started may answer.
const RETRY_AFTER: u64 = 5;

/// Whether clients of Anthropic and OpenAI have a name of this kind built in, so that changing the request is not the way out.
fn is_built_in(model: &str) -> bool {
    ["claude-", "gpt-"].iter().any(|family| model.starts_with(family))
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        let overflow = error.context_overflow();
        let failed =
            |status, code| ApiError { code: Some(code), ..Self::new(status, ENGINE_ERROR, message.clone()) };
        match error {
            EngineError::Unreachable { .. } => {
                let error = failed(StatusCode::BAD_GATEWAY, "engine_unreachable");
                let message = format!("{message}. Run 'hob doctor' on the server's machine");
                ApiError { message, retry_after: Some(RETRY_AFTER), ..error }
            }
            EngineError::Limit(limit) => Self::limit_reached(limit),
            EngineError::Timeout { .. } => failed(StatusCode::GATEWAY_TIMEOUT, "engine_timeout"),
            EngineError::Malformed { .. } => failed(StatusCode::BAD_GATEWAY, "engine_answer_malformed"),
            EngineError::Interrupted { .. } => failed(StatusCode::BAD_GATEWAY, "engine_answer_interrupted"),
            EngineError::NotConfigured { .. } => {
                failed(StatusCode::SERVICE_UNAVAILABLE, "engine_not_configured")
            }
            EngineError::ModelNotFound { model, .. } => {
                let error = Self::model_not_found(message);
                if is_built_in(&model) {
                    let advice = "To let another model answer for this name, add it to [models.aliases] in config.toml and \
                                  restart the server";
                    error.with_owner_advice(advice)
                } else if catalogue::find(&model).is_some() {
                    error.with_owner_advice(&format!("Download it with 'hob model pull {model}'"))
                } else {
                    error
                }
            }
            EngineError::Unsupported { field, .. } => {
                ApiError { code: Some("unsupported_by_engine"), ..Self::invalid(field, message) }
            }
            EngineError::Refused { status, param, code, retry_after, .. } => match overflow {
                Some(overflow) => Self::context_exceeded(overflow, message, param),
                // An engine's code for a refused key, such as `invalid_api_key`, would look like one about the caller's key.
                None => ApiError {
                    param,
                    engine_code: code.filter(|_| !matches!(status, 401 | 403)).map(String::into_boxed_str),
                    retry_after,
                    ..Self::refused(status, message)
                },
            },
        }
    }
}

impl ApiError {
    pub(super) fn model_not_found(message: impl Into<String>) -> Self {
        ApiError {
            param: Some("model".into()),
            code: Some("model_not_found"),
            ..Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
        }
    }

    /// The same, and what the owner can do about it.
    pub(super) fn with_owner_advice(self, advice: &str) -> Self {
        let owner_advice_at = u32::try_from(self.message.len()).ok().and_then(NonZeroU32::new);
        ApiError { message: format!("{}. {advice}", self.message), owner_advice_at, ..self }
    }

    /// The error as this caller can see it. An engine's message can contain addresses and texts of other callers, so strangers
    /// get a short message and the log gets the rest.
    pub(crate) fn for_caller(self, role: CallerRole) -> Self {
        match role {
            CallerRole::Member => self.for_member().without_engine_details(role),
            CallerRole::Owner | CallerRole::Stranger | CallerRole::ChannelSender => {
                self.without_engine_details(role)
            }
        }
    }

    /// The same with advice that a member can follow.
    fn for_member(self) -> Self {
        let Some(at) = self.owner_advice_at else { return self };
        let what = self.message.get(..at.get() as usize).unwrap_or_default();
        let message = format!("{what}. Ask the owner of this server for this model");
        ApiError { message, owner_advice_at: None, ..self }
    }

    fn without_engine_details(self, role: CallerRole) -> Self {
        if self.kind != ENGINE_ERROR || role.may_see_engine_details() {
            return self;
        }
        tracing::warn!(
            status = self.status.as_u16(),
            error = %self.message,
            "the engine failed; the caller gets a short message. 'hob doctor' checks the engines"
        );
        let words = match self.status {
            StatusCode::GATEWAY_TIMEOUT => "the engine took too long to answer",
            StatusCode::SERVICE_UNAVAILABLE => "the engine is not configured",
            _ if self.code == Some("engine_unreachable") => "the engine does not answer",
            _ => "the engine failed",
        };
        let message = format!("{words}. The reason is in the server's log");
        ApiError { message, param: None, engine_code: None, ..self }
    }

    /// An error status of an engine: 4xx is passed on, 5xx becomes 502.
    fn refused(status: u16, message: String) -> Self {
        let known = StatusCode::from_u16(status).ok().filter(StatusCode::is_client_error);
        let (status, kind, code) = match known {
            Some(StatusCode::TOO_MANY_REQUESTS) => {
                (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "rate_limit_exceeded")
            }
            // The engine's key is the server's, so the error must not look as if the caller's key were wrong.
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                let message = format!("{message}. The engine refused the server's key, not yours");
                let error = Self::new(StatusCode::BAD_GATEWAY, ENGINE_ERROR, message);
                return ApiError { code: Some("engine_key_refused"), ..error };
            }
            Some(status) => (status, "invalid_request_error", "engine_refused"),
            None => (StatusCode::BAD_GATEWAY, ENGINE_ERROR, "engine_failed"),
        };
        ApiError { code: Some(code), ..Self::new(status, kind, message) }
    }

    /// A conversation that is too long, for any engine. Clients compare the code, search the message for the limit, and shorten
    /// the conversation.
    fn context_exceeded(overflow: ContextOverflow, message: String, param: Option<String>) -> Self {
        let message = match overflow.sentence() {
            Some(sentence) if !message.contains("maximum context length is") => {
                format!("{sentence} ({message})")
            }
            _ => message,
        };
        let param = param.unwrap_or_else(|| "messages".to_owned());
        ApiError { code: Some(CONTEXT_LENGTH_EXCEEDED), ..Self::invalid(param, message) }
    }
}
