//! A server that is too busy for a request, or that is stopping.

use axum::http::StatusCode;

use super::ApiError;

impl ApiError {
    /// The large bodies in progress use all capacity.
    pub(crate) fn body_limit_reached(seconds: f32, max_bodies: usize) -> Self {
        let message = format!(
            "large requests use all memory for bodies ({max_bodies} times [server] max_body_mb), and none ended within {seconds} s. Try again \
             later"
        );
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("no_room"), retry_after: Some(5), ..error }
    }

    /// The large bodies of one peer use its whole share.
    pub(crate) fn peer_body_limit_reached(seconds: f32, max_bodies: usize) -> Self {
        let message = format!(
            "large requests from your address use all memory that one address can have ({max_bodies} times [server] max_body_mb), and none \
             ended within {seconds} s. Try again later"
        );
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some("no_room"), retry_after: Some(5), ..error }
    }

    /// The queue is full.
    pub(crate) fn queue_full() -> Self {
        let message = "too many requests are waiting. Try again in a moment, or raise [server] max_waiting";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some("queue_full"), retry_after: Some(1), ..error }
    }

    /// The caller has too many streams of pages open.
    pub(crate) fn too_many_streams() -> Self {
        let message = "too many pages of this caller are open. Close some of them";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some("too_many_streams"), retry_after: Some(10), ..error }
    }

    /// The downloads in progress use all slots.
    pub(crate) fn too_many_pulls() -> Self {
        let message = "too many models are being downloaded. Try again when one of them is done";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some("too_many_pulls"), retry_after: Some(10), ..error }
    }

    /// The request has waited too long.
    pub(crate) fn queue_timeout(seconds: f32) -> Self {
        let message = format!(
            "no engine slot became free within {seconds} s. Try again later, or raise [server] max_in_flight or queue_timeout"
        );
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("queue_timeout"), retry_after: Some(5), ..error }
    }

    /// The server is stopping and does not wait for this answer.
    pub(crate) fn shutting_down() -> Self {
        let message = "the server is shutting down before this answer is finished. Send the request again";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("server_shutting_down"), retry_after: Some(5), ..error }
    }
}
