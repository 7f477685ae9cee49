//! `POST /v1/memory/search` and `GET /v1/memory/stats`: the user's documents, for the owner only.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Extensions;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hob_memory::{MemoryBackend, MemoryError, MemoryQuery, MemoryService, SearchResults};
use serde::Deserialize;

use crate::error::ApiError;
use crate::json::read;
use crate::limits::body::read_json;
use crate::request_context::RequestContext;
use crate::state::ServerState;
use crate::whole_number::WholeNumber;

/// The number of passages without `top_k`, and the largest `top_k`.
const DEFAULT_TOP_K: i64 = 5;
const MAX_TOP_K: i64 = 100;

/// The body of a search before it is checked.
#[derive(Deserialize)]
struct SearchBody {
    query: String,
    top_k: Option<WholeNumber>,
    backend: Option<String>,
}

pub(crate) async fn search(
    State(state): State<Arc<ServerState>>,
    request: Request,
) -> Result<Response, ApiError> {
    let memory = memory_for_owner(&state, request.extensions(), "/v1/memory/search")?;
    let key = RequestContext::rights(request.extensions()).key;
    let body = read_json(request, &state.body_reader).await?;
    let query = parse(&body)?;
    let backend = query.backend.unwrap_or_else(|| memory.backend());
    let found = match state.system.charged_to(key, memory.search(&query)).await {
        // An empty memory has no results.
        Err(MemoryError::Empty) => SearchResults { backend, passages: Vec::new() },
        found => found?,
    };
    Ok(not_cached(Json(found)))
}

pub(crate) async fn stats(
    State(state): State<Arc<ServerState>>,
    request: Request,
) -> Result<Response, ApiError> {
    let memory = memory_for_owner(&state, request.extensions(), "/v1/memory/stats")?;
    Ok(not_cached(Json(memory.stats().await?)))
}

/// Returns the memory if the caller is the owner.
fn memory_for_owner<'a>(
    state: &'a ServerState,
    extensions: &Extensions,
    path: &str,
) -> Result<&'a Arc<MemoryService>, ApiError> {
    if !RequestContext::is_owner(extensions) {
        return Err(ApiError::owner_only(path));
    }
    state.system.memory().ok_or_else(ApiError::no_memory)
}

fn parse(body: &[u8]) -> Result<MemoryQuery, ApiError> {
    let SearchBody { query, top_k, backend } = read(body)?;
    if query.trim().is_empty() {
        return Err(ApiError::invalid("query", "query is empty; send the words to search for"));
    }
    let top_k = top_k.map_or(DEFAULT_TOP_K, |top_k| top_k.0);
    if !(1..=MAX_TOP_K).contains(&top_k) {
        return Err(ApiError::invalid(
            "top_k",
            format!("top_k: expected a number from 1 to {MAX_TOP_K}, got {top_k}"),
        ));
    }
    let backend = match backend {
        None => None,
        Some(word) => Some(MemoryBackend::parse(&word).ok_or_else(|| {
            let known = MemoryBackend::ALL.map(MemoryBackend::as_str).join(", ");
            ApiError::invalid("backend", format!("backend: expected one of {known}"))
        })?),
    };
    Ok(MemoryQuery { text: query, top_k: usize::try_from(top_k).unwrap_or(0), backend })
}

/// Forbids caches to store the answer.
fn not_cached(body: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], body).into_response()
}
