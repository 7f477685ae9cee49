//! Parts of the server that are off, and its own failures.

use axum::http::StatusCode;

use super::ApiError;

impl ApiError {
    pub(crate) fn no_metrics() -> Self {
        let message = "this server counts nothing; set [telemetry] metrics = true";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("no_metrics"), ..error }
    }

    pub(crate) fn no_memory() -> Self {
        let message = "this server was started without a memory; 'hob serve' has one";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("no_memory"), ..error }
    }

    pub(crate) fn no_tasks() -> Self {
        let message = "this server was started without a scheduler; 'hob serve' has one";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("no_tasks"), ..error }
    }

    /// The database does not give its figures away. Why is for the log: it may name files.
    pub(crate) fn record_unreadable() -> Self {
        let message = "the record of calls cannot be read; the server's log says why";
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
        ApiError { code: Some("record_unreadable"), ..error }
    }

    /// A fault of ours. What it was is for the log.
    pub(crate) fn panicked() -> Self {
        let message = "Hob has failed at this request, which it should not; the server's log says where. Please report it";
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
        ApiError { code: Some("panicked"), ..error }
    }
}
