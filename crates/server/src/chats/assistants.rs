//! `/v1/saved-assistants`: settings for chats that have a name.

use axum::Json;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use hob_conversations::{AssistantChange, AssistantId, SavedAssistant, SavedSettings, SettingsChange};
use serde::{Deserialize, Serialize};

use super::{CallerChats, DeletedObject, Id, read_id};
use crate::answer::json_response;
use crate::error::{ApiError, ApiResult};
use crate::json::{push_json, read};
use crate::limits::read_body::{read_json, rendered};
use crate::pages::changes::Topic;
use crate::route_methods::{RouteMethods, get};
use crate::state::SharedState;

const PATH: &str = "/v1/saved-assistants";

#[derive(Serialize)]
pub(crate) struct WireAssistant {
    id: String,
    name: String,
    settings: SavedSettings,
}

impl From<SavedAssistant> for WireAssistant {
    fn from(assistant: SavedAssistant) -> Self {
        let SavedAssistant { id, name, settings } = assistant;
        WireAssistant { id: id.to_string(), name, settings }
    }
}

#[derive(Serialize)]
struct AssistantList {
    data: Vec<WireAssistant>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct AssistantBody {
    name: Option<String>,
    settings: Option<SettingsChange>,
}

impl AssistantBody {
    fn parse(body: &[u8]) -> ApiResult<AssistantChange> {
        let AssistantBody { name, settings } = read(body)?;
        let change = AssistantChange { name, settings };
        change.check()?;
        Ok(change)
    }
}

/// The methods of an assistant.
pub(crate) fn one() -> RouteMethods {
    get(show).patch(change).delete(delete)
}

fn assistant_id(id: &str) -> ApiResult<AssistantId> {
    AssistantId::parse(id).ok_or_else(|| ApiError::no_such_assistant(id))
}

pub(crate) async fn list(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let peer = caller.peer;
    let render = move || {
        let CallerChats { store, owner, .. } = &caller;
        let found = store.assistants(owner).map_err(ApiError::chats_failed)?;
        let mut body = Vec::new();
        push_json(&mut body, &AssistantList { data: found.into_iter().map(WireAssistant::from).collect() });
        Ok(body)
    };
    Ok(json_response(rendered(&state.blocking, &state.body_reader, peer, render).await?))
}

pub(crate) async fn create(
    State(state): SharedState,
    request: Request,
) -> ApiResult<(StatusCode, Json<WireAssistant>)> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let body = read_json(request, &state.body_reader).await?;
    let AssistantChange { name, settings } = AssistantBody::parse(&body)?;
    let name = name.ok_or_else(|| ApiError::invalid("name", "name is missing"))?;
    let settings = settings.unwrap_or_default().applied_to(SavedSettings::default());
    let saved =
        caller.run(&state, move |store, owner| store.create_assistant(owner, &name, &settings)).await?;
    let saved = saved.ok_or_else(ApiError::too_many_assistants)?;
    caller.publish(&state, Topic::Assistants);
    Ok((StatusCode::CREATED, Json(saved.into())))
}

async fn show(State(state): SharedState, id: Id, request: Request) -> ApiResult<Json<WireAssistant>> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let id = read_id(id)?;
    let wanted = assistant_id(&id)?;
    let found = caller.run(&state, move |store, owner| store.assistant(owner, wanted)).await?;
    Ok(Json(found.ok_or_else(|| ApiError::no_such_assistant(&id))?.into()))
}

async fn change(State(state): SharedState, id: Id, request: Request) -> ApiResult<Json<WireAssistant>> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let id = read_id(id)?;
    let body = read_json(request, &state.body_reader).await?;
    let wanted = assistant_id(&id)?;
    let change = AssistantBody::parse(&body)?;
    let changed =
        caller.run(&state, move |store, owner| store.change_assistant(owner, wanted, &change)).await?;
    let changed = changed.ok_or_else(|| ApiError::no_such_assistant(&id))?;
    caller.publish(&state, Topic::Assistants);
    Ok(Json(changed.into()))
}

async fn delete(State(state): SharedState, id: Id, request: Request) -> ApiResult<Json<DeletedObject>> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let id = read_id(id)?;
    let wanted = assistant_id(&id)?;
    match caller.run(&state, move |store, owner| store.delete_assistant(owner, wanted)).await? {
        true => {
            caller.publish(&state, Topic::Assistants);
            Ok(DeletedObject::of(id))
        }
        false => Err(ApiError::no_such_assistant(&id)),
    }
}
