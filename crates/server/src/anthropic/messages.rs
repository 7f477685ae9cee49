//! `POST /v1/messages` and `POST /v1/messages/count_tokens`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use hob_core::{AgentPreference, AnswerWarning, Caller};
use serde_json::json;

use super::events::MessageEvents;
use super::message_body::MessageBody;
use super::request::MessagesRequest;
use crate::answer::{self, Received, new_id};
use crate::error::{ApiError, ApiResult, ErrorFormat};
use crate::json::push_json;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::warning_header::with_warnings;

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    answer(&state, request).await.map_err(|error| as_written(error.for_caller(role)))
}

pub(crate) async fn count_tokens(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    count(&state, request).await.map_err(|error| as_written(error.for_caller(role)))
}

/// The error in the form of this API, and with its names of fields.
fn as_written(error: ApiError) -> ApiError {
    error.renaming("image_url", "image").in_format(ErrorFormat::Anthropic)
}

async fn answer(state: &ServerState, request: Request) -> ApiResult<Response> {
    let Received { parsed, caller, client } =
        answer::receive(state, request, new_id("msg_"), MessagesRequest::parse).await?;
    let MessagesRequest { request, is_streamed, agent, display, warnings } = parsed;
    let caller = Caller { agent, ..caller };
    let stops = request.sampling.stop.clone();
    if is_streamed {
        let encoder = MessageEvents::new(Arc::clone(&caller.run), display, stops);
        return answer::streamed(state, request, caller, &warnings, client, encoder).await;
    }
    let render = |generation: &_, body: &mut _| {
        push_json(body, &MessageBody::new(&caller.run, generation, display, &stops));
    };
    answer::whole(state, request, &caller, &warnings, render).await
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
