//! `POST /v1/chat/completions`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use hob_core::Caller;

use super::chat_chunks::ChatChunks;
use super::chat_request::{ChatRequest, ResponseMode};
use super::chat_response::Completion;
use crate::answer::{self, Received, new_id};
use crate::error::ApiError;
use crate::json::push_json;
use crate::request_context::RequestContext;
use crate::state::ServerState;
use crate::unix_time::unix_now;

pub(crate) async fn create(
    State(state): State<Arc<ServerState>>,
    request: Request,
) -> Result<Response, ApiError> {
    let role = RequestContext::role(request.extensions());
    answer(&state, request).await.map_err(|error| error.for_caller(role))
}

async fn answer(state: &ServerState, request: Request) -> Result<Response, ApiError> {
    let Received { parsed, caller, client } =
        answer::receive(state, request, new_id("chatcmpl-"), ChatRequest::parse).await?;
    let ChatRequest { request, mode, agent, calls, warnings } = parsed;
    let caller = Caller { agent, ..caller };
    match mode {
        ResponseMode::Whole => {
            let render = |generation: &_, body: &mut _| {
                push_json(body, &Completion::new(&caller.run, unix_now(), generation, calls));
            };
            answer::whole(state, request, &caller, &warnings, render).await
        }
        ResponseMode::Streamed { include_usage } => {
            let encoder = ChatChunks::new(&caller.run, unix_now(), &request.model, include_usage);
            answer::streamed(state, request, caller, &warnings, client, encoder.with_calls(calls)).await
        }
    }
}
