//! Responses in the background: each is a task of the server that ends when it is complete, cancelled, or the server stops.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use axum::body::Body;
use axum::http::{HeaderValue, header};
use axum::response::{IntoResponse, Response};
use futures::StreamExt;
use hob_conversations::StoredResponse;
use hob_core::{Caller, Delta, EngineError, Moment, ReplyMode};
use tracing::Instrument;

use super::attempt::Attempt;
use super::background_runs::{BackgroundRun, EventsTooLong};
use super::context::store_failed;
use super::events::{ResponseEvents, push_error_event};
use super::stored_body::Keeper;
use crate::answer::stream::{StreamClient, StreamEncoder};
use crate::answer::streaming;
use crate::error::ApiError;
use crate::state::ServerState;
use crate::warning_header::with_warnings;

/// A response whose task has not renewed its lease for this time has failed. Tasks renew it more often.
const LEASE: Duration = Duration::from_secs(60);
const RENEWED_EVERY: Duration = Duration::from_secs(20);

/// The events of a response after the one of this number, as they come.
pub(super) fn follow(run: &Arc<BackgroundRun>, starting_after: Option<usize>) -> Result<Response, ApiError> {
    let events = run.follow(starting_after).ok_or_else(|| {
        ApiError::no_events("this response was created without 'stream', so it has no events")
    })?;
    let events = events.map(|events| {
        let too_long = |EventsTooLong { next }| {
            let message =
                "the events of this response are too long to be kept. GET the response without 'stream'";
            let mut out = Vec::new();
            push_error_event(&ApiError::no_events(message), next as u64, &mut out);
            out.into()
        };
        Ok::<_, Infallible>(events.unwrap_or_else(too_long))
    });
    Ok(streaming::<ResponseEvents>(Body::from_stream(events.fuse())))
}

/// A response that is to run.
pub(super) struct NewRun {
    pub(super) keeper: Arc<Keeper>,
    pub(super) attempt: Attempt,
    pub(super) caller: Caller,
    pub(super) events: ResponseEvents,
    pub(super) mode: ReplyMode,
    pub(super) client: StreamClient,
}

/// Stores a response as queued, starts it, and returns it, or its events.
pub(super) async fn start(state: &Arc<ServerState>, new: NewRun) -> Result<Response, ApiError> {
    let run = Arc::new(BackgroundRun::new(new.keeper.owner.clone(), new.mode));
    let id = new.keeper.id.clone();
    state.background.add(&id, &run)?;
    let warnings = new.attempt.warnings().to_vec();
    let mut new = NewRun { events: new.events.queued(), ..new };
    let body = new.events.queued_body();
    let queued = new.keeper.response(body.clone(), Some(lease()));
    let keeper = Arc::clone(&new.keeper);
    let stored = move || keeper.store.save(&keeper.owner, &queued, None, SystemTime::now());
    if let Err(error) = state.blocking.run(stored).await {
        state.background.forget(&id);
        return Err(store_failed(error));
    }
    let mut out = Vec::new();
    new.events.announce(&mut out);
    run.record(&out);
    let task = work(Arc::clone(state), Arc::clone(&run), new).instrument(tracing::Span::current());
    state.background.tasks.spawn(task);
    let response = match run.mode {
        ReplyMode::Streamed => follow(&run, None)?,
        ReplyMode::Complete => {
            ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], body).into_response()
        }
    };
    Ok(with_warnings(response, warnings.iter()))
}

fn lease() -> Moment {
    Moment::of(SystemTime::now() + LEASE)
}

/// How a run ended.
enum RunEnd {
    /// With these last events.
    Answered(Vec<u8>),
    Failed(ApiError),
    Cancelled,
}

async fn work(state: Arc<ServerState>, run: Arc<BackgroundRun>, new: NewRun) {
    let NewRun { keeper, attempt, caller, mut events, mode, client } = new;
    let in_progress = keeper.response(events.in_progress_body(), Some(lease()));
    update(&keeper, in_progress).await;
    let role = caller.role;
    let end = {
        let mut answering = std::pin::pin!(answer(&state, attempt, &caller, &mut events, mode, &run));
        let mut renewal = tokio::time::interval(RENEWED_EVERY);
        loop {
            tokio::select! {
                biased;
                () = run.cancelled.cancelled() => break RunEnd::Cancelled,
                () = state.background.stopped.cancelled() => break RunEnd::Failed(ApiError::shutting_down()),
                end = &mut answering => break match end {
                    Ok(last) => RunEnd::Answered(last),
                    Err(error) => RunEnd::Failed(error),
                },
                _ = renewal.tick() => renew(&keeper).await,
            }
        }
    };
    let mut last = Vec::new();
    match end {
        RunEnd::Answered(events) => last = events,
        RunEnd::Failed(error) => events.fail(&error.for_caller(role), &mut last),
        RunEnd::Cancelled => events.cancel(&mut last),
    }
    if let Some(finished) = events.take_finished() {
        Arc::clone(&keeper).replace(finished).await;
    }
    run.record(&last);
    run.end();
    drop(client);
}

/// Asks, and records the events. The last ones are returned: they follow when the response is stored.
async fn answer(
    state: &ServerState,
    attempt: Attempt,
    caller: &Caller,
    events: &mut ResponseEvents,
    mode: ReplyMode,
    run: &BackgroundRun,
) -> Result<Vec<u8>, ApiError> {
    let mut out = Vec::new();
    if mode == ReplyMode::Complete {
        let (answered, _) = Box::pin(attempt.complete(state, caller)).await?;
        events.answered_by(&answered.generation.model);
        events.finish_whole(&answered.generation);
        return Ok(out);
    }
    let (mut answer, _) = Box::pin(attempt.stream(state, caller)).await?;
    events.answered_by(&answer.model);
    while let Some(delta) = answer.deltas.next().await {
        let delta = delta?;
        events.push(&delta, &mut out);
        if matches!(delta, Delta::Done { .. }) {
            return Ok(out);
        }
        run.record(&out);
        out.clear();
    }
    let reason = "it ended without a finish".to_owned();
    Err(EngineError::Interrupted { engine: "the engine".to_owned(), reason }.into())
}

async fn update(keeper: &Arc<Keeper>, response: StoredResponse) {
    let writer = Arc::clone(keeper);
    let work = move || writer.store.update(&writer.owner, &response, None, SystemTime::now());
    if let Err(error) = keeper.state.blocking.run(work).await {
        tracing::warn!(%error, response = keeper.id, "a response was not updated");
    }
}

async fn renew(keeper: &Arc<Keeper>) {
    let writer = Arc::clone(keeper);
    let work = move || writer.store.renew(&writer.owner, &writer.id, lease());
    if let Err(error) = keeper.state.blocking.run(work).await {
        tracing::warn!(%error, response = keeper.id, "a response was not updated");
    }
}
