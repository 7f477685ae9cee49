//! Requests that cannot be read, and paths, methods and models that do not exist.

use axum::http::StatusCode;

use super::ApiError;

impl ApiError {
    pub(crate) fn too_large(limit_mb: usize) -> Self {
        let message = format!("the request body is larger than {limit_mb} MiB ([server] max_body_mb)");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message)
    }

    pub(crate) fn not_json(content_type: &str) -> Self {
        let message = match content_type {
            "" => "the request has no content type; send 'content-type: application/json'".to_owned(),
            other => format!("the content type is '{other}'; send 'content-type: application/json'"),
        };
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message)
    }

    pub(crate) fn body_stalled() -> Self {
        let message = "the request body did not arrive in time: no piece of it came within [server] body_timeout. Send it again";
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
    }

    /// It comes, but hardly.
    pub(crate) fn body_too_slow(min_bytes_per_second: usize) -> Self {
        let message = format!(
            "the request body did not arrive in time: after [server] body_timeout it has to come with {min_bytes_per_second} bytes a second \
             on average. Send it again, and faster"
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
    }

    /// It comes, but not to its end.
    pub(crate) fn body_timeout(seconds: f32, max_pauses: u32) -> Self {
        let message = format!(
            "the request body did not arrive in time: it was not whole after {seconds} s, which is {max_pauses} times [server] \
             body_timeout. Send it again"
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
    }

    /// `near` is what was probably meant.
    pub(crate) fn no_such_path(path: &str, near: Option<&str>) -> Self {
        let message = match near {
            Some(near) => format!("there is nothing at {path}; did you mean {near}?"),
            None => format!("there is nothing at {path}; GET /openapi.json lists what there is"),
        };
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    pub(crate) fn page_only() -> Self {
        let message =
            "at / there is only a page for browsers; the API begins at /v1 and is described at /openapi.json";
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    pub(crate) fn no_such_method(method: &str, path: &str) -> Self {
        let message = format!("{path} does not take {method}; GET /openapi.json says what it takes");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message)
    }

    pub(crate) fn no_such_model(model: &str) -> Self {
        let message = format!("there is no model '{model}'; GET /v1/models lists those there are");
        let error = Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message);
        ApiError { param: Some("model".into()), code: Some("model_not_found"), ..error }
    }
}
