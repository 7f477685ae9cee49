//! Errors of stored responses and conversations.

use axum::http::StatusCode;
use hob_db::DatabaseError;

use super::ApiError;

impl ApiError {
    pub(crate) fn no_response_store() -> Self {
        let message = "this server stores no responses. Start it with 'hob serve'";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).coded("no_response_store")
    }

    /// A response or a conversation cannot be read or written. The reason can name files, so it is only logged.
    pub(crate) fn store_failed(error: DatabaseError) -> Self {
        tracing::warn!(%error, "stored responses cannot be used. 'hob doctor' checks the database");
        Self::of_store(&error, Self::store_unavailable())
    }

    pub(crate) fn store_unavailable() -> Self {
        let message = "stored responses cannot be used. The server's log has the reason";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message).coded("response_store_failed")
    }

    pub(super) fn missing(param: &str, code: &'static str, message: String) -> Self {
        let error = Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message);
        ApiError { param: Some(param.to_owned()), code: Some(code), ..error }
    }

    pub(crate) fn no_such_response(id: &str) -> Self {
        Self::missing("response_id", "response_not_found", format!("response '{id}' does not exist"))
    }

    pub(crate) fn no_such_conversation(id: &str) -> Self {
        let message = format!("conversation '{id}' does not exist");
        Self::missing("conversation", "conversation_not_found", message)
    }

    pub(crate) fn no_such_item(id: &str) -> Self {
        Self::missing("item_id", "item_not_found", format!("item '{id}' does not exist"))
    }

    /// A request continues the response `id`, and `missing` is not stored: it, or one that it continues.
    pub(crate) fn no_previous_response(id: &str, missing: &str) -> Self {
        let message = match id == missing {
            true => format!("previous response '{id}' does not exist, or was not stored"),
            false => format!("previous response '{id}' continues '{missing}', which is not stored any more"),
        };
        ApiError {
            code: Some("previous_response_not_found"),
            ..Self::invalid("previous_response_id", message)
        }
    }

    pub(crate) fn conversation_full() -> Self {
        let message = "the conversation is full. Delete items of it, or begin another one";
        ApiError { code: Some("conversation_full"), ..Self::invalid("conversation", message) }
    }

    pub(crate) fn conversation_locked() -> Self {
        let message = "another response is being added to this conversation. Wait until it is complete";
        ApiError { code: Some("conversation_locked"), ..Self::invalid("conversation", message) }
    }

    pub(crate) fn too_many_background_runs() -> Self {
        let message = "too many responses run in the background. Wait until one is complete, or cancel one";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some("rate_limit_exceeded"), retry_after: Some(5), ..error }
    }

    /// The end of a stream whose response was cancelled.
    pub(crate) fn response_cancelled() -> Self {
        Self::new(StatusCode::CONFLICT, "invalid_request_error", "the response was cancelled")
            .coded("response_cancelled")
    }

    /// The end of a response in the background that cannot be stored.
    pub(crate) fn response_too_large() -> Self {
        let message = "the response is too large to be stored. Ask without 'background'";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message)
    }

    /// A response in the background whose events cannot be read, or not any more.
    pub(crate) fn no_events(message: &str) -> Self {
        ApiError { code: Some("no_events"), ..Self::invalid("stream", message) }
    }

    /// Names the field as an API calls it that is not chat completions.
    pub(crate) fn with_param(self, rename: impl FnOnce(&str) -> Option<String>) -> Self {
        let param = self.param.map(|param| rename(&param).unwrap_or(param));
        ApiError { param, ..self }
    }
}
