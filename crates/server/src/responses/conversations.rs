//! `/v1/conversations`: lists of items that responses are added to. A caller finds only its own.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::response::{IntoResponse, Response};
use hob_conversations::{Appended, ConversationAppend, ConversationItem, FoundItems, StoredConversation};
use hob_core::Moment;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::context::parse;
use super::input::Item;
use super::item_ids::{conversation_items, identified};
use super::item_pages::{PageQuery, item_list, nothing_after, parse_page};
use super::metadata::check_metadata;
use super::stored::{CallerStore, Id, read_id};
use crate::answer::{json_response, new_id};
use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::{JsonBody, counted, process, read_json};
use crate::openai::ignored_fields::IgnoredFields;
use crate::route_methods::{RouteMethods, get};
use crate::state::{ServerState, SharedState};
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
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireItems {
    items: Vec<Value>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The methods of a conversation.
pub(crate) fn one() -> RouteMethods {
    get(show).post(update).delete(delete)
}

/// The methods of an item of a conversation.
pub(crate) fn one_item() -> RouteMethods {
    get(show_item).delete(delete_item)
}

/// A conversation as callers see it.
fn object(conversation: &StoredConversation) -> ApiResult<Value> {
    Ok(json!({
        "id": conversation.id,
        "object": "conversation",
        "created_at": conversation.created.timestamp().as_second(),
        "metadata": parse(&conversation.metadata)?,
    }))
}

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let CallerStore { store, owner, .. } = CallerStore::of(&state, &request)?;
    let body = read_json(request, &state.body_reader).await?;
    let id = new_id("conv_");
    let suffix = id.replacen("conv_", "", 1);
    let parse_body = move |body: &[u8]| {
        let WireConversation { items, metadata, rest } = read(body)?;
        check_metadata(metadata.as_ref())?;
        let mut ignored = noted(&rest);
        let items = checked(items.unwrap_or_default(), &suffix, &mut ignored)?;
        Ok::<_, ApiError>((items, metadata.unwrap_or_default(), ignored))
    };
    let (items, metadata, ignored) = process(body.bytes.clone(), &state.blocking, parse_body).await?;
    let now = SystemTime::now();
    let conversation =
        StoredConversation { id, created: Moment::of(now), metadata: json!(metadata).to_string() };
    let shown = object(&conversation)?;
    let append = ConversationAppend { conversation: conversation.id.clone(), items };
    let work = move || {
        store.create_conversation(&owner, &conversation)?;
        if append.items.is_empty() {
            return Ok(Appended::Yes);
        }
        let appended = store.append(&owner, &append, now);
        if !matches!(appended, Ok(Appended::Yes))
            && let Err(error) = store.delete_conversation(&owner, &conversation.id)
        {
            tracing::warn!(
                %error,
                "an incomplete conversation was not deleted. 'hob doctor' checks the database"
            );
        }
        appended
    };
    let appended = state.blocking.run(work).await.map_err(ApiError::store_failed)?;
    check_appended(appended, shown["id"].as_str().unwrap_or_default())?;
    Ok(with_warnings(Json(shown).into_response(), ignored.into_warnings().iter()))
}

/// The error for items that were not added.
fn check_appended(appended: Appended, conversation: &str) -> ApiResult<()> {
    match appended {
        Appended::Yes => Ok(()),
        Appended::NoSuchConversation => Err(ApiError::no_such_conversation(conversation)),
        Appended::Full => Err(ApiError::conversation_full()),
        Appended::IdTaken(id) => {
            Err(ApiError::invalid("items", format!("the conversation has an item '{id}' already")))
        }
    }
}

/// The fields that this server does not know.
fn noted(rest: &Map<String, Value>) -> IgnoredFields {
    let mut ignored = IgnoredFields::default();
    rest.iter().filter(|(_, value)| !value.is_null()).for_each(|(field, _)| ignored.note(field));
    ignored
}

async fn show(State(state): SharedState, id: Id, request: Request) -> ApiResult<Json<Value>> {
    let stored = CallerStore::of(&state, &request)?;
    find(&state, stored, read_id(id)?).await
}

async fn find(state: &ServerState, stored: CallerStore, id: String) -> ApiResult<Json<Value>> {
    let CallerStore { store, owner, .. } = stored;
    let wanted = id.clone();
    let found = state
        .blocking
        .run(move || store.conversation(&owner, &wanted))
        .await
        .map_err(ApiError::store_failed)?;
    object(&found.ok_or_else(|| ApiError::no_such_conversation(&id))?).map(Json)
}

async fn update(State(state): SharedState, id: Id, request: Request) -> ApiResult<Response> {
    let stored = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let body = read_json(request, &state.body_reader).await?;
    let parse_body = |body: &[u8]| {
        let WireConversation { items, metadata, rest } = read(body)?;
        check_metadata(metadata.as_ref())?;
        let mut ignored = noted(&rest);
        if items.is_some() {
            ignored.note("items");
        }
        Ok::<_, ApiError>((metadata.unwrap_or_default(), ignored))
    };
    let (metadata, ignored) = process(body.bytes.clone(), &state.blocking, parse_body).await?;
    let (store, owner, wanted) = (Arc::clone(&stored.store), stored.owner.clone(), id.clone());
    let metadata = json!(metadata).to_string();
    let work = move || store.set_metadata(&owner, &wanted, &metadata);
    match state.blocking.run(work).await.map_err(ApiError::store_failed)? {
        true => {
            let shown = find(&state, stored, id).await?.into_response();
            Ok(with_warnings(shown, ignored.into_warnings().iter()))
        }
        false => Err(ApiError::no_such_conversation(&id)),
    }
}

async fn delete(State(state): SharedState, id: Id, request: Request) -> ApiResult<Json<Value>> {
    let CallerStore { store, owner, .. } = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let deleted = id.clone();
    let work = move || store.delete_conversation(&owner, &deleted);
    match state.blocking.run(work).await.map_err(ApiError::store_failed)? {
        true => Ok(Json(json!({ "id": id, "object": "conversation.deleted", "deleted": true }))),
        false => Err(ApiError::no_such_conversation(&id)),
    }
}

pub(crate) async fn list_items(
    State(state): SharedState,
    id: Id,
    query: Result<Query<PageQuery>, QueryRejection>,
    request: Request,
) -> ApiResult<Response> {
    let stored = CallerStore::of(&state, &request)?;
    let page = parse_page(query)?;
    let id = read_id(id)?;
    let render = move |CallerStore { store, owner, .. }: &CallerStore| match store
        .items(owner, &id, &page, SystemTime::now())
        .map_err(ApiError::store_failed)?
    {
        FoundItems::Items { items, has_more } => Ok(item_list(&items, has_more)),
        FoundItems::NoSuchConversation => Err(ApiError::no_such_conversation(&id)),
        FoundItems::NothingAfter => Err(nothing_after(&page)),
    };
    stored.answer(&state, render).await
}

pub(crate) async fn add_items(State(state): SharedState, id: Id, request: Request) -> ApiResult<Response> {
    let CallerStore { store, owner, .. } = CallerStore::of(&state, &request)?;
    let id = read_id(id)?;
    let JsonBody { bytes, permit } = read_json(request, &state.body_reader).await?;
    let suffix = new_id("");
    let parse_body = move |body: &[u8]| {
        let WireItems { items, rest } = read(body)?;
        let mut ignored = noted(&rest);
        Ok::<_, ApiError>((checked(items, &suffix, &mut ignored)?, ignored))
    };
    let (items, ignored) = process(bytes, &state.blocking, parse_body).await?;
    let append = ConversationAppend { conversation: id.clone(), items };
    let work = move || {
        let appended = store.append(&owner, &append, SystemTime::now());
        appended.map(|appended| (appended, item_list(&append.items, false)))
    };
    let (appended, list) = state.blocking.run(work).await.map_err(ApiError::store_failed)?;
    check_appended(appended, &id)?;
    Ok(with_warnings(json_response(counted(list, permit)), ignored.into_warnings().iter()))
}

/// The ids of a conversation and of an item in the path.
type ItemPath = Result<Path<(String, String)>, PathRejection>;

fn read_item_path(path: ItemPath) -> ApiResult<(String, String)> {
    let Path(ids) = path.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    Ok(ids)
}

async fn show_item(State(state): SharedState, path: ItemPath, request: Request) -> ApiResult<Response> {
    let stored = CallerStore::of(&state, &request)?;
    let (id, wanted) = read_item_path(path)?;
    let render = move |CallerStore { store, owner, .. }: &CallerStore| {
        let found = store.item(owner, &id, &wanted).map_err(ApiError::store_failed)?;
        found.map(|item| item.item.into_bytes()).ok_or_else(|| ApiError::no_such_item(&wanted))
    };
    stored.answer(&state, render).await
}

/// Answers with the conversation, as the API documents it.
async fn delete_item(State(state): SharedState, path: ItemPath, request: Request) -> ApiResult<Json<Value>> {
    let stored = CallerStore::of(&state, &request)?;
    let (id, item) = read_item_path(path)?;
    let (store, owner) = (Arc::clone(&stored.store), stored.owner.clone());
    let (conversation, deleted) = (id.clone(), item.clone());
    let work = move || store.delete_item(&owner, &conversation, &deleted);
    match state.blocking.run(work).await.map_err(ApiError::store_failed)? {
        true => find(&state, stored, id).await,
        false => Err(ApiError::no_such_item(&item)),
    }
}

/// Items that can be part of a conversation, with ids.
fn checked(items: Vec<Value>, suffix: &str, ignored: &mut IgnoredFields) -> ApiResult<Vec<ConversationItem>> {
    if items.len() > MAX_ADDED {
        let message = format!("a request adds at most {MAX_ADDED} items, got {}", items.len());
        return Err(ApiError::invalid("items", message));
    }
    for (index, value) in items.iter().enumerate() {
        Item { path: format_args!("items[{index}]"), value }.read(ignored)?;
    }
    Ok(conversation_items(&identified(items, suffix, HashSet::new())))
}
