//! `POST /v1/memory/search` and `GET /v1/memory/stats`: the user's documents, for the owner only.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Request, State};
use axum::http::Extensions;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hob_core::{Found, Memory, MemoryBackend, MemoryError, MemoryQuery};
use hob_system::documents::Documents;
use serde::Deserialize;

use crate::error::ApiError;
use crate::json::read;
use crate::limits::body::read_json;
use crate::router::App;
use crate::whole_number::Whole;

/// Passages that are given when the caller does not say how many, and the most one can have.
const USUAL: i64 = 5;
const MOST: i64 = 100;

/// The body of a search, as typed.
#[derive(Deserialize)]
struct SearchBody {
    query: String,
    top_k: Option<Whole>,
    backend: Option<String>,
}

pub(crate) async fn search(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let memory = owners_memory(&app, request.extensions(), "/v1/memory/search")?;
    let body = read_json(request, &app.bodies).await?;
    let query = parse(&body)?;
    let backend = query.backend.unwrap_or_else(|| memory.backend());
    let found = match memory.search(&query).await {
        // Nothing is in it, so nothing is found.
        Err(MemoryError::Empty) => Found { backend, passages: Vec::new() },
        found => found?,
    };
    Ok(private(Json(found)))
}

pub(crate) async fn stats(State(app): State<Arc<App>>, request: Request) -> Result<Response, ApiError> {
    let memory = owners_memory(&app, request.extensions(), "/v1/memory/stats")?;
    Ok(private(Json(memory.stats().await?)))
}

/// The memory, if the caller is the owner.
fn owners_memory<'a>(
    app: &'a App,
    extensions: &Extensions,
    path: &str,
) -> Result<&'a Arc<Documents>, ApiError> {
    if !app.trust.is_owner(extensions) {
        return Err(ApiError::owner_only(path));
    }
    app.system.memory().ok_or_else(ApiError::no_memory)
}

fn parse(body: &[u8]) -> Result<MemoryQuery, ApiError> {
    let SearchBody { query, top_k, backend } = read(body)?;
    if query.trim().is_empty() {
        return Err(ApiError::invalid("query", "query is empty; say what to look for"));
    }
    let top_k = top_k.map_or(USUAL, |top_k| top_k.0);
    if !(1..=MOST).contains(&top_k) {
        return Err(ApiError::invalid(
            "top_k",
            format!("top_k: expected a number from 1 to {MOST}, got {top_k}"),
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

/// Nothing on the way may keep a copy.
fn private(body: impl IntoResponse) -> Response {
    ([(header::CACHE_CONTROL, HeaderValue::from_static("no-store"))], body).into_response()
}
