//! Errors of engines as HTTP errors, and what of them a caller can see.

use axum::http::StatusCode;
use hob_core::{CONTEXT_LENGTH_EXCEEDED, CallerRole, ContextOverflow, EngineError};

use super::ApiError;

/// The kind of errors that report trouble of an engine, not of the request.
const ENGINE_ERROR: &str = "engine_error";

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        let overflow = error.context_overflow();
        let failed =
            |status, code| ApiError { code: Some(code), ..Self::new(status, ENGINE_ERROR, message.clone()) };
        match error {
            EngineError::Unreachable { .. } => {
                let error = failed(StatusCode::BAD_GATEWAY, "engine_unreachable");
                ApiError {
                    message: format!("{message}. On the server's machine 'hob doctor' says what to do"),
                    ..error
                }
            }
            EngineError::Timeout { .. } => failed(StatusCode::GATEWAY_TIMEOUT, "engine_timeout"),
            EngineError::Malformed { .. } => failed(StatusCode::BAD_GATEWAY, "engine_answer_malformed"),
            EngineError::Interrupted { .. } => failed(StatusCode::BAD_GATEWAY, "engine_answer_interrupted"),
            EngineError::NotConfigured { .. } => {
                failed(StatusCode::SERVICE_UNAVAILABLE, "engine_not_configured")
            }
            EngineError::ModelNotFound { .. } => ApiError {
                param: Some("model".into()),
                code: Some("model_not_found"),
                ..Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
            },
            EngineError::Unsupported { field, .. } => {
                ApiError { code: Some("unsupported_by_engine"), ..Self::invalid(field, message) }
            }
            EngineError::Refused { status, param, code, retry_after, .. } => match overflow {
                Some(overflow) => Self::context_exceeded(overflow, message, param),
                // Its code for a refused key, such as `invalid_api_key`, would be read as one for the caller's.
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
    /// The error as this caller may see it. What an engine says of its own trouble may name addresses and repeat what others
    /// asked, so those who are not the owner get short words, and the log gets the rest.
    pub(crate) fn for_caller(self, role: CallerRole) -> Self {
        if self.kind != ENGINE_ERROR || role.may_see_engine_details() {
            return self;
        }
        tracing::warn!(status = self.status.as_u16(), error = %self.message, "an engine failed a caller");
        let words = match self.status {
            StatusCode::GATEWAY_TIMEOUT => "the engine took too long to answer",
            StatusCode::SERVICE_UNAVAILABLE => "the engine is not set up",
            _ if self.code == Some("engine_unreachable") => "the engine does not answer",
            _ => "the engine failed",
        };
        let message = format!("{words}. The owner of this server finds the reason in its log");
        ApiError { message, param: None, engine_code: None, ..self }
    }

    /// The engine's own error: its 4xx stay what they are, its 5xx are a bad gateway to our caller.
    fn refused(status: u16, message: String) -> Self {
        let known = StatusCode::from_u16(status).ok().filter(StatusCode::is_client_error);
        let (status, kind, code) = match known {
            Some(StatusCode::TOO_MANY_REQUESTS) => {
                (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "rate_limit_exceeded")
            }
            // The engine's key is ours to set, so its complaint must not look as if the caller's were wrong.
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                let message = format!("{message}. It is the server's own key that was refused, not yours");
                let error = Self::new(StatusCode::BAD_GATEWAY, ENGINE_ERROR, message);
                return ApiError { code: Some("engine_key_refused"), ..error };
            }
            Some(status) => (status, "invalid_request_error", "engine_refused"),
            None => (StatusCode::BAD_GATEWAY, ENGINE_ERROR, "engine_failed"),
        };
        ApiError { code: Some(code), ..Self::new(status, kind, message) }
    }

    /// A conversation that is too long, whatever the engine calls it: clients compare the code and search the message for the
    /// limit, and shorten the conversation by it.
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
