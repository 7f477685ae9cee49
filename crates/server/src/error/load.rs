//! A server that has too much to do for another request, or that is stopping.

use axum::http::StatusCode;

use super::ApiError;

impl ApiError {
    /// Large bodies are all the house can hold.
    pub(crate) fn body_limit_reached(seconds: f32, max_bodies: usize) -> Self {
        let message = format!(
            "the large requests under way leave no room for this one ({max_bodies} times [server] max_body_mb in all), and \
             none came free within {seconds} s. Try again later"
        );
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("no_room"), retry_after: Some(5), ..error }
    }

    /// The large bodies of one peer are all it may send at once.
    pub(crate) fn peer_body_limit_reached(seconds: f32, max_bodies: usize) -> Self {
        let message = format!(
            "the large requests that come from your address already are all that one address may send at once ({max_bodies} times [server] \
             max_body_mb), and none of them ended within {seconds} s. Try again later"
        );
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some("no_room"), retry_after: Some(5), ..error }
    }

    /// No room, not even to wait.
    pub(crate) fn queue_full() -> Self {
        let message =
            "too many requests are waiting already. Try again in a moment, or raise [server] max_waiting";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some("queue_full"), retry_after: Some(1), ..error }
    }

    /// Waited long enough.
    pub(crate) fn queue_timeout(seconds: f32) -> Self {
        let message = format!(
            "no engine slot came free within {seconds} s. Try again later, or raise [server] max_in_flight or queue_timeout"
        );
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("queue_timeout"), retry_after: Some(5), ..error }
    }

    /// The server stops, and does not wait for this answer any longer.
    pub(crate) fn shutting_down() -> Self {
        let message =
            "the server is shutting down, and this answer was not finished in time. Send the request again";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("server_shutting_down"), retry_after: Some(5), ..error }
    }
}
