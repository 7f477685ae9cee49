//! `POST /v1/memory/search` and `GET /v1/memory/stats`: documents, of all collections for the owner, and of those that its key names for a
//! member.

pub(crate) mod documents;
pub(crate) mod folders;

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::Extensions;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hob_core::{CollectionName, CollectionSet};
use hob_memory::{MemoryBackend, MemoryError, MemoryQuery, MemoryService, SearchResults};
use serde::Deserialize;

use crate::admin::key_request::begin_request;
use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::read_json;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::whole_number::WholeNumber;

/// The number of passages without `top_k`, and the largest `top_k`.
const DEFAULT_TOP_K: i64 = 5;
const MAX_TOP_K: i64 = 100;

/// The most collections that a search can name, as in a key.
const MAX_COLLECTIONS: usize = 64;

/// The body of a search before it is checked.
#[derive(Deserialize)]
struct SearchBody {
    query: String,
    top_k: Option<WholeNumber>,
    backend: Option<String>,
    collection: Option<String>,
    collections: Option<Vec<String>>,
    all: Option<bool>,
}

#[derive(Deserialize)]
pub(crate) struct StatsQuery {
    collection: Option<String>,
}

pub(crate) async fn search(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let (memory, allowed) = memory_for(&state, request.extensions(), "/v1/memory/search")?;
    let key = RequestContext::rights(request.extensions()).key;
    let body = read_json(request, &state.body_reader).await?;
    let (query, is_all) = parse(&body, &allowed)?;
    // A search counts as a request of its key, like a question.
    let _running = begin_request(key.as_ref()).await?;
    let searching = async {
        match is_all {
            true => memory.search_all(&query).await,
            false => memory.search(&query).await,
        }
    };
    let found = match state.system.charged_to(key, searching).await {
        // An empty memory has no results.
        Err(MemoryError::Empty) => {
            let backend = match query.backend {
                Some(backend) => backend,
                None => memory.backend().await?,
            };
            SearchResults { backend, passages: Vec::new() }
        }
        found => found?,
    };
    Ok(not_cached(Json(found)))
}

pub(crate) async fn stats(
    State(state): SharedState,
    query: Result<Query<StatsQuery>, QueryRejection>,
    extensions: Extensions,
) -> ApiResult<Response> {
    let (memory, allowed) = memory_for(&state, &extensions, "/v1/memory/stats")?;
    let Query(StatsQuery { collection }) = query.map_err(|error| ApiError::malformed(error.body_text()))?;
    let collections = selected(&allowed, "collection", collection.into_iter().collect())?;
    Ok(not_cached(Json(memory.stats(collections).await?)))
}

/// The memory, and the collections that the caller may read.
pub(super) fn memory_for<'a>(
    state: &'a ServerState,
    extensions: &Extensions,
    path: &str,
) -> ApiResult<(&'a Arc<MemoryService>, CollectionSet)> {
    let allowed = RequestContext::rights(extensions).collections();
    if allowed.is_empty() {
        return Err(ApiError::owner_only(path));
    }
    Ok((state.system.memory().ok_or_else(ApiError::no_memory)?, allowed))
}

/// The named collections, or all that are allowed.
pub(crate) fn selected(
    allowed: &CollectionSet,
    param: &'static str,
    names: Vec<String>,
) -> ApiResult<CollectionSet> {
    if names.len() > MAX_COLLECTIONS {
        let message = format!("{param}: at most {MAX_COLLECTIONS} collections can be named");
        return Err(ApiError::invalid(param, message));
    }
    let parsed = names.iter().map(|name| CollectionName::parse(name)).collect::<Result<Vec<_>, _>>();
    let parsed = parsed.map_err(|error| ApiError::invalid(param, format!("{param}: {error}")))?;
    allowed.select(parsed).map_err(|name| ApiError::collection_not_allowed(param, &name))
}

/// The search, and whether passages that are not relevant are wanted, too.
fn parse(body: &[u8], allowed: &CollectionSet) -> ApiResult<(MemoryQuery, bool)> {
    let SearchBody { query, top_k, backend, collection, collections, all } = read(body)?;
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
    let collections = match (collection, collections) {
        (Some(one), several) => {
            let names = std::iter::once(one).chain(several.unwrap_or_default()).collect();
            selected(allowed, "collection", names)?
        }
        (None, several) => selected(allowed, "collections", several.unwrap_or_default())?,
    };
    let top_k = usize::try_from(top_k).unwrap_or(0);
    Ok((MemoryQuery { text: query, top_k, backend, collections }, all.unwrap_or(false)))
}

/// Forbids caches to store the answer.
pub(super) fn not_cached(body: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], body).into_response()
}
