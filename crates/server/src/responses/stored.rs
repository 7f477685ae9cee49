//! `/v1/responses/{id}`: reads, deletes and cancels stored responses, and lists what was asked. A caller finds only its own.

use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use hob_conversations::{ResponseOwner, ResponseStore, StoredResponse};
use hob_core::Moment;
use serde::Deserialize;
use serde_json::{Value, json};

use super::background;
use super::context::{parse, store_failed};
use super::item_pages::{Page, PageQuery};
use super::owner_of;
use crate::error::ApiError;
use crate::request_context::RequestContext;
use crate::state::ServerState;

/// The id in the path.
pub(super) type Id = Result<Path<String>, PathRejection>;

pub(super) fn read_id(id: Id) -> Result<String, ApiError> {
    let Path(id) = id.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    Ok(id)
}

/// How a response is read, as in the address.
#[derive(Debug, Default, Deserialize)]
pub(crate) struct ShowQuery {
    stream: Option<String>,
    starting_after: Option<String>,
}

/// What a caller has stored.
pub(super) struct CallerStore {
    pub(super) store: Arc<dyn ResponseStore>,
    pub(super) owner: ResponseOwner,
}

impl CallerStore {
    pub(super) fn of(state: &ServerState, request: &Request) -> Result<Self, ApiError> {
        let store = state.responses.clone().ok_or_else(ApiError::no_response_store)?;
        Ok(CallerStore { store, owner: owner_of(RequestContext::role(request.extensions())) })
    }

    async fn find(&self, state: &ServerState, id: &str) -> Result<StoredResponse, ApiError> {
        let (store, owner, wanted) = (Arc::clone(&self.store), self.owner.clone(), id.to_owned());
        let found = state.blocking.run(move || store.find(&owner, &wanted)).await.map_err(store_failed)?;
        found.ok_or_else(|| ApiError::no_such_response(id))
    }
}

pub(crate) async fn show(
    State(state): State<Arc<ServerState>>,
    id: Id,
    query: Result<Query<ShowQuery>, QueryRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let stored = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let Query(query) = query.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    let response = stored.find(&state, &id).await?;
    if !query.stream.is_some_and(|stream| stream.eq_ignore_ascii_case("true") || stream == "1") {
        return body(response);
    }
    let starting_after = match query.starting_after.as_deref() {
        None | Some("") => None,
        Some(text) => Some(text.parse().map_err(|_| {
            ApiError::invalid(
                "starting_after",
                format!("starting_after must be a sequence number, got {text}"),
            )
        })?),
    };
    match state.background.find(&stored.owner, &id) {
        Some(run) => background::follow(&run, starting_after),
        None => Err(ApiError::no_events(
            "only the events of a response with 'background' and 'stream' can be read again, and only for a few minutes after \
             its end. GET the response without 'stream'",
        )),
    }
}

pub(crate) async fn delete(
    State(state): State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let CallerStore { store, owner } = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    if let Some(run) = state.background.find(&owner, &id) {
        run.cancel().await;
        state.background.forget(&id);
    }
    let deleted = id.clone();
    let was_there = state.blocking.run(move || store.delete(&owner, &deleted)).await.map_err(store_failed)?;
    match was_there {
        true => Ok(Json(json!({ "id": id, "object": "response", "deleted": true }))),
        false => Err(ApiError::no_such_response(&id)),
    }
}

pub(crate) async fn cancel(
    State(state): State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Response, ApiError> {
    let stored = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let response = stored.find(&state, &id).await?;
    if parse(&response.body)?["background"] != true {
        let message =
            "only a response in the background can be cancelled; to cancel another one, close its connection";
        return Err(ApiError::invalid("response_id", message));
    }
    match state.background.find(&stored.owner, &id) {
        Some(run) => run.cancel().await,
        None if is_running(&response) => return Err(ApiError::runs_elsewhere(&id)),
        None => {}
    }
    body(stored.find(&state, &id).await?)
}

pub(crate) async fn input_items(
    State(state): State<Arc<ServerState>>,
    id: Id,
    query: Result<Query<PageQuery>, QueryRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let stored = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let page = Page::parse(query)?;
    match parse(&stored.find(&state, &id).await?.input)? {
        Value::Array(items) => page.of(items),
        _ => Err(ApiError::store_unavailable()),
    }
}

/// Whether this response is still being written.
fn is_running(response: &StoredResponse) -> bool {
    response.lease.is_some_and(|lease| lease > Moment::of(SystemTime::now()))
}

/// A stored response as a body. One whose lease has expired has failed.
fn body(response: StoredResponse) -> Result<Response, ApiError> {
    let is_abandoned = response.lease.is_some() && !is_running(&response);
    let body = match is_abandoned {
        false => response.body,
        true => {
            let mut object = parse(&response.body)?;
            object["status"] = json!("failed");
            let message = "the server stopped while it wrote this response";
            object["error"] = json!({ "code": "server_error", "message": message });
            object.to_string()
        }
    };
    let content_type = [(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))];
    Ok((content_type, body).into_response())
}
