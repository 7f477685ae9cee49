//! Invalid fields, requests that cannot be read, and paths, methods and models that do not exist.

use axum::http::StatusCode;

use super::ApiError;

impl ApiError {
    /// The field `param` of the request is wrong.
    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message);
        ApiError { param: Some(param.into()).filter(|param| !param.is_empty()), ..error }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::invalid("", message)
    }

    pub(crate) fn too_large(limit_mb: usize) -> Self {
        let message = format!(
            "the request body is larger than {limit_mb} MiB. Send a smaller one, or raise [server] max_body_mb"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "invalid_request_error", message)
    }

    pub(crate) fn not_json(content_type: &str) -> Self {
        let message = match content_type {
            "" => "the request has no content type; send 'content-type: application/json'".to_owned(),
            other => format!("the content type is '{other}'; send 'content-type: application/json'"),
        };
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message)
    }

    pub(crate) fn not_form(content_type: &str) -> Self {
        let message = match content_type {
            "" => {
                "the request has no content type; send a form, 'content-type: multipart/form-data'".to_owned()
            }
            other => {
                format!("the content type is '{other}'; send a form, 'content-type: multipart/form-data'")
            }
        };
        Self::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, "invalid_request_error", message)
    }

    pub(crate) fn body_stalled() -> Self {
        let message = "the request body stalled: nothing arrived within [server] body_timeout. Send it again";
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
    }

    /// The body arrives too slowly.
    pub(crate) fn body_too_slow(min_bytes_per_second: usize) -> Self {
        let message = format!(
            "the request body is too slow: after [server] body_timeout it must arrive at {min_bytes_per_second} bytes per second on average. \
             Send it again, faster"
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
    }

    /// The body arrives, but takes too long.
    pub(crate) fn body_timeout(seconds: f32, max_pauses: u32) -> Self {
        let message = format!(
            "the request body took too long: it was not complete after {seconds} s, which is {max_pauses} times [server] body_timeout. \
             Send it again, faster"
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
    }

    /// `near` is the path that the caller probably meant.
    pub(crate) fn no_such_path(path: &str, near: Option<&str>) -> Self {
        let message = match near {
            Some(near) => format!("{path} does not exist. Did you mean {near}?"),
            None => format!("{path} does not exist. GET /openapi.json lists all paths"),
        };
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    pub(crate) fn page_only() -> Self {
        let message = "/ is a page for browsers. The API begins at /v1; GET /openapi.json describes it";
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    pub(crate) fn no_such_method(method: &str, path: &str) -> Self {
        let message = format!("{path} does not accept {method}. GET /openapi.json lists its methods");
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "invalid_request_error", message)
    }

    /// The same with the words that clients of Ollama look for if the model is missing.
    pub(crate) fn for_missing_model(self, model: &str) -> Self {
        match self.code {
            Some("model_not_found") => {
                // The name is not repeated.
                let rest = self.message.replacen(&format!(" has no model '{model}'; it has "), " has ", 1);
                ApiError { message: format!("model '{model}' not found: {rest}"), ..self }
            }
            _ => self,
        }
    }

    /// The same with the name that clients of this API know a field by.
    pub(crate) fn renaming(self, field: &str, written: &str) -> Self {
        let message = self.message.replace(&format!("'{field}'"), &format!("'{written}'"));
        let param = self.param.map(|param| if param == field { written.to_owned() } else { param });
        ApiError { message, param, ..self }
    }

    /// A request that another API has and Hob does not.
    pub(crate) fn beyond_hob(message: &str) -> Self {
        Self::new(StatusCode::NOT_IMPLEMENTED, "invalid_request_error", message)
    }

    pub(crate) fn no_such_model(model: &str) -> Self {
        let message = format!("model '{model}' does not exist. GET /v1/models lists the models");
        let error = Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message);
        ApiError { param: Some("model".into()), code: Some("model_not_found"), ..error }
    }
}
