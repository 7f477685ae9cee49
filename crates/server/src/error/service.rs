//! Parts of the server that are off, and its own failures.

use axum::http::StatusCode;

use super::ApiError;

impl ApiError {
    pub(crate) fn no_metrics() -> Self {
        let message = "metrics are off. Set [telemetry] metrics = true";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).coded("no_metrics")
    }

    pub(crate) fn no_memory() -> Self {
        let message = "this server has no memory. Start it with 'hob serve'";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).coded("no_memory")
    }

    /// Documents can be searched, but not added.
    pub(crate) fn no_document_library() -> Self {
        let message = "this server cannot add or list documents. Start it with 'hob serve'";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).coded("no_memory")
    }

    pub(crate) fn no_model_management() -> Self {
        let message = "this server cannot download or delete models. Start it with 'hob serve'";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).coded("no_library")
    }

    pub(crate) fn no_linking() -> Self {
        let message = "this server cannot link an account to WhatsApp. Start it with 'hob serve'";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).coded("no_linking")
    }

    /// The messages of channels cannot be read. The reason can name files, so it is only logged.
    pub(crate) fn messages_unreadable() -> Self {
        let message = "the messages cannot be read. The server's log has the reason";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message).coded("messages_unreadable")
    }

    pub(crate) fn no_tasks() -> Self {
        let message = "this server has no scheduler. Start it with 'hob serve'";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).coded("no_tasks")
    }

    pub(crate) fn no_settings() -> Self {
        let message = "this server has no configuration file. Start it with 'hob serve'";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).coded("no_settings")
    }

    /// An option of the command line overrides the file, so a change of the file would have no effect.
    pub(crate) fn setting_of_option(key: &str) -> Self {
        let message =
            format!("{key} is set by an option of 'hob serve'. Leave that option out, and restart Hob.");
        let error =
            Self::new(StatusCode::CONFLICT, "invalid_request_error", message).coded("setting_conflict");
        ApiError { param: Some(key.to_owned()), ..error }
    }

    /// The configuration cannot be read or written.
    pub(crate) fn settings_failed(message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message).coded("settings_failed")
    }

    pub(crate) fn no_keys() -> Self {
        let message = "this server has no named keys. Start it with 'hob serve'";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message).coded("no_keys")
    }

    /// The request has no named key.
    pub(crate) fn no_named_key() -> Self {
        let message = "this request has no named key. Send one that 'hob key create' made";
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message).coded("no_named_key")
    }

    /// The recorded calls cannot be read. The reason can name files, so it is only logged.
    pub(crate) fn record_unreadable() -> Self {
        let message = "the recorded calls cannot be read. The server's log has the reason";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message).coded("record_unreadable")
    }

    /// A bug in Hob. The log has the details.
    pub(crate) fn panicked() -> Self {
        let message = "this request failed because of a bug in Hob. Please report it with the server's log";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message).coded("panicked")
    }
}
