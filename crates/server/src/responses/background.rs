//! Responses in the background: each is a task of the server that ends when it is complete, cancelled, or the server stops.

use std::sync::Arc;
use std::time::{Duration, SystemTime};
use std::{fmt, io};

use axum::body::Body;
use axum::response::Response;
use futures::StreamExt;
use hob_conversations::responses::RESPONSE_LEASE;
use hob_conversations::{ResponseLease, StoredResponse};
use hob_core::{Caller, Delta, EngineError, LogScope, ReplyMode};
use tokio::sync::oneshot;
use tokio::time::{Instant, interval_at};

use super::attempt::Attempt;
use super::background_runs::BackgroundRun;
use super::event_log::EventsGone;
use super::events::ResponseEvents;
use super::numbered_events::push_error_event;
use super::stored_body::Keeper;
use crate::answer::stream::{StreamClient, StreamEncoder};
use crate::answer::{json_response, streaming};
use crate::error::{ApiError, ApiResult};
use crate::state::ServerState;
use crate::warning_header::with_warnings;

/// How often the lease is renewed: two attempts may fail.
const RENEWED_EVERY: Duration = Duration::from_secs(RESPONSE_LEASE.as_secs() / 3);

/// The events of a response after the one of this number, as they come.
pub(super) fn follow(run: &BackgroundRun, starting_after: Option<usize>) -> ApiResult<Response> {
    if run.mode == ReplyMode::Complete {
        return Err(ApiError::no_events("this response was created without 'stream', so it has no events"));
    }
    let next = starting_after.map_or(0, |after| after.saturating_add(1));
    let pieces = Arc::clone(&run.log).follow(next);
    let pieces = pieces.map(|piece| piece.or_else(|EventsGone { next, is_within_event }| {
        let message = "the events of this response are too long, or too old, to be kept. GET the response without 'stream'";
        if is_within_event {
            // Half an event can only break off.
            return Err(io::Error::other(message));
        }
        let mut out = Vec::new();
        push_error_event(&ApiError::no_events(message), next as u64, &mut out);
        Ok(out.into())
    }));
    Ok(streaming::<ResponseEvents>(Body::from_stream(pieces)))
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
pub(super) async fn start(state: &Arc<ServerState>, new: NewRun) -> ApiResult<Response> {
    let guard = state.background.begin(&new.keeper.id, &new.keeper.owner, new.mode)?;
    let run = Arc::clone(&guard.run);
    let warnings = new.attempt.warnings().to_vec();
    let queued = (new.mode == ReplyMode::Complete).then(|| new.events.queued_body());
    let (stored, is_stored) = oneshot::channel();
    let state = Arc::clone(state);
    let task = async move {
        // Boxed, so that its memory is freed while the events are kept.
        Box::pin(work(&state, &guard.run, new, stored)).await;
        guard.keep().await;
    };
    // All of it in the task: a client that leaves does not leave half a run behind.
    tokio::spawn(LogScope::current().within(task));
    // A task that panicked says nothing.
    is_stored.await.map_err(|_| ApiError::store_unavailable())??;
    let response = match queued {
        Some(queued) => json_response(queued),
        None => follow(&run, None)?,
    };
    Ok(with_warnings(response, warnings.iter()))
}

/// How a run ended.
enum RunEnd {
    /// With these last events.
    Answered(Vec<u8>),
    Failed(ApiError),
    Cancelled,
}

async fn work(
    state: &Arc<ServerState>,
    run: &Arc<BackgroundRun>,
    new: NewRun,
    stored: oneshot::Sender<ApiResult<()>>,
) {
    let NewRun { keeper, attempt, caller, mut events, mode, client } = new;
    let queued = events.queued_body();
    let mut first = Vec::new();
    if mode == ReplyMode::Streamed {
        events.announce(&queued, &mut first);
    }
    let saved = save(&keeper, queued).await;
    let is_saved = saved.is_ok();
    if is_saved {
        run.record(&first);
    }
    if stored.send(saved).is_err() {
        // The client has disconnected, and no other client has the id of the response.
        run.cancelled.cancel();
    }
    if !is_saved {
        return;
    }
    let role = caller.role;
    // Another process can have cancelled or deleted it already.
    let end = if update(&keeper, events.in_progress_body()).await {
        let mut answering = std::pin::pin!(answer(state, attempt, &caller, &mut events, mode, run));
        let mut renewal = interval_at(Instant::now() + RENEWED_EVERY, RENEWED_EVERY);
        loop {
            tokio::select! {
                biased;
                () = run.cancelled.cancelled() => break RunEnd::Cancelled,
                () = state.background.stopped.cancelled() => break RunEnd::Failed(ApiError::shutting_down()),
                end = &mut answering => break match end {
                    Ok(last) => RunEnd::Answered(last),
                    Err(error) => RunEnd::Failed(error),
                },
                _ = renewal.tick() => if !renew(&keeper).await {
                    break RunEnd::Cancelled;
                },
            }
        }
    } else {
        RunEnd::Cancelled
    };
    let mut last = Vec::new();
    match end {
        RunEnd::Answered(events) => last = events,
        RunEnd::Failed(error) => {
            tracing::warn!(
                error = error.message(),
                response = keeper.id,
                "a response in the background failed; the caller gets the error when it reads the response"
            );
            events.fail(&error.for_caller(role), &mut last);
        }
        RunEnd::Cancelled => events.cancel(&mut last),
    }
    if let Some(mut finished) = events.take_finished() {
        if !keeper.fits(&finished) {
            finished = events.object.failed(&ApiError::response_too_large());
        }
        // What was not stored is logged: the head of the answer was sent before.
        let _lost = keeper.replace(finished).await;
    }
    run.record(&last);
    run.log.end();
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
) -> ApiResult<Vec<u8>> {
    let mut out = Vec::new();
    if mode == ReplyMode::Complete {
        let (answered, warnings) = Box::pin(attempt.complete(state, caller)).await?;
        let generation = &answered.generation;
        events.answered_by(&generation.model);
        events.object.set_warnings(warnings.iter().chain(&generation.warnings));
        events.finish_whole(generation);
        return Ok(out);
    }
    let (mut answer, warnings) = Box::pin(attempt.stream(state, caller)).await?;
    events.answered_by(&answer.model);
    events.object.set_warnings(warnings.iter().chain(&answer.warnings));
    while let Some(delta) = answer.deltas.next().await {
        let delta = delta?;
        events.push(&delta, &mut out);
        if matches!(delta, Delta::Done { .. }) || events.has_failed() {
            return Ok(out);
        }
        run.record(&out);
        out.clear();
    }
    let reason = "it ended without a finish".to_owned();
    Err(EngineError::Interrupted { engine: "the engine".to_owned(), reason }.into())
}

async fn save(keeper: &Arc<Keeper>, queued: Vec<u8>) -> ApiResult<()> {
    let writer = Arc::clone(keeper);
    let work = move || {
        let queued: StoredResponse = writer.response(queued, Some(ResponseLease::Held));
        writer.store.save(&writer.owner, &queued, None, SystemTime::now())
    };
    keeper.state.blocking.run(work).await.map(drop).map_err(ApiError::store_failed)
}

/// Stores that the response is being written, with a new lease. Whether it is still to be written.
async fn update(keeper: &Arc<Keeper>, in_progress: Vec<u8>) -> bool {
    let writer = Arc::clone(keeper);
    let work = move || {
        let response = writer.response(in_progress, Some(ResponseLease::Held));
        let updated = writer.store.update(&writer.owner, &response, None, SystemTime::now());
        updated.map(|updated| updated.is_some())
    };
    is_wanted(keeper, keeper.state.blocking.run(work).await)
}

/// Extends the lease. Whether the response is still to be written.
async fn renew(keeper: &Arc<Keeper>) -> bool {
    let writer = Arc::clone(keeper);
    let work = move || writer.store.renew(&writer.owner, &writer.id);
    is_wanted(keeper, keeper.state.blocking.run(work).await)
}

/// A store that fails does not end the response.
fn is_wanted(keeper: &Keeper, was_there: Result<bool, impl fmt::Display>) -> bool {
    was_there.unwrap_or_else(|error| {
        tracing::warn!(
            %error,
            response = keeper.id,
            "a response was not updated; Hob tries again. 'hob doctor' checks the database"
        );
        true
    })
}
