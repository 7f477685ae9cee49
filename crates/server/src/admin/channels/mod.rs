//! `GET /v1/channels`, `POST /v1/channels/send` and `GET /v1/channels/status`.
//!
//! Anyone can list the channels. Only the owner can see the gateway's address and errors, and send: a message goes out in the
//! owner's name.

pub(crate) mod details;
mod qr_code;
pub(crate) mod senders;

use std::time::Duration;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Extensions;
use hob_channels::{ChannelError, ChannelService, ChannelStatus};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::read_json;
use crate::request_context::RequestContext;
use crate::state::SharedState;

/// A gateway that takes longer counts as not available.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

pub(crate) async fn list(State(state): SharedState, extensions: Extensions) -> Json<Value> {
    let Some(channels) = state.system.channels() else {
        return Json(json!({ "channels": [], "message": ChannelError::NotConfigured.to_string() }));
    };
    let status = channels.report().status;
    let (names, problem) = match channel_names(&channels).await {
        Ok(names) => (names, None),
        Err(problem) => (Vec::new(), Some(problem)),
    };
    let mut body = json!({ "channels": names, "status": status.as_str() });
    if let Some(problem) = problem.filter(|_| RequestContext::is_owner(&extensions)) {
        body["message"] = problem.into();
    }
    Json(body)
}

pub(crate) async fn send(State(state): SharedState, request: Request) -> ApiResult<Json<Value>> {
    RequestContext::check_owner(request.extensions(), "/v1/channels/send")?;
    let body = read_json(request, &state.body_reader).await?;
    let message = SendRequest::parse(&body)?;
    let channels = state.system.channels().ok_or(ChannelError::NotConfigured)?;
    channels.send(&message.channel, &message.content, message.conversation_id.as_deref()).await?;
    Ok(Json(json!({ "status": "sent", message.shape: message.channel })))
}

pub(crate) async fn status(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<Value>> {
    let channels = state.system.channels().ok_or(ChannelError::NotConfigured)?;
    let report = channels.report();
    let mut body = json!({
        "status": report.status.as_str(),
        "connected": report.status == ChannelStatus::Connected,
    });
    let is_owner = RequestContext::is_owner(&extensions);
    if is_owner {
        body["gateway_url"] = report.gateway_url.into();
    }
    body["channels"] = channel_names(&channels).await.unwrap_or_default().into();
    if let Some(problem) = report.problem.filter(|_| is_owner) {
        body["message"] = problem.into();
    }
    Ok(Json(body))
}

/// The names, or the reason why there are none.
async fn channel_names(channels: &ChannelService) -> Result<Vec<String>, String> {
    match timeout(LIST_TIMEOUT, channels.list()).await {
        Ok(channel_names) => channel_names.map_err(|error| error.to_string()),
        Err(_) => Err("the gateway took too long to list its channels".to_owned()),
    }
}

/// A message, in either of the two accepted forms.
#[derive(Debug)]
struct SendRequest {
    channel: String,
    content: String,
    conversation_id: Option<String>,
    /// The field in which the caller named the channel.
    shape: &'static str,
}

impl SendRequest {
    fn parse(body: &[u8]) -> ApiResult<Self> {
        let body: Value = read(body)?;
        if !body.is_object() {
            return Err(ApiError::malformed("the request body is wrong: expected an object"));
        }
        let (shape, channel) = either(&body, "channel", "target")?;
        let (_, content) = either(&body, "content", "message")?;
        let conversation_id = text(&body, "conversation_id")?.filter(|id| !id.is_empty());
        Ok(SendRequest { channel, content, conversation_id, shape })
    }
}

/// The text in the first field, or in the second if the first is missing.
fn either(body: &Value, first: &'static str, second: &'static str) -> ApiResult<(&'static str, String)> {
    for key in [first, second] {
        if let Some(text) = text(body, key)? {
            if text.trim().is_empty() {
                return Err(ApiError::invalid(key, format!("{key} is empty")));
            }
            return Ok((key, text));
        }
    }
    Err(ApiError::invalid(first, format!("{first} is missing (or {second}, which means the same)")))
}

/// The text in a field; `None` if it is missing or null.
fn text(body: &Value, key: &str) -> ApiResult<Option<String>> {
    match &body[key] {
        Value::Null => Ok(None),
        Value::String(text) => Ok(Some(text.clone())),
        _ => Err(ApiError::invalid(key, format!("{key}: expected a string"))),
    }
}
