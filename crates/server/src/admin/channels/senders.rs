//! `POST /v1/channels/approve`, and the senders of channels that the owner sees: those who wait, and those who are approved.

use axum::Json;
use axum::extract::{Request, State};
use hob_channels::{ApprovedSender, ChannelError, ChannelService, PendingSender, shown_code};
use hob_db::DatabaseError;
use serde_json::{Value, json};

use crate::admin::audit;
use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::read_json;
use crate::request_context::RequestContext;
use crate::state::SharedState;

/// Approves the sender who got a code.
pub(crate) async fn approve(State(state): SharedState, request: Request) -> ApiResult<Json<Value>> {
    RequestContext::check_owner(request.extensions(), "/v1/channels/approve")?;
    let actor = RequestContext::actor(request.extensions());
    let body: Value = read(&read_json(request, &state.body_reader).await?)?;
    let code = body["code"].as_str().ok_or_else(|| ApiError::invalid("code", "code: expected a string"))?;
    let channels = state.system.channels().ok_or(ChannelError::NotConfigured)?;
    let Some(approved) = channels.approve(code).await.map_err(|error| unreadable(&error))? else {
        return Err(ApiError::invalid("code", "the code is not valid: codes expire after an hour"));
    };
    let sender = name_of(&approved.channel, &approved.sender);
    audit::note(&state, actor, "channel.approve", sender.clone()).await;
    Ok(Json(json!({ "object": "approved_sender", "sender": sender, "name": approved.name })))
}

/// The senders who wait, and those who are approved.
pub(crate) async fn listed(channels: &ChannelService) -> ApiResult<(Vec<Value>, Vec<Value>)> {
    let waiting = channels.pending_senders().await.map_err(|error| unreadable(&error))?;
    let approved = channels.approved_senders().await.map_err(|error| unreadable(&error))?;
    Ok((waiting.into_iter().map(waits).collect(), approved.into_iter().map(is_approved).collect()))
}

fn waits(one: PendingSender) -> Value {
    json!({
        "sender": name_of(&one.channel, &one.sender),
        "name": one.name,
        "code": shown_code(&one.code),
        "expires": one.ends,
    })
}

fn is_approved(one: ApprovedSender) -> Value {
    json!({ "sender": name_of(&one.channel, &one.sender), "name": one.name, "approved": one.approved })
}

fn name_of(channel: &str, sender: &str) -> String {
    format!("{channel}:{sender}")
}

fn unreadable(error: &DatabaseError) -> ApiError {
    tracing::warn!(
        error = error as &(dyn std::error::Error + 'static),
        "the senders cannot be read or changed. 'hob doctor' checks the database"
    );
    ApiError::of_store(error, ApiError::messages_unreadable())
}
