//! `POST /v1/responses`: whole, streamed, or in the background.

use std::sync::Arc;

use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use hob_app::AnswerStream;
use hob_core::{AnswerWarning, Answered, AskError, Caller, GenerateRequest, NoSuitableModel, ReplyMode};

use super::background;
use super::context;
use super::events::ResponseEvents;
use super::owner_of;
use super::ready_request::{NewResponse, ReadyRequest};
use super::request::{CreateRequest, Truncation};
use super::stored_body::{Keeper, StoredBody};
use super::truncation::drop_oldest;
use crate::answer::stream::AnswerBody;
use crate::answer::{self, Received, new_id, stream_response, streaming, whole_response};
use crate::error::ApiError;
use crate::request_context::RequestContext;
use crate::state::ServerState;
use crate::unix_time::unix_now;

/// How often a conversation that is too long is shortened.
const MAX_TRUNCATIONS: u32 = 6;

/// What is kept of a conversation that is too long, where the engine does not say by how much, and beyond what it says.
const KEPT_SHARE: f64 = 0.5;
const MARGIN: f64 = 0.9;

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

fn parse(body: &[u8], new: &NewResponse) -> Result<Parsed, ApiError> {
    let mut request = CreateRequest::parse(body)?;
    if request.needs_store() {
        return Ok(Parsed::NeedsStore(Box::new(request)));
    }
    let input = std::mem::take(&mut request.input);
    Ok(Parsed::Ready(Box::new(request.complete(&[], input, new)?)))
}

async fn answer(state: Arc<ServerState>, request: Request) -> Result<Response, ApiError> {
    let owner = owner_of(request.extensions());
    let new = NewResponse { id: new_id("resp_"), created: unix_now(), has_store: state.responses.is_some() };
    let parsing = new.clone();
    let Received { parsed, caller, client } =
        answer::receive(&state, request, new.id.clone(), move |body| parse(body, &parsing)).await?;
    let (ready, lock) = match parsed {
        Parsed::Ready(ready) => (ready, None),
        Parsed::NeedsStore(request) => {
            let conversation = request.continues.conversation();
            let lock = conversation.map(|id| state.conversation_locks.acquire(&owner, id)).transpose()?;
            (Box::new(context::complete(&state, *request, owner.clone(), new).await?), lock)
        }
    };
    let ReadyRequest { request, input, continues, options, form, object, warnings } = *ready;
    let caller = Caller { agent: options.agent.clone(), ..caller };
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
    let attempt = Attempt { request, truncation: options.truncation, truncated: 0, warnings };
    if options.background {
        let keeper = keeper.ok_or_else(ApiError::no_response_store)?;
        let events = ResponseEvents::new(object, form);
        let run = background::NewRun { keeper, attempt, caller, events, mode: options.mode, client };
        return background::start(&state, run).await;
    }
    match options.mode {
        ReplyMode::Complete => {
            let (answered, mut warnings) = attempt.complete(&state, &caller).await?;
            let mut object = object;
            object.set_model(&answered.generation.model);
            let finished = object.finish(&answered.generation, &form, unix_now());
            let body = finished.body.clone();
            if let Some(keeper) = keeper
                && let Err(finished) = keeper.finish_now(finished)
            {
                warnings.extend(Box::pin(keeper.finish(finished)).await);
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

/// A request that is asked again without its oldest turns if it is too long and the caller allows that.
pub(super) struct Attempt {
    request: GenerateRequest,
    truncation: Truncation,
    truncated: u32,
    warnings: Vec<AnswerWarning>,
}

impl Attempt {
    pub(super) fn warnings(&self) -> &[AnswerWarning] {
        &self.warnings
    }

    pub(super) async fn complete(
        mut self,
        state: &ServerState,
        caller: &Caller,
    ) -> Result<(Answered, Vec<AnswerWarning>), AskError> {
        loop {
            let (request, copy) = self.next();
            match state.system.complete(request, caller).await {
                Ok(answered) => return Ok((answered, self.warnings)),
                Err(error) => self.request = self.adapted(copy, &error).ok_or(error)?,
            }
        }
    }

    pub(super) async fn stream(
        mut self,
        state: &ServerState,
        caller: &Caller,
    ) -> Result<(AnswerStream, Vec<AnswerWarning>), AskError> {
        loop {
            let (request, copy) = self.next();
            match state.system.stream(request, caller).await {
                Ok(answer) => return Ok((answer, self.warnings)),
                Err(error) => self.request = self.adapted(copy, &error).ok_or(error)?,
            }
        }
    }

    /// The request, and a copy of it if it may be asked again.
    fn next(&mut self) -> (GenerateRequest, Option<GenerateRequest>) {
        let request = std::mem::take(&mut self.request);
        let copy = (self.truncation == Truncation::Auto).then(|| request.clone());
        (request, copy)
    }

    /// The request without its oldest turns; `None` if its length is not what the engine refused, or nothing can be left out.
    fn adapted(&mut self, request: Option<GenerateRequest>, error: &AskError) -> Option<GenerateRequest> {
        let mut request = request?;
        let overflow = match error {
            AskError::Engine(error) => error.context_overflow()?,
            AskError::NoModel(NoSuitableModel::NothingFits { .. }) => {
                hob_core::ContextOverflow { limit: None, length: None }
            }
            _ => return None,
        };
        if self.truncated == MAX_TRUNCATIONS {
            return None;
        }
        self.truncated += 1;
        let share = match (overflow.limit, overflow.length) {
            (Some(limit), Some(length)) if limit < length => limit as f64 / length as f64 * MARGIN,
            _ => KEPT_SHARE,
        };
        if drop_oldest(&mut request.messages, share) == 0 {
            return None;
        }
        let warning = AnswerWarning::Ignored("input[0]".to_owned());
        if !self.warnings.contains(&warning) {
            self.warnings.push(warning);
        }
        Some(request)
    }
}
