//! `/v1/responses/{id}`: reads, deletes and cancels stored responses, and lists what was asked. A caller finds only its own.

use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::response::Response;
use hob_conversations::{FoundItems, ResponseLease, ResponseOwner, ResponseStore, StoredResponse};
use serde::Deserialize;
use serde_json::{Value, json};

use super::background;
use super::context::{is_running, parse, parse_items};
use super::item_ids::conversation_items;
use super::item_pages::{PageQuery, item_list, nothing_after, page_of, parse_page};
use crate::answer::json_response;
use crate::error::{ApiError, ApiResult};
use crate::limits::peer_share::PeerKey;
use crate::limits::read_body::rendered;
use crate::object_owner::owner_of;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};

/// The id in the path.
pub(super) type Id = Result<Path<String>, PathRejection>;

pub(super) fn read_id(id: Id) -> ApiResult<String> {
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
#[derive(Clone)]
pub(super) struct CallerStore {
    pub(super) store: Arc<dyn ResponseStore>,
    pub(super) owner: ResponseOwner,
    peer: Option<PeerKey>,
}

impl CallerStore {
    pub(super) fn of(state: &ServerState, request: &Request) -> ApiResult<Self> {
        let store = state.responses.clone().ok_or_else(ApiError::no_response_store)?;
        let extensions = request.extensions();
        Ok(CallerStore { store, owner: owner_of(extensions), peer: RequestContext::peer_key(extensions) })
    }

    /// Blocks.
    fn find(&self, id: &str) -> ApiResult<StoredResponse> {
        let found = self.store.find(&self.owner, id).map_err(ApiError::store_failed)?;
        found.ok_or_else(|| ApiError::no_such_response(id))
    }

    /// Answers with what `render` makes of stored data, which blocks.
    pub(super) async fn answer(
        self,
        state: &ServerState,
        render: impl Fn(&CallerStore) -> ApiResult<Vec<u8>> + Send + Sync + 'static,
    ) -> ApiResult<Response> {
        let peer = self.peer;
        let body = rendered(&state.blocking, &state.body_reader, peer, move || render(&self)).await?;
        Ok(json_response(body))
    }

    async fn show(self, state: &ServerState, id: String) -> ApiResult<Response> {
        self.answer(state, move |stored| body(stored.find(&id)?)).await
    }
}

pub(crate) async fn show(
    State(state): SharedState,
    id: Id,
    query: Result<Query<ShowQuery>, QueryRejection>,
    request: Request,
) -> ApiResult<Response> {
    let stored = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let Query(query) = query.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    if !query.stream.is_some_and(|stream| stream.eq_ignore_ascii_case("true") || stream == "1") {
        return stored.show(&state, id).await;
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
    if let Some(run) = state.background.find(&stored.owner, &id) {
        return background::follow(&run, starting_after);
    }
    state.blocking.run(move || stored.find(&id)).await?;
    Err(ApiError::no_events(
        "only the events of a response with 'background' and 'stream' can be read again, and only for a few minutes after its \
         end. GET the response without 'stream'",
    ))
}

pub(crate) async fn delete(State(state): SharedState, id: Id, request: Request) -> ApiResult<Json<Value>> {
    let CallerStore { store, owner, .. } = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    if let Some(run) = state.background.find(&owner, &id) {
        run.cancel().await;
        state.background.forget(&id);
    }
    let deleted = id.clone();
    let was_there =
        state.blocking.run(move || store.delete(&owner, &deleted)).await.map_err(ApiError::store_failed)?;
    match was_there {
        true => Ok(Json(json!({ "id": id, "object": "response", "deleted": true }))),
        false => Err(ApiError::no_such_response(&id)),
    }
}

pub(crate) async fn cancel(State(state): SharedState, id: Id, request: Request) -> ApiResult<Response> {
    let stored = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    if let Some(run) = state.background.find(&stored.owner, &id) {
        run.cancel().await;
        return stored.show(&state, id).await;
    }
    let (caller, cancelled) = (stored.clone(), id.clone());
    state.blocking.run(move || caller.cancel(&cancelled)).await?;
    stored.show(&state, id).await
}

impl CallerStore {
    /// Cancels a response that does not run here: another process writes it, which then stops, or none does since a crash. Blocks.
    fn cancel(&self, id: &str) -> ApiResult<()> {
        let response = self.find(id)?;
        let mut object = parse(&response.body)?;
        if object["background"] != true {
            let message = "only a response in the background can be cancelled; to cancel another one, close its connection";
            return Err(ApiError::invalid("response_id", message));
        }
        if is_running(&response) {
            object["status"] = json!("cancelled");
            let cancelled = StoredResponse { body: object.to_string(), lease: None, ..response };
            self.store
                .update(&self.owner, &cancelled, None, SystemTime::now())
                .map_err(ApiError::store_failed)?;
        }
        Ok(())
    }
}

pub(crate) async fn input_items(
    State(state): SharedState,
    id: Id,
    query: Result<Query<PageQuery>, QueryRejection>,
    request: Request,
) -> ApiResult<Response> {
    let stored = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let page = parse_page(query)?;
    let render = move |stored: &CallerStore| {
        let items = parse_items(&stored.find(&id)?.input)?;
        match page_of(conversation_items(&items), &page) {
            FoundItems::Items { items, has_more } => Ok(item_list(&items, has_more)),
            FoundItems::NothingAfter | FoundItems::NoSuchConversation => Err(nothing_after(&page)),
        }
    };
    stored.answer(&state, render).await
}

/// A stored response as a body. One whose lease has expired has failed.
fn body(response: StoredResponse) -> ApiResult<Vec<u8>> {
    if response.lease != Some(ResponseLease::Expired) {
        return Ok(response.body.into_bytes());
    }
    let mut object = parse(&response.body)?;
    object["status"] = json!("failed");
    let message = "the server stopped while it wrote this response";
    object["error"] = json!({ "code": "server_error", "message": message });
    Ok(object.to_string().into_bytes())
}
