//! `POST /api/generate`: one prompt, as a question or as a text that the model continues.

use std::time::Instant;

use axum::extract::{Request, State};
use axum::response::Response;

use super::answer_lines::FormKind;
use super::chat::Conversation;
use super::generate_request::{self, OllamaPrompt};
use super::respond;
use crate::answer::{self, Received, new_id};
use crate::error::ApiResult;
use crate::state::SharedState;

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    respond(request, async |request| {
        let started = Instant::now();
        let received = answer::receive(&state, request, new_id("ollama-"), generate_request::parse).await?;
        let Received { parsed: OllamaPrompt { parsed, text }, caller, client } = received;
        let asked = Conversation { parsed, text, kind: FormKind::Generate, started };
        asked.answer(&state, caller, client).await
    })
    .await
}
