//! What the channels page shows to the owner: `GET /v1/channels/details`, `GET /v1/channels/messages`, and `/v1/channels/whatsapp`, which
//! links an account.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::Extensions;
use hob_channels::whatsapp::{CHANNEL, LinkState, WhatsappLinking};
use hob_channels::{ChannelService, ChannelStatus, MAX_RECENT, RecentLine, ReplyRules, Speaker};
use hob_core::AgentPreference;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::qr_code::QrPath;
use super::senders;
use crate::admin::{audit, settings};
use crate::error::{ApiError, ApiResult, LINK_ON_THE_MACHINE};
use crate::page_limit::page_limit;
use crate::request_context::RequestContext;
use crate::route_methods::{RouteMethods, get};
use crate::state::{ServerState, SharedState};

const DEFAULT_MESSAGES: usize = 50;

/// Characters of a message that are shown.
const MAX_SHOWN: usize = 2_000;

#[derive(Deserialize)]
pub(crate) struct MessagesQuery {
    limit: Option<usize>,
}

/// What becomes of an attempt to link an account.
#[derive(Serialize)]
pub(crate) struct LinkReport {
    object: &'static str,
    /// Whether the channel is on.
    enabled: bool,
    state: &'static str,
    /// The QR code to scan now.
    code: Option<QrPath>,
    #[serde(skip_serializing_if = "Option::is_none")]
    message: Option<String>,
}

/// The status of each channel, and how messages are answered.
pub(crate) async fn details(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<Value>> {
    RequestContext::check_owner(&extensions, "/v1/channels/details")?;
    let channels = state.system.channels();
    let reports = channels.as_ref().map(|channels| channels.reports()).unwrap_or_default();
    let listed = reports.into_iter().map(|(name, report)| {
        let address = Some(report.gateway_url).filter(|address| !address.is_empty());
        json!({ "name": name, "status": report.status.as_str(), "address": address, "message": report.problem })
    });
    let rules = channels.as_ref().and_then(|channels| channels.rules());
    let (waiting, approved) = match &channels {
        Some(channels) => senders::listed(channels).await?,
        None => Default::default(),
    };
    Ok(Json(json!({
        "object": "channels",
        "channels": listed.collect::<Vec<_>>(),
        "answering": rules.map(answering),
        "senders": rules.map(senders).unwrap_or_default(),
        "waiting": waiting,
        "approved": approved,
    })))
}

fn answering(rules: &ReplyRules) -> Value {
    let agent = match &rules.agent {
        AgentPreference::Named(name) => Some(name.as_str()),
        AgentPreference::Configured | AgentPreference::None => None,
    };
    json!({
        "agent": agent,
        "key": rules.key.as_deref(),
        "messages_per_minute": rules.messages_per_minute,
        "history": rules.history,
    })
}

/// The senders that the configuration names. For all others, tools only compute, and the memory is not read.
fn senders(rules: &ReplyRules) -> Vec<Value> {
    let mut names: Vec<&String> = rules.trust.keys().chain(&rules.allow_from).collect();
    names.sort();
    names.dedup();
    let of = |name: &String| {
        let trust = rules.trust.get(name).map_or("pure", |reach| reach.as_str());
        json!({ "sender": name, "trust": trust, "memory": rules.allow_from.contains(name) })
    };
    names.into_iter().map(of).collect()
}

/// The last messages in and out.
pub(crate) async fn messages(
    State(state): SharedState,
    query: Result<Query<MessagesQuery>, QueryRejection>,
    extensions: Extensions,
) -> ApiResult<Json<Value>> {
    RequestContext::check_owner(&extensions, "/v1/channels/messages")?;
    let Query(MessagesQuery { limit }) = query.map_err(|error| ApiError::malformed(error.body_text()))?;
    let limit = page_limit(limit, DEFAULT_MESSAGES, MAX_RECENT)?;
    let lines = match state.system.channels() {
        Some(channels) => channels.recent(limit).await.map_err(|error| {
            tracing::warn!(
                error = &error as &(dyn std::error::Error + 'static),
                "the messages cannot be listed. 'hob doctor' checks the database"
            );
            ApiError::of_store(&error, ApiError::messages_unreadable())
        })?,
        None => Vec::new(),
    };
    let data: Vec<Value> = lines.into_iter().map(message).collect();
    Ok(Json(json!({ "object": "list", "data": data })))
}

fn message(line: RecentLine) -> Value {
    let content: String = line.content.chars().take(MAX_SHOWN).collect();
    let direction = match line.speaker {
        Speaker::Person => "in",
        Speaker::Hob => "out",
    };
    json!({
        "channel": line.channel,
        "conversation": line.conversation,
        "direction": direction,
        "sender": Some(line.sender).filter(|sender| !sender.is_empty()),
        "truncated": content.len() < line.content.len(),
        "content": content,
        "at": line.said,
    })
}

/// `GET`, `POST`, `PUT` and `DELETE /v1/channels/whatsapp`.
pub(crate) fn whatsapp() -> RouteMethods {
    get(show_link).post(start_link).put(turn_on).delete(cancel_link)
}

async fn show_link(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<LinkReport>> {
    RequestContext::check_owner(&extensions, "/v1/channels/whatsapp")?;
    Ok(Json(report(&state, &extensions)))
}

/// Starts an attempt, for the owner on this machine. Where the channel is on, its own process shows the code, and there is nothing to
/// start.
async fn start_link(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<LinkReport>> {
    RequestContext::check_owner(&extensions, "/v1/channels/whatsapp")?;
    if !is_enabled(&state) {
        let linking = linking(&state)?;
        if !RequestContext::is_on_this_machine(&extensions) {
            return Err(ApiError::link_on_the_machine());
        }
        linking.start();
        audit::note(&state, RequestContext::actor(&extensions), "channel.link", CHANNEL.to_owned()).await;
    }
    Ok(Json(report(&state, &extensions)))
}

/// Turns the channel on in the configuration file, for the owner on this machine, once an account is linked. The file is reloaded then, and
/// the server connects.
async fn turn_on(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<LinkReport>> {
    RequestContext::check_owner(&extensions, "/v1/channels/whatsapp")?;
    if !is_enabled(&state) {
        if linking(&state)?.state() != LinkState::Linked {
            return Err(ApiError::malformed(
                "no account is linked yet. Link one with POST /v1/channels/whatsapp.",
            ));
        }
        if !RequestContext::is_on_this_machine(&extensions) {
            return Err(ApiError::link_on_the_machine());
        }
        settings::turn_on_whatsapp(&state, RequestContext::actor(&extensions)).await?;
    }
    Ok(Json(report(&state, &extensions)))
}

async fn cancel_link(State(state): SharedState, extensions: Extensions) -> ApiResult<Json<LinkReport>> {
    RequestContext::check_owner(&extensions, "/v1/channels/whatsapp")?;
    if !is_enabled(&state) {
        linking(&state)?.cancel();
    }
    Ok(Json(report(&state, &extensions)))
}

fn linking(state: &ServerState) -> ApiResult<&Arc<WhatsappLinking>> {
    state.linking.as_ref().ok_or_else(ApiError::no_linking)
}

fn is_enabled(state: &ServerState) -> bool {
    state.system.channels().is_some_and(|channels| running(&channels).is_some())
}

/// The status and the error of WhatsApp, if it is on.
fn running(channels: &ChannelService) -> Option<(ChannelStatus, Option<String>)> {
    let mut reports = channels.reports().into_iter();
    reports.find(|(name, _)| *name == CHANNEL).map(|(_, report)| (report.status, report.problem))
}

/// The report for a caller. The code links the account of the person who scans it, so only a caller on this machine gets it.
fn report(state: &ServerState, extensions: &Extensions) -> LinkReport {
    let report = whole_report(state);
    if report.code.is_none() || RequestContext::is_on_this_machine(extensions) {
        return report;
    }
    LinkReport { code: None, message: Some(LINK_ON_THE_MACHINE.to_owned()), ..report }
}

fn whole_report(state: &ServerState) -> LinkReport {
    if let Some(channels) = state.system.channels()
        && let Some((status, problem)) = running(&channels)
    {
        let code = channels.link_code();
        let (state, message) = match (status, &code) {
            (ChannelStatus::Connected, _) => ("linked", None),
            (_, Some(_)) => ("scan", None),
            (ChannelStatus::Error, None) => ("failed", problem),
            (_, None) => ("connecting", problem),
        };
        let code = code.as_deref().and_then(QrPath::of);
        return LinkReport { object: "channel_link", enabled: true, state, code, message };
    }
    let current = state.linking.as_ref().map(|linking| linking.state()).unwrap_or_default();
    let (state, code, message) = match current {
        LinkState::Idle => ("idle", None, None),
        LinkState::Installing => ("installing", None, None),
        LinkState::Connecting => ("connecting", None, None),
        LinkState::Scan(data) => ("scan", QrPath::of(&data), None),
        LinkState::Linked => ("linked", None, None),
        LinkState::Failed(reason) => ("failed", None, Some(reason)),
    };
    LinkReport { object: "channel_link", enabled: false, state, code, message }
}
