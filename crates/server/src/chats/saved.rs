//! `/v1/chats`: lists, searches, creates, shows, changes and deletes chats.

use std::time::SystemTime;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use hob_conversations::{
    ChatChange, ChatChanged, ChatCursor, ChatPageQuery, NewChat, SavedSettings, SettingsChange, TurnNumber,
};
use serde::{Deserialize, Serialize};

use super::wire::{OpenChat, WireChat};
use super::{CallerChats, DeletedObject, Id, chat_id, read_id};
use crate::answer::json_response;
use crate::error::{ApiError, ApiResult};
use crate::json::{push_json, read};
use crate::limits::read_body::{read_json, rendered};
use crate::page_limit::page_limit;
use crate::pages::changes::Topic;
use crate::state::SharedState;

const PATH: &str = "/v1/chats";

/// The number of chats without `limit`, and the largest `limit`.
const DEFAULT_LIMIT: usize = 50;
const MAX_LIMIT: usize = 200;

/// Bytes of a search.
const MAX_QUERY_BYTES: usize = 1_000;

#[derive(Deserialize)]
pub(crate) struct ListQuery {
    query: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

#[derive(Serialize)]
struct ChatList {
    data: Vec<WireChat>,
    next: Option<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct CreateBody {
    title: Option<String>,
    settings: Option<SavedSettings>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct ChangeBody {
    title: Option<String>,
    pinned: Option<bool>,
    settings: Option<SettingsChange>,
    current: Option<String>,
}

pub(crate) async fn list(
    State(state): SharedState,
    query: Result<Query<ListQuery>, QueryRejection>,
    request: Request,
) -> ApiResult<Response> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let Query(query) = query.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    let query = parse_page(query)?;
    let peer = caller.peer;
    let render = move || {
        let CallerChats { store, owner, .. } = &caller;
        let page = store.page(owner, &query).map_err(ApiError::chats_failed)?;
        let data = page.chats.into_iter().map(WireChat::from).collect();
        let mut body = Vec::new();
        push_json(&mut body, &ChatList { data, next: page.next.map(ChatCursor::to_text) });
        Ok(body)
    };
    Ok(json_response(rendered(&state.blocking, &state.body_reader, peer, render).await?))
}

fn parse_page(query: ListQuery) -> ApiResult<ChatPageQuery> {
    let ListQuery { query: words, limit, after } = query;
    let given = |text: Option<String>| text.filter(|text| !text.trim().is_empty());
    let words = given(words);
    if words.as_ref().is_some_and(|words| words.len() > MAX_QUERY_BYTES) {
        return Err(ApiError::invalid("query", format!("query has more than {MAX_QUERY_BYTES} bytes")));
    }
    let limit = page_limit(limit, DEFAULT_LIMIT, MAX_LIMIT)?;
    let cursor = |text: String| {
        let wrong = || ApiError::invalid("after", "after must be the 'next' of a list of chats");
        ChatCursor::parse(&text).ok_or_else(wrong)
    };
    Ok(ChatPageQuery { words, limit, after: given(after).map(cursor).transpose()? })
}

pub(crate) async fn create(
    State(state): SharedState,
    request: Request,
) -> ApiResult<(StatusCode, Json<WireChat>)> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let body = read_json(request, &state.body_reader).await?;
    let CreateBody { title, settings } = read(&body)?;
    let new = NewChat { title, settings: settings.unwrap_or_default() };
    new.check()?;
    let chat = caller.run(&state, move |store, owner| store.create(owner, &new, SystemTime::now())).await?;
    let chat = chat.ok_or_else(ApiError::too_many_chats)?;
    caller.publish(&state, Topic::Chats);
    Ok((StatusCode::CREATED, Json(chat.into())))
}

pub(crate) async fn show(State(state): SharedState, id: Id, request: Request) -> ApiResult<Response> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let id = read_id(id)?;
    let chat = chat_id(&id)?;
    let peer = caller.peer;
    let render = move || {
        let CallerChats { store, owner, .. } = &caller;
        let found = store.chat(owner, chat).map_err(ApiError::chats_failed)?;
        let found = found.ok_or_else(|| ApiError::no_such_chat(&id))?;
        let mut body = Vec::new();
        push_json(&mut body, &OpenChat::from(found));
        Ok(body)
    };
    Ok(json_response(rendered(&state.blocking, &state.body_reader, peer, render).await?))
}

pub(crate) async fn change(State(state): SharedState, id: Id, request: Request) -> ApiResult<Json<WireChat>> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let id = read_id(id)?;
    let body = read_json(request, &state.body_reader).await?;
    let chat = chat_id(&id)?;
    let ChangeBody { title, pinned, settings, current } = read(&body)?;
    let turn =
        |turn: String| TurnNumber::parse(&turn).ok_or_else(|| ApiError::no_such_turn("current", &turn));
    let change = ChatChange { title, pinned, settings, current: current.map(turn).transpose()? };
    change.check()?;
    let current = change.current;
    match caller.run(&state, move |store, owner| store.change(owner, chat, &change)).await? {
        ChatChanged::Changed(changed) => {
            caller.publish(&state, Topic::Chats);
            Ok(Json((*changed).into()))
        }
        ChatChanged::NoSuchChat => Err(ApiError::no_such_chat(&id)),
        ChatChanged::NoSuchTurn => {
            let turn = current.map(|turn| turn.to_string()).unwrap_or_default();
            Err(ApiError::no_such_turn("current", &turn))
        }
        ChatChanged::StorageFull => Err(ApiError::chats_full()),
    }
}

pub(crate) async fn delete(
    State(state): SharedState,
    id: Id,
    request: Request,
) -> ApiResult<Json<DeletedObject>> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let id = read_id(id)?;
    let chat = chat_id(&id)?;
    match caller.run(&state, move |store, owner| store.delete(owner, chat)).await? {
        true => {
            caller.publish(&state, Topic::Chats);
            Ok(DeletedObject::of(id))
        }
        false => Err(ApiError::no_such_chat(&id)),
    }
}
