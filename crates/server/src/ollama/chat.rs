//! `POST /api/chat`, and the way that a request of `generate` takes as a conversation.

use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use hob_core::{AnswerWarning, Caller, CallerRights, CallerRole};

use super::answer_lines::{AnswerForm, AnswerLines, FormKind};
use super::generate_request::continuing;
use super::settings::{OllamaRequest, Purpose};
use super::{chat_request, model_name, respond};
use crate::answer::stream::StreamClient;
use crate::answer::{self, Received, new_id};
use crate::error::{ApiError, ApiResult};
use crate::state::{ServerState, SharedState};
use crate::warning_header::with_warnings;

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    respond(request, async |request| {
        let started = Instant::now();
        let received = answer::receive(&state, request, new_id("ollama-"), chat_request::parse).await?;
        let Received { parsed, caller, client } = received;
        let asked = Conversation { parsed, text: None, kind: FormKind::Chat, started };
        asked.answer(&state, caller, client).await
    })
    .await
}

/// A conversation, and the form of its answer.
pub(super) struct Conversation {
    pub(super) parsed: OllamaRequest,
    /// The text to continue instead, and what follows it.
    pub(super) text: Option<(String, Option<String>)>,
    pub(super) kind: FormKind,
    pub(super) started: Instant,
}

impl Conversation {
    pub(super) async fn answer(
        self,
        state: &ServerState,
        caller: Caller,
        client: StreamClient,
    ) -> ApiResult<Response> {
        let Conversation { parsed, text, kind, started } = self;
        let OllamaRequest { mut request, purpose, is_streamed, thoughts, agent, warnings } = parsed;
        let requested = request.model;
        request.model = model_name::meant(state, &requested, caller.rights()).await;
        let form = AnswerForm {
            kind,
            thoughts,
            started,
            meant: request.model.clone(),
            requested: requested.clone(),
        };
        let caller = Caller { agent, ..caller };
        let answered = match purpose {
            Purpose::Load | Purpose::Unload => {
                let model = &request.model;
                in_memory(state, model, purpose, caller.rights())
                    .await
                    .map(|()| memory_answer(&form, purpose, &warnings))
            }
            Purpose::Answer if is_streamed => {
                let system = Arc::clone(&state.system);
                let answer = async move {
                    let stream = match text {
                        None => system.stream(request, &caller).await,
                        Some(text) => system.stream_text(continuing(request, text).into(), &caller).await,
                    };
                    stream.map_err(|error| ApiError::from(error).for_missing_model(&requested))
                };
                return answer::send_stream(answer, &warnings, client, AnswerLines::new(form), Body::new)
                    .await;
            }
            Purpose::Answer => {
                let whole = match text {
                    None => state.system.complete(request, &caller).await,
                    Some(text) => state.system.complete_text(continuing(request, text).into(), &caller).await,
                };
                let render = |generation: &_, body: &mut _| form.whole(generation, body);
                whole
                    .map(|whole| answer::send_whole(&whole, &caller, &warnings, render))
                    .map_err(ApiError::from)
            }
        };
        answered.map_err(|error| error.for_missing_model(&requested))
    }
}

/// Loads or unloads a model.
pub(super) async fn in_memory(
    state: &ServerState,
    model: &str,
    purpose: Purpose,
    rights: CallerRights,
) -> ApiResult<()> {
    match purpose {
        Purpose::Unload if rights.role != CallerRole::Owner => Err(ApiError::owner_only("Unloading a model")),
        Purpose::Unload => Ok(state.system.unload_model(model, rights).await?),
        Purpose::Load | Purpose::Answer => Ok(state.system.load_model(model, rights).await?),
    }
}

/// The answer to a request without a question.
fn memory_answer(form: &AnswerForm, purpose: Purpose, warnings: &[AnswerWarning]) -> Response {
    let reason = if purpose == Purpose::Unload { "unload" } else { "load" };
    let body = form.without_words(reason);
    with_warnings(answer::json_response(body), warnings.iter())
}
