//! `POST /v1/completions`: text completion.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use hob_core::Caller;

use super::chat_request::ResponseMode;
use super::completions_request::TextCompletionRequest;
use super::completions_response::{CompletionForm, TextCompletion};
use super::text_chunks::TextChunks;
use crate::answer::{self, Received, new_id};
use crate::error::ApiResult;
use crate::json::push_json;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::unix_time::unix_now;

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    answer(&state, request).await.map_err(|error| error.for_caller(role))
}

async fn answer(state: &ServerState, request: Request) -> ApiResult<Response> {
    let Received { parsed, caller, client } =
        answer::receive(state, request, new_id("cmpl-"), TextCompletionRequest::parse).await?;
    let TextCompletionRequest { request, mode, warnings } = parsed;
    let caller = Caller { end_user: answer::user_in(&request.request.extra), ..caller };
    let alternatives = request.request.sampling.top_logprobs.unwrap_or(0) as usize;
    let form = CompletionForm { id: &caller.run, created: unix_now(), alternatives };
    match mode {
        ResponseMode::Whole => {
            let answered = state.system.complete_text(request, &caller).await?;
            let render =
                |generation: &_, body: &mut _| push_json(body, &TextCompletion::new(form, generation));
            Ok(answer::send_whole(&answered, &caller, &warnings, render))
        }
        ResponseMode::Streamed { include_usage } => {
            let encoder = TextChunks::new(form, &request.request.model, include_usage);
            let system = Arc::clone(&state.system);
            let stream = async move { Ok(system.stream_text(request, &caller).await?) };
            answer::send_stream(stream, &warnings, client, encoder, Body::new).await
        }
    }
}
