//! `POST /v1/embeddings`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use hob_core::{AgentPreference, Caller, CallerRole, Cut, Permit, RequestSource, random_id};

use super::embeddings_body::{EmbeddingList, EmbeddingsRequest};
use crate::error::ApiError;
use crate::limits::body::{JsonBody, process, read_json};
use crate::request_context::RequestContext;
use crate::state::ServerState;
use crate::traceparent::trace_parent;
use crate::warning_header::{WARNING, with_warnings};

/// Some engines truncate long inputs without saying so.
const MAY_BE_CUT: HeaderValue = HeaderValue::from_static("inputs-may-be-cut");

pub(crate) async fn create(
    State(state): State<Arc<ServerState>>,
    request: Request,
) -> Result<Response, ApiError> {
    let role = RequestContext::role(request.extensions());
    answer(&state, request, role).await.map_err(|error| error.for_caller(role))
}

async fn answer(state: &ServerState, request: Request, role: CallerRole) -> Result<Response, ApiError> {
    let permit = Permit::up_to(role.reach());
    let trace_parent = trace_parent(request.headers());
    let request_id = RequestContext::request_id(request.extensions());
    let JsonBody { bytes, permit: _body_permit } = read_json(request, &state.body_reader).await?;
    let EmbeddingsRequest { request, encoding, warnings } =
        process(bytes, &state.blocking, EmbeddingsRequest::parse).await?;
    let agent = AgentPreference::None;
    let caller = Caller {
        role,
        permit,
        agent,
        trace_parent,
        request_id,
        ..Caller::trusted(RequestSource::Server, random_id("embd-"))
    };
    let _admitted = state.concurrency_limit.acquire().await?;
    let embeddings = state.system.embed(request, &caller).await?;
    let response = Json(EmbeddingList::new(&embeddings, encoding)).into_response();
    let mut response = with_warnings(response, warnings.iter());
    if embeddings.cut != Cut::NONE {
        response.headers_mut().append(WARNING, MAY_BE_CUT);
    }
    Ok(response)
}
