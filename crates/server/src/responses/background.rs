//! Responses in the background: each is a task of the server that ends when it is complete, cancelled, or the server stops. Its events
//! are kept for a while, so that a client can read them from any point.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use axum::response::Response;
use futures::StreamExt;
use hob_conversations::{ResponseOwner, StoredResponse};
use hob_core::{Caller, Delta, EngineError, Moment, ReplyMode};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;
use tracing::Instrument;

use super::context::store_failed;
use super::create::Attempt;
use super::event_log::EventLog;
use super::events::ResponseEvents;
use super::stored::json_response;
use super::stored_body::Keeper;
use crate::answer::stream::{StreamClient, StreamEncoder};
use crate::answer::streaming;
use crate::error::ApiError;
use crate::state::ServerState;
use crate::warning_header::with_warnings;

/// Responses in the background at once, of all callers and of strangers.
const MAX_RUNS: usize = 32;
const MAX_STRANGERS_RUNS: usize = 8;

/// Responses whose events are kept after their end: the owner's, and those of strangers.
const MAX_ENDED: usize = 12;
const MAX_STRANGERS_ENDED: usize = 4;

/// For how long.
const KEPT_AFTER_END: Duration = Duration::from_secs(5 * 60);

/// A response that nobody works on any more is given up after this time, and its task says more often that it is still there.
const LEASE: Duration = Duration::from_secs(60);
const RENEWED_EVERY: Duration = Duration::from_secs(20);

/// The responses that run in the background, and those that ended a short time ago.
pub(crate) struct BackgroundRuns {
    runs: Mutex<HashMap<String, Arc<BackgroundRun>>>,
    tasks: TaskTracker,
    /// No further response may begin, and no events are kept.
    closing: CancellationToken,
    stopped: CancellationToken,
}

/// One response in the background.
pub(super) struct BackgroundRun {
    owner: ResponseOwner,
    mode: ReplyMode,
    cancelled: CancellationToken,
    forgotten: CancellationToken,
    log: Arc<EventLog>,
}

/// A response that is among the runs until this is dropped: also if its task panics, or never starts.
struct RunGuard {
    runs: Arc<BackgroundRuns>,
    id: String,
    run: Arc<BackgroundRun>,
    _task: TaskTrackerToken,
}

impl Drop for RunGuard {
    fn drop(&mut self) {
        self.run.log.end();
        self.runs.forget(&self.id);
    }
}

impl RunGuard {
    /// Keeps the events of a response that has ended for a while.
    async fn keep(self) {
        if self.run.mode == ReplyMode::Complete {
            return;
        }
        tokio::select! {
            () = tokio::time::sleep(KEPT_AFTER_END) => {}
            () = self.run.forgotten.cancelled() => {}
            () = self.runs.closing.cancelled() => {}
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl BackgroundRuns {
    pub(crate) fn new() -> Self {
        BackgroundRuns {
            runs: Mutex::default(),
            tasks: TaskTracker::new(),
            closing: CancellationToken::new(),
            stopped: CancellationToken::new(),
        }
    }

    /// Waits until no response runs. No further one can begin.
    pub(crate) async fn drain(&self) {
        {
            let _none_begins = lock(&self.runs);
            self.closing.cancel();
            self.tasks.close();
        }
        self.tasks.wait().await;
    }

    /// Ends the responses that still run.
    pub(crate) fn stop(&self) {
        self.stopped.cancel();
    }

    /// The response of this id, if it runs here or ended a short time ago.
    pub(super) fn find(&self, owner: &ResponseOwner, id: &str) -> Option<Arc<BackgroundRun>> {
        lock(&self.runs).get(id).filter(|run| run.owner == *owner).cloned()
    }

    pub(super) fn forget(&self, id: &str) {
        if let Some(run) = lock(&self.runs).remove(id) {
            run.forget();
        }
    }

    fn begin(
        self: &Arc<Self>,
        id: &str,
        owner: &ResponseOwner,
        mode: ReplyMode,
    ) -> Result<RunGuard, ApiError> {
        let mut runs = lock(&self.runs);
        if self.closing.is_cancelled() {
            return Err(ApiError::shutting_down());
        }
        let running = || runs.values().filter(|run| run.log.ended().is_none());
        let of_strangers = running().filter(|run| !run.owner.is_owner()).count();
        if running().count() >= MAX_RUNS || (!owner.is_owner() && of_strangers >= MAX_STRANGERS_RUNS) {
            return Err(ApiError::too_many_background_runs());
        }
        forget_oldest(&mut runs, owner);
        let run = Arc::new(BackgroundRun::new(owner.clone(), mode));
        runs.insert(id.to_owned(), Arc::clone(&run));
        Ok(RunGuard { runs: Arc::clone(self), id: id.to_owned(), run, _task: self.tasks.token() })
    }
}

/// Forgets the oldest of too many responses that have ended: the owner's, or those of strangers.
fn forget_oldest(runs: &mut HashMap<String, Arc<BackgroundRun>>, owner: &ResponseOwner) {
    let of_same = runs.iter().filter(|(_, run)| run.owner.is_owner() == owner.is_owner());
    let mut ended: Vec<(Instant, String)> =
        of_same.filter_map(|(id, run)| Some((run.log.ended()?, id.clone()))).collect();
    ended.sort_unstable();
    let most = if owner.is_owner() { MAX_ENDED } else { MAX_STRANGERS_ENDED };
    let excess = ended.len().saturating_sub(most);
    for (_, id) in ended.into_iter().take(excess) {
        if let Some(run) = runs.remove(&id) {
            run.forget();
        }
    }
}

impl BackgroundRun {
    fn new(owner: ResponseOwner, mode: ReplyMode) -> Self {
        BackgroundRun {
            owner,
            mode,
            cancelled: CancellationToken::new(),
            forgotten: CancellationToken::new(),
            log: Arc::new(EventLog::new()),
        }
    }

    /// Cancels the response, and waits until it is stored as cancelled.
    pub(super) async fn cancel(&self) {
        self.cancelled.cancel();
        self.log.until_end().await;
    }

    fn record(&self, events: &[u8]) {
        if self.mode == ReplyMode::Streamed {
            self.log.add(events);
        }
    }

    fn forget(&self) {
        self.log.discard();
        self.forgotten.cancel();
    }

    /// The events after the one of this number, as they come.
    pub(super) fn follow(&self, starting_after: Option<usize>) -> Result<Response, ApiError> {
        if self.mode == ReplyMode::Complete {
            return Err(ApiError::no_events(
                "this response was created without 'stream', so it has no events",
            ));
        }
        let next = starting_after.map_or(0, |after| after.saturating_add(1));
        Ok(streaming::<ResponseEvents>(Arc::clone(&self.log).follow(next)))
    }
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
    let guard = state.background.begin(&new.keeper.id, &new.keeper.owner, new.mode)?;
    let run = Arc::clone(&guard.run);
    let warnings = new.attempt.warnings().to_vec();
    let new = NewRun { events: new.events.queued(), ..new };
    let body = new.events.queued_body();
    let (stored, is_stored) = oneshot::channel();
    let state = Arc::clone(state);
    let task = async move {
        // Boxed, so that its memory is freed while the events are kept.
        Box::pin(work(&state, &guard.run, new, stored)).await;
        guard.keep().await;
    };
    // All of it in the task: a client that leaves does not leave half a run behind.
    tokio::spawn(task.instrument(tracing::Span::current()));
    // A task that panicked says nothing.
    is_stored.await.map_err(|_| ApiError::store_unavailable())??;
    let response = match run.mode {
        ReplyMode::Streamed => run.follow(None)?,
        ReplyMode::Complete => json_response(body.into()),
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

async fn work(
    state: &Arc<ServerState>,
    run: &Arc<BackgroundRun>,
    new: NewRun,
    stored: oneshot::Sender<Result<(), ApiError>>,
) {
    let NewRun { keeper, attempt, caller, mut events, mode, client } = new;
    let saved = save(&keeper, events.queued_body()).await;
    let is_saved = saved.is_ok();
    if is_saved {
        let mut out = Vec::new();
        events.announce(&mut out);
        run.record(&out);
    }
    if stored.send(saved).is_err() {
        // The client has left, and nobody else knows the response.
        run.cancelled.cancel();
    }
    if !is_saved {
        return;
    }
    update(&keeper, events.in_progress_body()).await;
    let role = caller.role;
    let end = {
        let mut answering = std::pin::pin!(answer(state, attempt, &caller, &mut events, mode, run));
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
                // Another process can cancel it too.
                _ = renewal.tick() => if !renew(&keeper).await {
                    break RunEnd::Cancelled;
                },
            }
        }
    };
    let mut last = Vec::new();
    match end {
        RunEnd::Answered(events) => last = events,
        RunEnd::Failed(error) => events.fail(&error.for_caller(role), &mut last),
        RunEnd::Cancelled => events.cancel(&mut last),
    }
    if let Some(mut finished) = events.take_finished() {
        if !keeper.fits(&finished) {
            finished = events.object.failed(&ApiError::response_too_large());
        }
        // What was not stored is logged: nobody waits for a header.
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
) -> Result<Vec<u8>, ApiError> {
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
        if matches!(delta, Delta::Done { .. }) {
            return Ok(out);
        }
        run.record(&out);
        out.clear();
    }
    let reason = "it ended without a finish".to_owned();
    Err(EngineError::Interrupted { engine: "the engine".to_owned(), reason }.into())
}

async fn save(keeper: &Arc<Keeper>, queued: Vec<u8>) -> Result<(), ApiError> {
    let writer = Arc::clone(keeper);
    let work = move || {
        let queued: StoredResponse = writer.response(queued, Some(lease()));
        writer.store.save(&writer.owner, &queued, None, SystemTime::now())
    };
    keeper.state.blocking.run(work).await.map(drop).map_err(store_failed)
}

async fn update(keeper: &Arc<Keeper>, in_progress: Vec<u8>) {
    let writer = Arc::clone(keeper);
    let work = move || {
        let response = writer.response(in_progress, Some(lease()));
        writer.store.update(&writer.owner, &response, None, SystemTime::now())
    };
    if let Err(error) = keeper.state.blocking.run(work).await {
        tracing::warn!(%error, response = keeper.id, "a response was not updated");
    }
}

/// Whether the response is still to be written.
async fn renew(keeper: &Arc<Keeper>) -> bool {
    let writer = Arc::clone(keeper);
    let work = move || writer.store.renew(&writer.owner, &writer.id, lease());
    match keeper.state.blocking.run(work).await {
        Ok(is_wanted) => is_wanted,
        Err(error) => {
            tracing::warn!(%error, response = keeper.id, "a response was not updated");
            true
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs() -> Arc<BackgroundRuns> {
        Arc::new(BackgroundRuns::new())
    }

    fn stranger() -> ResponseOwner {
        ResponseOwner::stranger("192.0.2.1")
    }

    #[test]
    fn a_run_that_never_starts_or_panics_is_over_and_forgotten() {
        let runs = runs();
        let guard = runs.begin("a", &stranger(), ReplyMode::Streamed).unwrap();
        let run = runs.find(&stranger(), "a").unwrap();
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let _guard = guard;
            panic!("on purpose");
        }));
        assert!(panicked.is_err() && run.log.ended().is_some());
        assert!(runs.find(&stranger(), "a").is_none());
        assert!(runs.tasks.is_empty());
    }

    #[test]
    fn so_many_strangers_run_and_the_owner_still_can() {
        let runs = runs();
        let begin = |number: usize, owner| runs.begin(&number.to_string(), &owner, ReplyMode::Complete);
        let _strangers: Vec<RunGuard> =
            (0..MAX_STRANGERS_RUNS).map(|number| begin(number, stranger()).unwrap()).collect();
        assert_eq!(begin(100, stranger()).err().unwrap().code(), Some("rate_limit_exceeded"));
        let owner = begin(101, ResponseOwner::owner()).unwrap();
        drop((owner, _strangers));
        assert!(begin(102, stranger()).is_ok());
    }

    #[test]
    fn ended_runs_of_strangers_do_not_push_out_those_of_the_owner() {
        let runs = runs();
        let owner = ResponseOwner::owner();
        let mut guards = Vec::new();
        let mut ended = |id: String, owner: &ResponseOwner| {
            let guard = runs.begin(&id, owner, ReplyMode::Streamed).unwrap();
            guard.run.log.end();
            guards.push(guard);
        };
        ended("mine".to_owned(), &owner);
        (0..MAX_STRANGERS_ENDED + 3).for_each(|number| ended(number.to_string(), &stranger()));
        assert!(runs.find(&owner, "mine").is_some());
        let kept: Vec<usize> = (0..MAX_STRANGERS_ENDED + 3)
            .filter(|number| runs.find(&stranger(), &number.to_string()).is_some())
            .collect();
        assert_eq!(kept, [2, 3, 4, 5, 6], "the newest, and the last one that has ended since");
    }

    #[tokio::test(start_paused = true)]
    async fn events_are_kept_for_five_minutes_and_no_longer() {
        let runs = runs();
        let guard = runs.begin("a", &stranger(), ReplyMode::Streamed).unwrap();
        guard.run.record(b"event: a\ndata: {}\n\n");
        guard.run.log.end();
        let run = Arc::clone(&guard.run);
        let keeping = tokio::spawn(guard.keep());
        tokio::time::sleep(KEPT_AFTER_END - Duration::from_secs(1)).await;
        assert!(runs.find(&stranger(), "a").is_some());
        tokio::time::sleep(Duration::from_secs(2)).await;
        assert!(runs.find(&stranger(), "a").is_none() && run.forgotten.is_cancelled());
        keeping.await.unwrap();
    }

    #[tokio::test]
    async fn a_server_that_stops_begins_nothing_and_keeps_nothing() {
        let runs = runs();
        let guard = runs.begin("a", &stranger(), ReplyMode::Streamed).unwrap();
        guard.run.log.end();
        let keeping = tokio::spawn(guard.keep());
        runs.drain().await;
        keeping.await.unwrap();
        assert!(runs.begin("b", &stranger(), ReplyMode::Streamed).is_err());
    }
}
