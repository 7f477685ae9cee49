//! What goes wrong, as callers see it. The only place where an error becomes an HTTP status.

use std::time::Duration;

use axum::Json;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use hob_core::{
    AskError, CONTEXT_LENGTH_EXCEEDED, CallerRole, ChannelError, ContextOverflow, EngineError, MemoryError,
    NoSuitableModel, ScheduleError,
};
use hob_system::RateError;
use serde::Serialize;

use crate::limits::body::{BODY_PAUSES, LEAST_RATE};
use crate::limits::body_limit::LARGEST_AT_ONCE;
use crate::limits::peer_share::SHARES;

/// The kind of errors that tell of an engine's trouble, not of the request.
const ENGINE_ERROR: &str = "engine_error";

const TOO_MANY_WRONG_KEYS: &str = "too_many_wrong_keys";

/// Why the caller was refused; part of the answer, for the log.
#[derive(Clone)]
pub(crate) struct Refused(pub(crate) String);

/// An error of ours or of the engine's.
#[derive(Debug)]
pub(crate) struct ApiError {
    status: StatusCode,
    /// The class of errors, in the words OpenAI clients know.
    kind: &'static str,
    message: String,
    /// The field at fault, such as `messages[2].role`.
    param: Option<String>,
    code: Option<&'static str>,
    /// The engine's own code for its error, which clients are told instead of ours.
    engine_code: Option<Box<str>>,
    retry_after: Option<u64>,
}

impl ApiError {
    fn new(status: StatusCode, kind: &'static str, message: impl Into<String>) -> Self {
        ApiError {
            status,
            kind,
            message: message.into(),
            param: None,
            code: None,
            engine_code: None,
            retry_after: None,
        }
    }

    /// The request is wrong in the field `param`.
    pub(crate) fn invalid(param: impl Into<String>, message: impl Into<String>) -> Self {
        let error = Self::new(StatusCode::BAD_REQUEST, "invalid_request_error", message);
        ApiError { param: Some(param.into()).filter(|param| !param.is_empty()), ..error }
    }

    pub(crate) fn malformed(message: impl Into<String>) -> Self {
        Self::invalid("", message)
    }

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

    pub(crate) fn slow_body() -> Self {
        let message = "the request body did not arrive in time: no piece of it came within [server] body_timeout. Send it again";
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
    }

    /// It comes, but hardly.
    pub(crate) fn trickling_body() -> Self {
        let message = format!(
            "the request body did not arrive in time: after [server] body_timeout it has to come with {LEAST_RATE} bytes a second \
             on average. Send it again, and faster"
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
    }

    /// It comes, but not to its end.
    pub(crate) fn endless_body(seconds: f32) -> Self {
        let message = format!(
            "the request body did not arrive in time: it was not whole after {seconds} s, which is {BODY_PAUSES} times [server] \
             body_timeout. Send it again"
        );
        Self::new(StatusCode::REQUEST_TIMEOUT, "invalid_request_error", message)
    }

    /// Large bodies are all the house can hold.
    pub(crate) fn no_room(seconds: f32) -> Self {
        let message = format!(
            "the large requests under way leave no room for this one ({LARGEST_AT_ONCE} times [server] max_body_mb in all), and \
             none came free within {seconds} s. Try again later"
        );
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("no_room"), retry_after: Some(5), ..error }
    }

    /// The large bodies of one peer are all it may send at once.
    pub(crate) fn no_share(seconds: f32) -> Self {
        let message = format!(
            "the large requests that come from your address already are all that one address may send at once ({} times [server] \
             max_body_mb), and none of them ended within {seconds} s. Try again later",
            LARGEST_AT_ONCE / SHARES
        );
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some("no_room"), retry_after: Some(5), ..error }
    }

    /// The server stops, and does not wait for this answer any longer.
    pub(crate) fn shutting_down() -> Self {
        let message =
            "the server is shutting down, and this answer was not finished in time. Send the request again";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("server_shutting_down"), retry_after: Some(5), ..error }
    }

    /// `near` is what was probably meant.
    pub(crate) fn no_such_path(path: &str, near: Option<&str>) -> Self {
        let message = match near {
            Some(near) => format!("there is nothing at {path}; did you mean {near}?"),
            None => format!("there is nothing at {path}; GET /openapi.json lists what there is"),
        };
        Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
    }

    pub(crate) fn only_a_page() -> Self {
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

    /// No room, not even to wait.
    pub(crate) fn too_many() -> Self {
        let message =
            "too many requests are waiting already. Try again in a moment, or raise [server] max_waiting";
        let error = Self::new(StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", message);
        ApiError { code: Some("queue_full"), retry_after: Some(1), ..error }
    }

    /// Waited long enough.
    pub(crate) fn waited_in_vain(seconds: f32) -> Self {
        let message = format!(
            "no engine slot came free within {seconds} s. Try again later, or raise [server] max_in_flight or queue_timeout"
        );
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("queue_timeout"), retry_after: Some(5), ..error }
    }

    /// A fault of ours. What it was is for the log.
    pub(crate) fn panicked() -> Self {
        let message = "Hob has failed at this request, which it should not; the server's log says where. Please report it";
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
        ApiError { code: Some("panicked"), ..error }
    }

    /// The database does not give its figures away. Why is for the log: it may name files.
    pub(crate) fn record_unreadable() -> Self {
        let message = "the record of calls cannot be read; the server's log says why";
        let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
        ApiError { code: Some("record_unreadable"), ..error }
    }

    pub(crate) fn no_tasks() -> Self {
        let message = "this server was started without a scheduler; 'hob serve' has one";
        let error = Self::new(StatusCode::SERVICE_UNAVAILABLE, "server_error", message);
        ApiError { code: Some("no_tasks"), ..error }
    }

    /// Whether it is about a key that was sent or left out.
    pub(crate) fn is_wrong_key(&self) -> bool {
        self.status == StatusCode::UNAUTHORIZED
    }

    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// The error as this caller may see it. What an engine says of its own trouble may name addresses and repeat what others
    /// asked, so those who are not the owner get short words, and the log gets the rest.
    pub(crate) fn for_caller(self, role: CallerRole) -> Self {
        if self.kind != ENGINE_ERROR || role.may_see_engine_details() {
            return self;
        }
        tracing::warn!(status = self.status.as_u16(), error = %self.message, "an engine failed a caller");
        let words = match self.status {
            StatusCode::GATEWAY_TIMEOUT => "the engine took too long to answer",
            StatusCode::SERVICE_UNAVAILABLE => "the engine is not set up",
            _ if self.code == Some("engine_unreachable") => "the engine does not answer",
            _ => "the engine failed",
        };
        let message = format!("{words}. The owner of this server finds the reason in its log");
        ApiError { message, param: None, engine_code: None, ..self }
    }

    /// The error as the body has it, for a stream whose head is already out.
    pub(crate) fn event(&self) -> Vec<u8> {
        let event = ErrorEvent { error: self.details() };
        serde_json::to_vec(&event).unwrap_or_else(|_| br#"{"error":{}}"#.to_vec())
    }

    fn details(&self) -> Details<'_> {
        Details {
            message: &self.message,
            kind: self.kind,
            param: self.param.as_deref(),
            code: self.engine_code.as_deref().or(self.code),
        }
    }
}

/// Both shapes in one body: `detail` for those who read that, `error` for OpenAI clients.
#[derive(Serialize)]
struct ErrorBody<'a> {
    detail: &'a str,
    error: Details<'a>,
}

#[derive(Serialize)]
struct ErrorEvent<'a> {
    error: Details<'a>,
}

#[derive(Serialize)]
struct Details<'a> {
    message: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    param: Option<&'a str>,
    code: Option<&'a str>,
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        let body = Json(ErrorBody { detail: &self.message, error: self.details() });
        let mut response = (self.status, body).into_response();
        if let Some(seconds) = self.retry_after {
            response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        let is_refusal = matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN);
        if is_refusal || self.code == Some(TOO_MANY_WRONG_KEYS) {
            response.extensions_mut().insert(Refused(self.message));
        }
        response
    }
}

impl From<AskError> for ApiError {
    fn from(error: AskError) -> Self {
        match error {
            AskError::Engine(error) => error.into(),
            AskError::UnknownAgent { .. } => Self::invalid("agent", error.to_string()),
            AskError::UnknownTool { .. } | AskError::ToolNotAvailable { .. } => {
                Self::invalid("tools", error.to_string())
            }
            AskError::NoModel(error) => error.into(),
            AskError::CloudNotAllowed { .. } => ApiError {
                param: Some("model".into()),
                code: Some("cloud_not_allowed"),
                ..Self::new(StatusCode::FORBIDDEN, "permission_error", error.to_string())
            },
            AskError::Attachment { param, reason } => Self::invalid(param, reason),
        }
    }
}

impl From<NoSuitableModel> for ApiError {
    fn from(error: NoSuitableModel) -> Self {
        let message = error.to_string();
        match error {
            NoSuitableModel::NoModel { .. } => ApiError {
                param: Some("model".into()),
                code: Some("model_not_found"),
                ..Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
            },
            NoSuitableModel::NothingFits { .. } => {
                ApiError { code: Some(CONTEXT_LENGTH_EXCEEDED), ..Self::invalid("messages", message) }
            }
        }
    }
}

impl From<ChannelError> for ApiError {
    fn from(error: ChannelError) -> Self {
        let message = error.to_string();
        let failed = |status, code| ApiError {
            code: Some(code),
            ..Self::new(status, "channel_error", message.clone())
        };
        match error {
            ChannelError::NotConfigured => failed(StatusCode::SERVICE_UNAVAILABLE, "channels_not_configured"),
            ChannelError::Invalid { .. } => Self::malformed(message),
            ChannelError::Undelivered { .. } => failed(StatusCode::BAD_GATEWAY, "delivery_failed"),
            ChannelError::Unlisted { .. } => failed(StatusCode::BAD_GATEWAY, "gateway_unreachable"),
        }
    }
}

impl From<MemoryError> for ApiError {
    fn from(error: MemoryError) -> Self {
        let message = error.to_string();
        match error {
            MemoryError::Embed(error) => error.into(),
            MemoryError::NoVectors { .. } | MemoryError::NoEmbedder { .. } => ApiError {
                param: Some("backend".into()),
                code: Some("no_vectors"),
                ..Self::new(StatusCode::CONFLICT, "invalid_request_error", message)
            },
            MemoryError::Empty | MemoryError::Path { .. } | MemoryError::EmptyNote => {
                Self::malformed(message)
            }
            MemoryError::Stopped | MemoryError::Store(_) => {
                tracing::warn!(error = %message, "the memory failed");
                let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
                ApiError { code: Some("memory_failed"), ..error }
            }
        }
    }
}

impl From<RateError> for ApiError {
    fn from(error: RateError) -> Self {
        let message = error.to_string();
        match error {
            RateError::NoSuchAnswer { .. } | RateError::NoAnswer => ApiError {
                param: Some("id".into()),
                code: Some("answer_not_found"),
                ..Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
            },
            RateError::Store(_) | RateError::Stopped => {
                // Why is for the log: it may name files.
                tracing::warn!(error = %message, "a rating is lost");
                let message = "the rating cannot be written; the server's log says why";
                let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
                ApiError { code: Some("rating_lost"), ..error }
            }
        }
    }
}

impl From<ScheduleError> for ApiError {
    fn from(error: ScheduleError) -> Self {
        let message = error.to_string();
        let refused = |status, code| ApiError {
            code: Some(code),
            ..Self::new(status, "invalid_request_error", message.clone())
        };
        match error {
            ScheduleError::Invalid { field, .. } => Self::invalid(field.as_str(), message),
            ScheduleError::NotFound { .. } => refused(StatusCode::NOT_FOUND, "task_not_found"),
            ScheduleError::Refused { .. } => refused(StatusCode::CONFLICT, "task_state"),
            ScheduleError::Running { .. } => refused(StatusCode::CONFLICT, "task_running"),
            ScheduleError::Unavailable(cause) => {
                // Why is for the log: it may name files.
                tracing::warn!(error = %message, %cause, "the tasks failed");
                let error = Self::new(StatusCode::INTERNAL_SERVER_ERROR, "server_error", message);
                ApiError { code: Some("tasks_unavailable"), ..error }
            }
        }
    }
}

impl From<EngineError> for ApiError {
    fn from(error: EngineError) -> Self {
        let message = error.to_string();
        let overflow = error.context_overflow();
        let failed =
            |status, code| ApiError { code: Some(code), ..Self::new(status, ENGINE_ERROR, message.clone()) };
        match error {
            EngineError::Unreachable { .. } => {
                let error = failed(StatusCode::BAD_GATEWAY, "engine_unreachable");
                ApiError {
                    message: format!("{message}. On the server's machine 'hob doctor' says what to do"),
                    ..error
                }
            }
            EngineError::Timeout { .. } => failed(StatusCode::GATEWAY_TIMEOUT, "engine_timeout"),
            EngineError::Malformed { .. } => failed(StatusCode::BAD_GATEWAY, "engine_answer_malformed"),
            EngineError::Interrupted { .. } => failed(StatusCode::BAD_GATEWAY, "engine_answer_interrupted"),
            EngineError::NotConfigured { .. } => {
                failed(StatusCode::SERVICE_UNAVAILABLE, "engine_not_configured")
            }
            EngineError::ModelNotFound { .. } => ApiError {
                param: Some("model".into()),
                code: Some("model_not_found"),
                ..Self::new(StatusCode::NOT_FOUND, "invalid_request_error", message)
            },
            EngineError::Unsupported { field, .. } => {
                ApiError { code: Some("unsupported_by_engine"), ..Self::invalid(field, message) }
            }
            EngineError::Refused { status, param, code, retry_after, .. } => match overflow {
                Some(overflow) => Self::context_exceeded(overflow, message, param),
                // Its code for a refused key, such as `invalid_api_key`, would be read as one for the caller's.
                None => ApiError {
                    param,
                    engine_code: code.filter(|_| !matches!(status, 401 | 403)).map(String::into_boxed_str),
                    retry_after,
                    ..Self::refused(status, message)
                },
            },
        }
    }
}

impl ApiError {
    /// The engine's own error: its 4xx stay what they are, its 5xx are a bad gateway to our caller.
    fn refused(status: u16, message: String) -> Self {
        let known = StatusCode::from_u16(status).ok().filter(StatusCode::is_client_error);
        let (status, kind, code) = match known {
            Some(StatusCode::TOO_MANY_REQUESTS) => {
                (StatusCode::TOO_MANY_REQUESTS, "rate_limit_error", "rate_limit_exceeded")
            }
            // The engine's key is ours to set, so its complaint must not look as if the caller's were wrong.
            Some(StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) => {
                let message = format!("{message}. It is the server's own key that was refused, not yours");
                let error = Self::new(StatusCode::BAD_GATEWAY, ENGINE_ERROR, message);
                return ApiError { code: Some("engine_key_refused"), ..error };
            }
            Some(status) => (status, "invalid_request_error", "engine_refused"),
            None => (StatusCode::BAD_GATEWAY, ENGINE_ERROR, "engine_failed"),
        };
        ApiError { code: Some(code), ..Self::new(status, kind, message) }
    }

    /// A conversation that is too long, whatever the engine calls it: clients compare the code and search the message for the
    /// limit, and shorten the conversation by it.
    fn context_exceeded(overflow: ContextOverflow, message: String, param: Option<String>) -> Self {
        let message = match overflow.sentence() {
            Some(sentence) if !message.contains("maximum context length is") => {
                format!("{sentence} ({message})")
            }
            _ => message,
        };
        let param = param.unwrap_or_else(|| "messages".to_owned());
        ApiError { code: Some(CONTEXT_LENGTH_EXCEEDED), ..Self::invalid(param, message) }
    }
}
