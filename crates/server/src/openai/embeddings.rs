//! `POST /v1/embeddings`.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::HeaderValue;
use axum::response::{IntoResponse, Response};
use hob_core::{AgentPreference, Caller, Cut};

use super::embeddings_body::{EmbeddingList, EmbeddingsRequest, in_pieces};
use crate::answer::{self, Received, new_id, vectors};
use crate::error::ApiResult;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::warning_header::{WARNING, with_warnings};

/// Some engines truncate long inputs without saying so.
const MAY_BE_CUT: HeaderValue = HeaderValue::from_static("inputs-may-be-cut");

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    answer(&state, request).await.map_err(|error| error.for_caller(role))
}

async fn answer(state: &ServerState, request: Request) -> ApiResult<Response> {
    let peer = RequestContext::peer_key(request.extensions());
    let Received { parsed, caller, mut client } =
        answer::receive(state, request, new_id("embd-"), EmbeddingsRequest::parse).await?;
    let EmbeddingsRequest { request, encoding, user, warnings } = parsed;
    let end_user = user.map(Arc::from);
    let caller = Caller { agent: AgentPreference::None, end_user, ..caller };
    let embeddings = state.system.embed(request, &caller).await?;
    client.release_body();
    let made = &embeddings.vectors;
    let permit = vectors::room(&state.body_reader, peer, vectors::memory_of(made.len(), made)).await?;
    drop(client);
    let is_cut = embeddings.cut != Cut::NONE;
    let response = match permit {
        None => Json(EmbeddingList::new(&embeddings, encoding)).into_response(),
        Some(permit) => in_pieces(embeddings, encoding, permit),
    };
    let mut response = with_warnings(response, warnings.iter());
    if is_cut {
        response.headers_mut().append(WARNING, MAY_BE_CUT);
    }
    Ok(response)
}
