//! Callers that the server refuses: by key, host, origin or role.

use std::time::Duration;

use axum::http::StatusCode;

use super::{ApiError, TOO_MANY_WRONG_KEYS};

impl ApiError {
    pub(crate) fn missing_key() -> Self {
        Self::key_refused(
            "this server needs a key. Send 'authorization: Bearer KEY' with the value of [server] api_key",
        )
    }

    pub(crate) fn wrong_key() -> Self {
        Self::key_refused(
            "the key of this request is wrong. Send 'authorization: Bearer KEY' with the value of [server] api_key",
        )
    }

    fn key_refused(message: &str) -> Self {
        let error = Self::new(StatusCode::UNAUTHORIZED, "authentication_error", message);
        ApiError { code: Some("invalid_api_key"), ..error }
    }

    /// The peer has sent too many wrong keys lately.
    pub(crate) fn too_many_wrong_keys(wait: Duration) -> Self {
        let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
        let message = format!("too many wrong keys from your address. Try again in {seconds} s");
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some(TOO_MANY_WRONG_KEYS), retry_after: Some(seconds), ..error }
    }

    pub(crate) fn foreign_host(host: &str) -> Self {
        let message = format!(
            "the Host header names '{host}', which is neither an IP address nor localhost. To serve that \
             name, add it to [server] allowed_hosts and set [server] api_key: without a key, anyone who reaches that name can use this \
             server"
        );
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(crate) fn foreign_origin(origin: &str) -> Self {
        let advice = match origin {
            // The origin of a page without an address: a file, or a sandboxed frame.
            "null" => "Serve that page from an address, and add the address to [server] cors_origins",
            _ => {
                "To allow that page, add its address to [server] cors_origins. If it is this server behind a proxy, let the proxy \
                 pass the Host header on"
            }
        };
        let message =
            format!("the Origin header names '{origin}', which is not a page of this server. {advice}");
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(crate) fn owner_only(path: &str) -> Self {
        let message = format!(
            "{path} is for the owner only. Send the request from this machine, or set [server] api_key and send it as a bearer token"
        );
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    /// Whether the error is about a wrong or missing key.
    pub(crate) fn is_wrong_key(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }
}
