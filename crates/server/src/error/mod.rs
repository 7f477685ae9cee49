//! Errors as callers see them. The only place where an error becomes an HTTP status.
//!
//! This file has the type and its body; the files beside it have the errors, by subject. Knows no limit and no route: their numbers and
//! names are parameters.

mod access;
mod capabilities;
mod chats;
mod database;
mod engine;
mod format;
mod load;
mod request;
mod responses;
mod service;

use std::num::NonZeroU32;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

pub(crate) use access::LINK_ON_THE_MACHINE;
pub(crate) use format::ErrorFormat;

const TOO_MANY_WRONG_KEYS: &str = "too_many_wrong_keys";

/// Why the caller was refused; part of the answer, for the log.
#[derive(Clone)]
pub(crate) struct RefusalReason(pub(crate) String);

/// The result of a handler, and of what it calls.
pub(crate) type ApiResult<T> = Result<T, ApiError>;

/// An error of the server or of an engine.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    /// The type of error, as OpenAI clients know it.
    kind: &'static str,
    message: String,
    /// Where in the message advice begins that only the owner can follow.
    owner_advice_at: Option<NonZeroU32>,
    /// The field at fault, such as `messages[2].role`.
    param: Option<String>,
    code: Option<&'static str>,
    /// The engine's own code, which replaces ours in the body.
    engine_code: Option<Box<str>>,
    retry_after: Option<u64>,
    format: ErrorFormat,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        ApiError {
            status,
            kind,
            message: message.into(),
            owner_advice_at: None,
            param: None,
            code: None,
            engine_code: None,
            retry_after: None,
            format: ErrorFormat::OpenAi,
        }
    }

    /// The same with a code for programs.
    fn coded(self, code: &'static str) -> Self {
        ApiError { code: Some(code), ..self }
    }

    /// The same in the shape that the clients of an API expect.
    pub(crate) fn in_format(self, format: ErrorFormat) -> Self {
        ApiError { format, ..self }
    }

    /// The body of the error as an event of a stream whose head is already sent.
    pub(crate) fn event(&self, format: ErrorFormat) -> Vec<u8> {
        format.event(self)
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    #[cfg(test)]
    pub(crate) fn param(&self) -> Option<&str> {
        self.param.as_deref()
    }

    /// The code, as clients compare it. An engine's own comes first.
    pub(crate) fn code(&self) -> Option<&str> {
        self.engine_code.as_deref().or(self.code)
    }

    /// Whether the same request may be answered later, whatever the code is.
    pub(crate) fn is_rate_limit(&self) -> bool {
        self.status == StatusCode::TOO_MANY_REQUESTS
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
        let mut response = (self.status, content_type, self.format.body(&self)).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let is_refusal = matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_refusal || self.code == Some(TOO_MANY_WRONG_KEYS) {
            response.extensions_mut().insert(RefusalReason(self.message));
        }
        response
    }
}
