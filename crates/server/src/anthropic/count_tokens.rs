//! `POST /v1/messages/count_tokens`.

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hob_core::{AgentPreference, AnswerWarning};
use serde_json::json;

use super::messages::as_written;
use super::request::MessagesRequest;
use crate::answer::{self, Received, new_id};
use crate::error::ApiResult;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::warning_header::with_warnings;

pub(crate) async fn count_tokens(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    count(&state, request).await.map_err(|error| as_written(error.for_caller(role)))
}

async fn count(state: &ServerState, request: Request) -> ApiResult<Response> {
    let Received { parsed, caller, client: _client } =
        answer::receive(state, request, new_id("msg_"), MessagesRequest::parse_count).await?;
    let MessagesRequest { request, mut warnings, agent, .. } = parsed;
    // A stream would not use the agent, and this request does not say whether one follows.
    let has_agent = state.system.agent().is_some() && agent != AgentPreference::None;
    if has_agent && request.tools.is_empty() && !request.continues_last_message() {
        warnings.push(AnswerWarning::Ignored("agent".to_owned()));
    }
    let counted = state.system.count_tokens(request, &caller).await?;
    if counted.is_estimate {
        warnings.push(AnswerWarning::Estimated);
    }
    let response = Json(json!({ "input_tokens": counted.tokens })).into_response();
    Ok(with_warnings(response, warnings.iter()))
}
