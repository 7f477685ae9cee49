//! Callers that the server refuses: by key, host, origin or role.

use std::time::Duration;

use axum::http::StatusCode;

use super::{ApiError, TOO_MANY_WRONG_KEYS};

impl ApiError {
    pub(crate) fn wrong_key() -> Self {
        let message =
            "this server wants a key: send 'authorization: Bearer KEY' with the key of its [server] api_key";
        let error = Self::new(StatusCode::UNAUTHORIZED, "authentication_error", message);
        ApiError { code: Some("invalid_api_key"), ..error }
    }

    /// Too many wrong keys came from there lately.
    pub(crate) fn too_many_wrong_keys(wait: Duration) -> Self {
        let seconds = wait.as_secs().saturating_add(u64::from(wait.subsec_nanos() > 0));
        let message =
            format!("too many wrong keys came from your address; no key is looked at for {seconds} s more");
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some(TOO_MANY_WRONG_KEYS), retry_after: Some(seconds), ..error }
    }

    pub(crate) fn foreign_host(host: &str) -> Self {
        let message = format!(
            "the Host header names '{host}', which is neither an IP address nor localhost; if this server should \
             answer under that name, add it to [server] allowed_hosts, and set [server] api_key: without a key, anyone who reaches \
             that name can use this server"
        );
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(crate) fn foreign_origin(origin: &str) -> Self {
        let advice = match origin {
            // What a browser says of a page that has no address: a file, or a frame in a sandbox.
            "null" => "serve that page from an address, and add the address to [server] cors_origins",
            _ => {
                "if that page may ask this server, add its address to [server] cors_origins, or, if it is this server behind a \
                 proxy, have the proxy pass the Host header on"
            }
        };
        let message =
            format!("the Origin header names '{origin}', which is no page of this server; {advice}");
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    pub(crate) fn owner_only(path: &str) -> Self {
        let message = format!(
            "{path} is for the owner only: ask from this machine, or set [server] api_key and send it as a bearer token"
        );
        Self::new(StatusCode::FORBIDDEN, "permission_error", message)
    }

    /// Whether it is about a key that was sent or left out.
    pub(crate) fn is_wrong_key(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }
}
