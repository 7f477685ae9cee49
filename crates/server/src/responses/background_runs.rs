//! The responses that run in the background, and those that ended a short time ago, whose events are kept for a while. Knows nothing of
//! how a response is answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use hob_conversations::ResponseOwner;
use hob_core::ReplyMode;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tokio_util::task::task_tracker::TaskTrackerToken;

use super::event_log::EventLog;
use crate::error::{ApiError, ApiResult};

/// Responses in the background at once, of all callers and of strangers.
const MAX_RUNS: usize = 32;
const MAX_STRANGERS_RUNS: usize = 8;

/// Responses whose events are kept after their end: the owner's, and those of strangers.
const MAX_ENDED: usize = 12;
const MAX_STRANGERS_ENDED: usize = 4;

/// For how long.
const KEPT_AFTER_END: Duration = Duration::from_secs(5 * 60);

/// The responses that run in the background, and those that ended a short time ago.
pub(crate) struct BackgroundRuns {
    runs: Mutex<HashMap<String, Arc<BackgroundRun>>>,
    tasks: TaskTracker,
    /// No further response may begin, and no events are kept.
    closing: CancellationToken,
    pub(super) stopped: CancellationToken,
}

/// One response in the background.
pub(super) struct BackgroundRun {
    owner: ResponseOwner,
    pub(super) mode: ReplyMode,
    pub(super) cancelled: CancellationToken,
    forgotten: CancellationToken,
    pub(super) log: Arc<EventLog>,
}

/// A response that is among the runs until this is dropped: also if its task panics, or never starts.
pub(super) struct RunGuard {
    runs: Arc<BackgroundRuns>,
    id: String,
    pub(super) run: Arc<BackgroundRun>,
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
    pub(super) async fn keep(self) {
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
        // A server that stops lets clients read to the end.
        if let Some(run) = lock(&self.runs).remove(id).filter(|_| !self.closing.is_cancelled()) {
            run.forget();
        }
    }

    /// Makes room for a response, unless too many run or the server stops.
    pub(super) fn begin(
        self: &Arc<Self>,
        id: &str,
        owner: &ResponseOwner,
        mode: ReplyMode,
    ) -> ApiResult<RunGuard> {
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

    pub(super) fn record(&self, events: &[u8]) {
        if self.mode == ReplyMode::Streamed {
            self.log.add(events);
        }
    }

    fn forget(&self) {
        self.log.discard();
        self.forgotten.cancel();
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
