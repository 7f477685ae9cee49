//! `POST /v1/responses`: whole, streamed, or in the background.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use futures::TryFutureExt;
use hob_core::{AskError, Caller, ReplyMode};

use super::attempt::Attempt;
use super::background;
use super::context;
use super::events::ResponseEvents;
use super::ready_request::{NewResponse, ReadyRequest};
use super::request::CreateRequest;
use super::stored_body::{Keeper, StoredBody};
use crate::answer::{self, Received, new_id, whole_response};
use crate::error::{ApiError, ApiResult};
use crate::object_owner::owner_of;
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::unix_time::unix_now;

pub(crate) async fn create(State(state): SharedState, request: Request) -> ApiResult<Response> {
    let role = RequestContext::role(request.extensions());
    Box::pin(answer(state, request)).await.map_err(|error| error.for_caller(role).with_param(as_written))
}

/// The field of a request that an engine knows by another name.
pub(super) fn as_written(param: &str) -> Option<String> {
    let name = param.split(['[', '.']).next().unwrap_or(param);
    match name {
        "messages" => Some("input".to_owned()),
        "max_tokens" | "max_completion_tokens" => Some("max_output_tokens".to_owned()),
        "response_format" => Some("text.format".to_owned()),
        _ => None,
    }
}

/// A request as far as it can be read without the store.
pub(super) enum Parsed {
    Ready(Box<ReadyRequest>),
    NeedsStore(Box<CreateRequest>),
}

fn parse(body: &[u8], new: &NewResponse) -> ApiResult<Parsed> {
    without_store(CreateRequest::parse(body)?, new)
}

pub(super) fn without_store(mut request: CreateRequest, new: &NewResponse) -> ApiResult<Parsed> {
    if request.needs_store() {
        return Ok(Parsed::NeedsStore(Box::new(request)));
    }
    let input = std::mem::take(&mut request.input);
    Ok(Parsed::Ready(Box::new(request.complete(&[], input, new)?)))
}

async fn answer(state: Arc<ServerState>, request: Request) -> ApiResult<Response> {
    let owner = owner_of(request.extensions());
    let peer = RequestContext::peer_key(request.extensions());
    let new = NewResponse { id: new_id("resp_"), created: unix_now(), has_store: state.responses.is_some() };
    let parsing = new.clone();
    let Received { parsed, caller, mut client } =
        answer::receive(&state, request, new.id.clone(), move |body| parse(body, &parsing)).await?;
    let (ready, lock) = match parsed {
        Parsed::Ready(ready) => (ready, None),
        Parsed::NeedsStore(request) => {
            let conversation = request.continues.conversation();
            let lock = conversation.map(|id| state.conversation_locks.acquire(&owner, id)).transpose()?;
            let completing = context::complete(&state, *request, owner.clone(), peer, new);
            let (ready, permit) = Box::pin(completing).await?;
            client.stored = permit;
            (Box::new(ready), lock)
        }
    };
    let ReadyRequest { request, input, continues, options, form, object, warnings } = *ready;
    let end_user = answer::user_of(&request);
    let caller = Caller { agent: options.agent.clone(), end_user, ..caller };
    let keeper = match (input, &state.responses) {
        (Some(input), Some(store)) => Some(Arc::new(Keeper {
            state: Arc::clone(&state),
            store: Arc::clone(store),
            owner,
            id: caller.run.to_string(),
            previous: continues.response().map(str::to_owned),
            conversation: continues.conversation().map(str::to_owned),
            input,
            stores_response: options.store,
            _lock: lock,
        })),
        _ => None,
    };
    if let Some(keeper) = &keeper {
        // Before the model works for it.
        keeper.store.check_known_state().map_err(ApiError::store_failed)?;
    }
    let attempt = Attempt::new(request, options.truncation, warnings);
    if options.background {
        let keeper = keeper.ok_or_else(ApiError::no_response_store)?;
        let events = ResponseEvents::new(object, form).kept();
        let run = background::NewRun { keeper, attempt, caller, events, mode: options.mode, client };
        return Box::pin(background::start(&state, run)).await;
    }
    match options.mode {
        ReplyMode::Complete => {
            let (answered, mut warnings) = attempt.complete(&state, &caller).await?;
            let mut object = object;
            object.set_model(&answered.generation.model);
            let finished = object.finish(&answered.generation, &form, unix_now());
            let body = match keeper {
                None => finished.body,
                Some(keeper) => {
                    let body = finished.body.clone();
                    if let Err(finished) = keeper.finish_now(finished) {
                        warnings.extend(Box::pin(keeper.finish(finished)).await);
                    }
                    body
                }
            };
            // Until here the answer may have used the contents of the request.
            drop(client);
            Ok(whole_response(body, &answered, &caller, &warnings))
        }
        ReplyMode::Streamed => {
            let warnings = attempt.warnings().to_vec();
            let known = warnings.len();
            let answer = async move {
                let (mut answer, warnings) = attempt.stream(&state, &caller).await?;
                answer.warnings.extend(warnings.into_iter().skip(known));
                Ok(answer)
            };
            let answer = answer.map_err(|error: AskError| ApiError::from(error).with_param(as_written));
            let events = ResponseEvents::new(object, form);
            let events = if keeper.is_some() { events.kept() } else { events };
            let wrap = |answer| match keeper {
                None => Body::new(answer),
                Some(_) => Body::new(StoredBody { answer, keeper, saving: None }),
            };
            answer::send_stream(answer, &warnings, client, events, wrap).await
        }
    }
}
