//! `POST /v1/responses`: whole, streamed, or in the background.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use hob_conversations::responses::limits::MAX_RESPONSE_BYTES;
use hob_core::{AnswerWarning, Caller, ReplyMode};
use serde_json::json;

use super::attempt::Attempt;
use super::background;
use super::context;
use super::events::ResponseEvents;
use super::item_ids::{conversation_items, identified};
use super::object::ResponseObject;
use super::owner_of;
use super::request::{Continues, CreateRequest, ReadyRequest};
use super::stored_body::{Keeper, StoredBody};
use crate::answer::stream::AnswerBody;
use crate::answer::{self, Received, new_id, stream_response, streaming, whole_response};
use crate::error::ApiError;
use crate::request_context::RequestContext;
use crate::state::ServerState;
use crate::unix_time::unix_now;

pub(crate) async fn create(
    State(state): State<Arc<ServerState>>,
    request: Request,
) -> Result<Response, ApiError> {
    let role = RequestContext::role(request.extensions());
    answer(state, request).await.map_err(|error| error.for_caller(role).with_param(as_written))
}

/// The field of a request that an engine knows by another name.
fn as_written(param: &str) -> Option<String> {
    let name = param.split(['[', '.']).next().unwrap_or(param);
    match name {
        "messages" => Some("input".to_owned()),
        "max_tokens" | "max_completion_tokens" => Some("max_output_tokens".to_owned()),
        "response_format" => Some("text.format".to_owned()),
        _ => None,
    }
}

/// A request as far as it can be read without the store.
enum Parsed {
    Ready(Box<ReadyRequest>),
    NeedsStore(Box<CreateRequest>),
}

fn parse(body: &[u8]) -> Result<Parsed, ApiError> {
    let mut request = CreateRequest::parse(body)?;
    if request.needs_store() {
        return Ok(Parsed::NeedsStore(Box::new(request)));
    }
    let input = std::mem::take(&mut request.input);
    Ok(Parsed::Ready(Box::new(request.complete(&[], input)?)))
}

async fn answer(state: Arc<ServerState>, request: Request) -> Result<Response, ApiError> {
    let Received { parsed, caller, client } =
        answer::receive(&state, request, new_id("resp_"), parse).await?;
    let mut ready = match parsed {
        Parsed::Ready(ready) => ready,
        Parsed::NeedsStore(request) => {
            Box::new(context::complete(&state, *request, owner_of(caller.role)).await?)
        }
    };
    let caller = Caller { agent: ready.options.agent.clone(), ..caller };
    let keeper = keeper(&state, &mut ready, &caller)?;
    let object = ResponseObject::new(&caller.run, unix_now(), &ready.request.model, &ready.echo);
    let ReadyRequest { request, options, form, warnings, .. } = *ready;
    let attempt = Attempt::new(request, options.truncation, warnings);
    if options.background {
        let keeper = keeper.ok_or_else(ApiError::no_response_store)?;
        let events = ResponseEvents::new(object, form);
        let run = background::NewRun { keeper, attempt, caller, events, mode: options.mode, client };
        return background::start(&state, run).await;
    }
    match options.mode {
        ReplyMode::Complete => {
            let (answered, warnings) = attempt.complete(&state, &caller).await?;
            let mut object = object;
            object.set_model(&answered.generation.model);
            let finished = object.finish(&answered.generation, &form, unix_now());
            let body = finished.body.clone();
            if let Some(keeper) = keeper
                && let Err(finished) = keeper.finish_now(finished)
            {
                Box::pin(keeper.finish(finished)).await;
            }
            // Until here the answer may have used the contents of the request.
            drop(client);
            Ok(whole_response(body, &answered, &caller, &warnings))
        }
        ReplyMode::Streamed => {
            let (answer, warnings) = attempt.stream(&state, &caller).await?;
            let mut events = ResponseEvents::new(object, form);
            events.answered_by(&answer.model);
            let body = |deltas| {
                let answer = AnswerBody::new(deltas, events, client);
                streaming::<ResponseEvents>(match keeper {
                    None => Body::new(answer),
                    Some(_) => Body::new(StoredBody { answer, keeper, saving: None }),
                })
            };
            Ok(stream_response(answer, &caller, &warnings, body))
        }
    }
}

/// Where the response is stored; `None` if nothing of it is.
fn keeper(
    state: &Arc<ServerState>,
    ready: &mut ReadyRequest,
    caller: &Caller,
) -> Result<Option<Arc<Keeper>>, ApiError> {
    let conversation = match &ready.continues {
        Continues::Conversation(id) => Some(id.clone()),
        Continues::Nothing | Continues::Response(_) => None,
    };
    let previous = match &ready.continues {
        Continues::Response(id) => Some(id.clone()),
        Continues::Nothing | Continues::Conversation(_) => None,
    };
    if !ready.options.store && conversation.is_none() {
        return Ok(None);
    }
    let suffix = caller.run.split_once('_').map_or(&*caller.run, |(_, suffix)| suffix);
    let items = identified(std::mem::take(&mut ready.input), suffix);
    let input = json!(items).to_string();
    let is_storable = state.responses.is_some() && input.len() <= MAX_RESPONSE_BYTES;
    if ready.options.store && !is_storable {
        if ready.options.background {
            return Err(match &state.responses {
                None => ApiError::no_response_store(),
                Some(_) => {
                    ApiError::invalid("input", "the input is too large for a response in the background")
                }
            });
        }
        ready.options.store = false;
        ready.echo.store = false;
        ready.warnings.push(AnswerWarning::Ignored("store".to_owned()));
    }
    let Some(store) = state.responses.clone() else { return Ok(None) };
    Ok(Some(Arc::new(Keeper {
        state: Arc::clone(state),
        store,
        owner: owner_of(caller.role),
        id: caller.run.to_string(),
        previous,
        items: if conversation.is_some() { conversation_items(&items) } else { Vec::new() },
        conversation,
        input,
        stores_response: ready.options.store,
    })))
}
