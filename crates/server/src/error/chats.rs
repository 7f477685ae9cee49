//! Errors of saved chats and assistants, and of files for a question.

use axum::http::StatusCode;
use hob_conversations::UnsavableValue;
use hob_db::DatabaseError;
use hob_memory::ReadError;

use super::ApiError;

impl ApiError {
    pub(crate) fn no_chats() -> Self {
        let message = "this server saves no chats. Start it with 'hob serve'";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).coded("no_chats")
    }

    /// A chat cannot be read or saved. The reason can name files, so it is only logged.
    pub(crate) fn chats_failed(error: DatabaseError) -> Self {
        tracing::warn!(%error, "saved chats cannot be used. 'hob doctor' checks the database");
        let message = "saved chats cannot be used. The server's log has the reason";
        let failed = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
        Self::of_store(&error, ApiError { code: Some("chats_failed"), ..failed })
    }

    pub(crate) fn no_such_chat(id: &str) -> Self {
        Self::missing("id", "chat_not_found", format!("chat '{id}' does not exist"))
    }

    pub(crate) fn no_such_turn(param: &str, id: &str) -> Self {
        Self::missing(param, "turn_not_found", format!("the chat has no turn '{id}'"))
    }

    pub(crate) fn no_such_assistant(id: &str) -> Self {
        Self::missing("id", "assistant_not_found", format!("assistant '{id}' does not exist"))
    }

    pub(crate) fn too_many_chats() -> Self {
        let message = "you have as many chats as this server saves. Delete some, and try again";
        ApiError { code: Some("too_many_chats"), ..Self::malformed(message) }
    }

    pub(crate) fn too_many_assistants() -> Self {
        let message = "you have as many assistants as this server saves. Delete one, and try again";
        ApiError { code: Some("too_many_assistants"), ..Self::malformed(message) }
    }

    pub(crate) fn chat_full() -> Self {
        let message = "the chat has as many turns or bytes as this server saves. Begin another chat";
        ApiError { code: Some("chat_full"), ..Self::malformed(message) }
    }

    pub(crate) fn chats_full() -> Self {
        let message = "your chats have as many bytes as this server saves. Delete some, and try again";
        ApiError { code: Some("chats_full"), ..Self::malformed(message) }
    }

    /// A file that no reader can read.
    pub(crate) fn unreadable_file(name: &str, error: &ReadError) -> Self {
        let (status, kind) = match error {
            ReadError::TooLarge { .. } | ReadError::TooMuchText { .. } => {
                (StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error")
            }
            ReadError::Busy => (StatusCode::SERVICE_UNAVAILABLE, "server_error"),
            _ => (StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error"),
        };
        Self::new(status, kind, format!("{name}: {error}")).coded("unreadable_file")
    }
}

impl From<UnsavableValue> for ApiError {
    fn from(value: UnsavableValue) -> Self {
        let UnsavableValue { field, message, is_too_large } = value;
        let error = Self::invalid(field, message);
        match is_too_large {
            true => ApiError { status: StatusCode::PAYLOAD_TOO_LARGE, code: Some("too_large"), ..error },
            false => error,
        }
    }
}
