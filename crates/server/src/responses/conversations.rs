//! `/v1/conversations`: lists of items that responses are added to. A caller finds only its own.

use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::response::Response;
use axum::routing::{MethodRouter, get};
use hob_conversations::{Appended, ConversationAppend, StoredConversation};
use hob_core::Moment;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::context::{parse, store_failed};
use super::input::Item;
use super::item_ids::{conversation_items, identified};
use super::item_pages::{Page, PageQuery, item_list};
use super::metadata::check_metadata;
use super::stored::{CallerStore, Id, read_id};
use crate::answer::new_id;
use crate::error::ApiError;
use crate::json::read;
use crate::limits::body::{process, read_json};
use crate::openai::ignored_fields::IgnoredFields;
use crate::state::ServerState;
use crate::warning_header::with_warnings;

/// Items that a request may add.
const MAX_ADDED: usize = 20;

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireConversation {
    #[serde(default)]
    items: Option<Vec<Value>>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireItems {
    items: Vec<Value>,
}

/// The methods of a conversation.
pub(crate) fn one() -> MethodRouter<Arc<ServerState>> {
    get(show).post(update).delete(delete)
}

/// The methods of an item of a conversation.
pub(crate) fn one_item() -> MethodRouter<Arc<ServerState>> {
    get(show_item).delete(delete_item)
}

/// A conversation as callers see it.
fn object(conversation: &StoredConversation) -> Result<Value, ApiError> {
    Ok(json!({
        "id": conversation.id,
        "object": "conversation",
        "created_at": conversation.created.timestamp().as_second(),
        "metadata": parse(&conversation.metadata)?,
    }))
}

pub(crate) async fn create(
    State(state): State<Arc<ServerState>>,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let CallerStore { store, owner } = CallerStore::of(&state, &request)?;
    let body = read_json(request, &state.body_reader).await?;
    let id = new_id("conv_");
    let suffix = id.replacen("conv_", "", 1);
    let parse_body = move |body: &[u8]| {
        let WireConversation { items, metadata } = read(body)?;
        check_metadata(metadata.as_ref())?;
        let (items, _) = checked(items.unwrap_or_default(), &suffix)?;
        Ok::<_, ApiError>((items, metadata.unwrap_or_default()))
    };
    let (items, metadata) = process(body.bytes.clone(), &state.blocking, parse_body).await?;
    let now = SystemTime::now();
    let conversation =
        StoredConversation { id, created: Moment::of(now), metadata: json!(metadata).to_string() };
    let shown = object(&conversation)?;
    let append = append(&conversation.id, &items);
    let work = move || {
        store.create_conversation(&owner, &conversation)?;
        store.append(&owner, &append, now)
    };
    match state.blocking.run(work).await.map_err(store_failed)? {
        Appended::Yes => Ok(Json(shown)),
        Appended::Full | Appended::NoSuchConversation => Err(ApiError::conversation_full()),
    }
}

async fn show(
    State(state): State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let stored = CallerStore::of(&state, &request)?;
    find(&state, stored, read_id(id)?).await
}

async fn find(state: &ServerState, stored: CallerStore, id: String) -> Result<Json<Value>, ApiError> {
    let CallerStore { store, owner } = stored;
    let wanted = id.clone();
    let found =
        state.blocking.run(move || store.conversation(&owner, &wanted)).await.map_err(store_failed)?;
    object(&found.ok_or_else(|| ApiError::no_such_conversation(&id))?).map(Json)
}

async fn update(
    State(state): State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let stored = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let body = read_json(request, &state.body_reader).await?;
    let metadata = process(body.bytes.clone(), &state.blocking, |body| {
        let WireConversation { metadata, .. } = read(body)?;
        check_metadata(metadata.as_ref())?;
        Ok::<_, ApiError>(metadata.unwrap_or_default())
    })
    .await?;
    let (store, owner, wanted) = (Arc::clone(&stored.store), stored.owner.clone(), id.clone());
    let metadata = json!(metadata).to_string();
    let work = move || store.set_metadata(&owner, &wanted, &metadata);
    match state.blocking.run(work).await.map_err(store_failed)? {
        true => find(&state, stored, id).await,
        false => Err(ApiError::no_such_conversation(&id)),
    }
}

async fn delete(
    State(state): State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let CallerStore { store, owner } = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let deleted = id.clone();
    let work = move || store.delete_conversation(&owner, &deleted);
    match state.blocking.run(work).await.map_err(store_failed)? {
        true => Ok(Json(json!({ "id": id, "object": "conversation.deleted", "deleted": true }))),
        false => Err(ApiError::no_such_conversation(&id)),
    }
}

pub(crate) async fn list_items(
    State(state): State<Arc<ServerState>>,
    id: Id,
    query: Result<Query<PageQuery>, QueryRejection>,
    request: Request,
) -> Result<Response, ApiError> {
    let stored = CallerStore::of(&state, &request)?;
    let page = Page::parse(query)?;
    page.of(items(&state, stored, &read_id(id)?).await?)
}

pub(crate) async fn add_items(
    State(state): State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Response, ApiError> {
    let CallerStore { store, owner } = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let body = read_json(request, &state.body_reader).await?;
    let suffix = new_id("");
    let parse_body = move |body: &[u8]| checked(read::<WireItems>(body)?.items, &suffix);
    let (items, ignored) = process(body.bytes.clone(), &state.blocking, parse_body).await?;
    let append = append(&id, &items);
    let work = move || store.append(&owner, &append, SystemTime::now());
    match state.blocking.run(work).await.map_err(store_failed)? {
        Appended::Yes => Ok(with_warnings(item_list(items, false), ignored.into_warnings().iter())),
        Appended::NoSuchConversation => Err(ApiError::no_such_conversation(&id)),
        Appended::Full => Err(ApiError::conversation_full()),
    }
}

/// The ids of a conversation and of an item in the path.
type ItemPath = Result<Path<(String, String)>, PathRejection>;

fn read_item_path(path: ItemPath) -> Result<(String, String), ApiError> {
    let Path(ids) = path.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    Ok(ids)
}

async fn show_item(
    State(state): State<Arc<ServerState>>,
    path: ItemPath,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let stored = CallerStore::of(&state, &request)?;
    let (id, wanted) = read_item_path(path)?;
    let item = items(&state, stored, &id).await?.into_iter().find(|item| item["id"] == wanted.as_str());
    item.map(Json).ok_or_else(|| ApiError::no_such_item(&wanted))
}

/// Answers with the conversation, as the API documents it.
async fn delete_item(
    State(state): State<Arc<ServerState>>,
    path: ItemPath,
    request: Request,
) -> Result<Json<Value>, ApiError> {
    let stored = CallerStore::of(&state, &request)?;
    let (id, item) = read_item_path(path)?;
    let (store, owner) = (Arc::clone(&stored.store), stored.owner.clone());
    let (conversation, deleted) = (id.clone(), item.clone());
    let work = move || store.delete_item(&owner, &conversation, &deleted);
    match state.blocking.run(work).await.map_err(store_failed)? {
        true => find(&state, stored, id).await,
        false => Err(ApiError::no_such_item(&item)),
    }
}

async fn items(state: &ServerState, stored: CallerStore, id: &str) -> Result<Vec<Value>, ApiError> {
    let CallerStore { store, owner } = stored;
    let wanted = id.to_owned();
    let work = move || store.items(&owner, &wanted, SystemTime::now());
    let found = state.blocking.run(work).await.map_err(store_failed)?;
    let items = found.ok_or_else(|| ApiError::no_such_conversation(id))?;
    items.iter().map(|item| parse(&item.item)).collect()
}

fn append(conversation: &str, items: &[Value]) -> ConversationAppend {
    ConversationAppend { conversation: conversation.to_owned(), items: conversation_items(items) }
}

/// Items that can be part of a conversation, with ids.
fn checked(items: Vec<Value>, suffix: &str) -> Result<(Vec<Value>, IgnoredFields), ApiError> {
    if items.len() > MAX_ADDED {
        let message = format!("a request adds at most {MAX_ADDED} items, got {}", items.len());
        return Err(ApiError::invalid("items", message));
    }
    let mut ignored = IgnoredFields::default();
    for (index, value) in items.iter().enumerate() {
        Item { path: format_args!("items[{index}]"), value }.read(&mut ignored)?;
    }
    Ok((identified(items, suffix), ignored))
}
