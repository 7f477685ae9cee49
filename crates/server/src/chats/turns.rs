//! `/v1/chats/{id}/turns`: saves a question before the model is asked, and its answer afterwards.

use std::time::SystemTime;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use hob_conversations::{NewQuestion, SavedAnswer, SavedQuestion, SavedTurn, TurnNumber, TurnSaved};
use serde::Deserialize;

use super::wire::WireTurn;
use super::{CallerChats, Id, chat_id, read_id};
use crate::error::{ApiError, ApiResult};
use crate::json::read;
use crate::limits::read_body::{process, read_json};
use crate::pages::changes::Topic;
use crate::state::SharedState;

const PATH: &str = "/v1/chats";

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct QuestionBody {
    parent: Option<String>,
    question: SavedQuestion,
}

pub(crate) async fn add(
    State(state): SharedState,
    id: Id,
    request: Request,
) -> ApiResult<(StatusCode, Json<WireTurn>)> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let id = read_id(id)?;
    let body = read_json(request, &state.body_reader).await?;
    let chat = chat_id(&id)?;
    let parse = |body: &[u8]| {
        let QuestionBody { parent, question } = read(body)?;
        question.check()?;
        Ok::<_, ApiError>((parent, question))
    };
    let (parent, question) = process(body.bytes.clone(), &state.blocking, parse).await?;
    let named = parent.clone().unwrap_or_default();
    let number = |parent: String| TurnNumber::parse(&parent).ok_or_else(|| no_parent(&parent));
    let new = NewQuestion { parent: parent.map(number).transpose()?, question };
    let saved = caller
        .run(&state, move |store, owner| store.add_question(owner, chat, &new, SystemTime::now()))
        .await?;
    let turn = saved_turn(saved, &id, || no_parent(&named))?;
    caller.publish(&state, Topic::Chats);
    Ok((StatusCode::CREATED, Json(turn)))
}

fn no_parent(id: &str) -> ApiError {
    ApiError::no_such_turn("parent", id)
}

pub(crate) async fn answer(
    State(state): SharedState,
    path: Result<Path<(String, String)>, PathRejection>,
    request: Request,
) -> ApiResult<Json<WireTurn>> {
    let caller = CallerChats::of(&state, request.extensions(), PATH)?;
    let Path((id, turn)) = path.map_err(|rejection| ApiError::malformed(rejection.body_text()))?;
    let body = read_json(request, &state.body_reader).await?;
    let chat = chat_id(&id)?;
    let no_turn = || ApiError::no_such_turn("turn", &turn);
    let number = TurnNumber::parse(&turn).ok_or_else(no_turn)?;
    let parse = |body: &[u8]| {
        let answer: SavedAnswer = read(body)?;
        answer.check()?;
        Ok::<_, ApiError>(answer)
    };
    let answer = process(body.bytes.clone(), &state.blocking, parse).await?;
    let place = SavedTurn { chat, number };
    let saved = caller
        .run(&state, move |store, owner| store.save_answer(owner, place, &answer, SystemTime::now()))
        .await?;
    let turn = saved_turn(saved, &id, no_turn)?;
    caller.publish(&state, Topic::Chats);
    Ok(Json(turn))
}

/// The turn, or why it was not saved.
fn saved_turn(saved: TurnSaved, chat: &str, no_turn: impl FnOnce() -> ApiError) -> ApiResult<WireTurn> {
    match saved {
        TurnSaved::Saved(turn) => Ok((*turn).into()),
        TurnSaved::NoSuchChat => Err(ApiError::no_such_chat(chat)),
        TurnSaved::NoSuchTurn => Err(no_turn()),
        TurnSaved::ChatFull => Err(ApiError::chat_full()),
        TurnSaved::StorageFull => Err(ApiError::chats_full()),
    }
}
