//! `POST /v1/messages`.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::response::Response;
use hob_core::Caller;

use super::events::MessageEvents;
use super::message_body::MessageBody;
use super::request::MessagesRequest;
use crate::answer::{self, Received, new_id};
use crate::error::{ApiError, ApiResult, ErrorFormat};
use crate::json::push_json;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    answer(&state, request).await.map_err(|error| as_written(error.for_caller(role)))
}

/// The error in the form of this API, and with its names of fields.
pub(super) fn as_written(error: ApiError) -> ApiError {
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
