//! The shapes of an error body. Clients of each API show the message only if they find it where they expect it.

use std::borrow::Cow;

use axum::http::StatusCode;
use hob_core::{CONTEXT_LENGTH_EXCEEDED, ContextOverflow};
use serde::Serialize;
use serde_json::json;

use super::ApiError;

/// The shape of an error body.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum ErrorFormat {
    /// `{"detail": …, "error": {"message": …, "type": …, "param": …, "code": …}}`
    #[default]
    OpenAi,
    /// `{"type": "error", "error": {"type": …, "message": …}}`
    Anthropic,
    /// `{"error": "message"}`
    Ollama,
}

impl ErrorFormat {
    /// The shape that clients of a path expect.
    pub(crate) fn of_path(path: &str) -> Self {
        if path == "/v1/messages" || path.starts_with("/v1/messages/") {
            ErrorFormat::Anthropic
        } else if path.starts_with("/api/") {
            ErrorFormat::Ollama
        } else {
            ErrorFormat::OpenAi
        }
    }

    /// The body of a response.
    pub(super) fn body(self, error: &ApiError) -> Vec<u8> {
        match self {
            // Both forms in one body: `detail`, and `error` for OpenAI clients.
            ErrorFormat::OpenAi => to_vec(&ErrorBody { detail: &error.message, error: Details::of(error) }),
            ErrorFormat::Anthropic | ErrorFormat::Ollama => self.event(error),
        }
    }

    /// The same as an event of a stream.
    pub(super) fn event(self, error: &ApiError) -> Vec<u8> {
        match self {
            ErrorFormat::OpenAi => to_vec(&ErrorEvent { error: Details::of(error) }),
            ErrorFormat::Anthropic => to_vec(&json!({
                "type": "error",
                "error": { "type": anthropic_type(error), "message": anthropic_message(error) },
            })),
            ErrorFormat::Ollama => to_vec(&json!({ "error": error.message })),
        }
    }
}

fn to_vec(body: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec(body).unwrap_or_else(|_| br#"{"error":{}}"#.to_vec())
}

/// The message that clients of Anthropic expect.
fn anthropic_message(error: &ApiError) -> Cow<'_, str> {
    let overflow = error
        .code
        .filter(|code| *code == CONTEXT_LENGTH_EXCEEDED)
        .and_then(|code| ContextOverflow::read(error.status.as_u16(), Some(code), &error.message));
    match overflow.and_then(|overflow| overflow.anthropic_sentence(&error.message)) {
        Some(sentence) => Cow::Owned(sentence),
        None => naming_field(error),
    }
}

/// The message with the field at fault, for which this shape has no place of its own.
fn naming_field(error: &ApiError) -> Cow<'_, str> {
    match &error.param {
        Some(param) if !error.message.starts_with(param.as_str()) => {
            Cow::Owned(format!("{param}: {}", error.message))
        }
        _ => Cow::Borrowed(&error.message),
    }
}

/// The error types that Anthropic documents. Its clients choose by them, and by the status, whether to try again.
fn anthropic_type(error: &ApiError) -> &'static str {
    match error.status {
        StatusCode::UNAUTHORIZED => "authentication_error",
        StatusCode::FORBIDDEN => "permission_error",
        StatusCode::NOT_FOUND => "not_found_error",
        StatusCode::PAYLOAD_TOO_LARGE => "request_too_large",
        StatusCode::TOO_MANY_REQUESTS => "rate_limit_error",
        StatusCode::SERVICE_UNAVAILABLE => "overloaded_error",
        StatusCode::GATEWAY_TIMEOUT => "timeout_error",
        status if status.is_client_error() => "invalid_request_error",
        _ => "api_error",
    }
}

#[derive(Serialize)]
struct ErrorBody<'a> {
    detail: &'a str,
    error: Details<'a>,
}

#[derive(Serialize)]
struct ErrorEvent<'a> {
    error: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

impl<'a> Details<'a> {
    fn of(error: &'a ApiError) -> Self {
        Details {
            message: &error.message,
            kind: error.kind,
            param: error.param.as_deref(),
            code: error.code(),
        }
    }
}

#[cfg(test)]
mod tests {
    use hob_core::EngineError;
    use serde_json::Value;

    use super::*;

    fn body(path: &str) -> Value {
        let error = ApiError::invalid("model", "wrong");
        serde_json::from_slice(&ErrorFormat::of_path(path).body(&error)).unwrap()
    }

    #[test]
    fn an_error_has_the_shape_that_the_clients_of_the_path_expect() {
        let details =
            json!({ "message": "wrong", "type": "invalid_request_error", "param": "model", "code": null });
        assert_eq!(body("/v1/chat/completions"), json!({ "detail": "wrong", "error": details }));
        let anthropic = json!({ "type": "invalid_request_error", "message": "model: wrong" });
        for path in ["/v1/messages", "/v1/messages/count_tokens"] {
            assert_eq!(body(path), json!({ "type": "error", "error": anthropic }));
        }
        assert_eq!(body("/api/chat"), json!({ "error": "wrong" }));
    }

    #[test]
    fn a_prompt_that_is_too_long_is_reported_in_the_words_of_each_api() {
        let said = |message: &str| {
            let error = EngineError::Refused {
                engine: "vllm".into(),
                status: 400,
                message: message.into(),
                param: None,
                code: None,
                retry_after: None,
            };
            let error = ApiError::from(error);
            assert_eq!(error.status, StatusCode::BAD_REQUEST);
            let body: Value = serde_json::from_slice(&ErrorFormat::Anthropic.body(&error)).unwrap();
            assert_eq!(body["error"]["type"], "invalid_request_error");
            body["error"]["message"].as_str().unwrap().to_owned()
        };
        assert_eq!(
            said("request (12031 tokens) exceeds the available context size (2048 tokens)"),
            "prompt is too long: 12031 tokens > 2048 maximum"
        );
        let unknown = said("the input length exceeds the context length");
        assert!(unknown.starts_with("prompt is too long: vllm answered 400: "), "{unknown}");
        let fits =
            said("This model's maximum context length is 2048 tokens and your request has 42 input tokens");
        assert!(fits.starts_with("messages: "), "{fits}");
    }
}
