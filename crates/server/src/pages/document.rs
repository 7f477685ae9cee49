//! `POST /pages/document?name=FILE`: the text of a file, for a question of the chat page. The readers of the memory read it, within their
//! limits and off the worker threads. It stores nothing.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use hob_memory::FileText;
use serde::{Deserialize, Serialize};

use crate::admin::key_request::begin_request;
use crate::error::{ApiError, ApiResult};
use crate::limits::read_body::{JsonBody, read_bytes};
use crate::request_context::RequestContext;
use crate::state::SharedState;

/// Characters of a file name.
const MAX_NAME_CHARS: usize = 300;

#[derive(Deserialize)]
pub(crate) struct DocumentQuery {
    name: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct ReadDocument {
    name: String,
    text: String,
    /// Whether the file has more text.
    truncated: bool,
}

pub(crate) async fn create(
    State(state): SharedState,
    query: Result<Query<DocumentQuery>, QueryRejection>,
    request: Request,
) -> ApiResult<Json<ReadDocument>> {
    let Query(DocumentQuery { name }) =
        query.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    let name = name.filter(|name| !name.trim().is_empty());
    let name = name.ok_or_else(|| ApiError::invalid("name", "name is missing; send the name of the file"))?;
    if name.chars().nth(MAX_NAME_CHARS).is_some() {
        let message = format!("name is longer than the limit of {MAX_NAME_CHARS} characters");
        return Err(ApiError::invalid("name", message));
    }
    let key = RequestContext::rights(request.extensions()).key;
    let JsonBody { bytes, permit } = read_bytes(request, &state.body_reader).await?;
    // Reading counts as a request of its key, like a question, and waits for a slot as one.
    let running = begin_request(key.as_ref()).await?;
    let place = state.document_limit.acquire().await?;
    let slot = state.concurrency_limit.acquire().await?;
    let (system, file) = (Arc::clone(&state.system), name.clone());
    let work = move || {
        // The work continues when the client disconnects, so it counts until its end.
        let _held = (permit, running, place, slot);
        system.attachments().read(&file, bytes.into())
    };
    let read = state.blocking.run(work).await;
    let FileText { text, is_cut } = read.map_err(|error| ApiError::unreadable_file(&name, &error))?;
    Ok(Json(ReadDocument { name, text, truncated: is_cut }))
}
