//! The responses that run in the background, and their events, which are kept for a while, so that a client can read them from any
//! point. Knows nothing of how a response is answered.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use futures::stream::{self, Stream};
use hob_conversations::ResponseOwner;
use hob_core::ReplyMode;
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::error::ApiError;

/// Responses in the background at once, of all callers and of strangers.
const MAX_RUNS: usize = 32;
const MAX_STRANGERS_RUNS: usize = 8;

/// Responses whose events are kept after their end, and for how long.
const MAX_ENDED: usize = 16;
const KEPT_AFTER_END: Duration = Duration::from_secs(5 * 60);

/// Bytes of the events of one response. The events of a longer one cannot be read; the response can.
const MAX_LOG_BYTES: usize = 16 << 20;

/// The responses that run in the background, and those that ended a short time ago.
pub(crate) struct BackgroundRuns {
    runs: Mutex<HashMap<String, Arc<BackgroundRun>>>,
    pub(super) tasks: TaskTracker,
    pub(super) stopped: CancellationToken,
}

/// One response in the background.
pub(super) struct BackgroundRun {
    owner: ResponseOwner,
    pub(super) mode: ReplyMode,
    pub(super) cancelled: CancellationToken,
    log: Mutex<EventLog>,
    /// Changes with every event, and at the end.
    changed: watch::Sender<()>,
}

/// The events of a response.
#[derive(Default)]
struct EventLog {
    bytes: Vec<u8>,
    /// Where each event ends. Its place in the list is its sequence number.
    ends: Vec<usize>,
    is_too_long: bool,
    ended: Option<Instant>,
}

impl EventLog {
    /// Adds whole events. Comments between them are not kept.
    fn add(&mut self, events: &[u8]) {
        if self.is_too_long || self.bytes.len() + events.len() > MAX_LOG_BYTES {
            self.is_too_long = true;
            self.bytes = Vec::new();
            return;
        }
        for event in events.split_inclusive(|byte| *byte == b'\n') {
            if event.starts_with(b":") {
                continue;
            }
            // An event is two lines and an empty one. The empty line after a comment is none.
            if event == b"\n" && self.bytes.ends_with(b"\n\n") {
                continue;
            }
            if event == b"\n" && self.bytes.is_empty() {
                continue;
            }
            self.bytes.extend_from_slice(event);
            if event == b"\n" {
                self.ends.push(self.bytes.len());
            }
        }
    }

    /// The events from the one of this number on.
    fn since(&self, next: usize) -> &[u8] {
        let start = match next.checked_sub(1) {
            None => 0,
            Some(before) => self.ends.get(before).copied().unwrap_or(self.bytes.len()),
        };
        self.bytes.get(start..).unwrap_or_default()
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
            stopped: CancellationToken::new(),
        }
    }

    /// Waits until no response runs. No further one can begin.
    pub(crate) async fn drain(&self) {
        self.tasks.close();
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
        lock(&self.runs).remove(id);
    }

    pub(super) fn add(&self, id: &str, run: &Arc<BackgroundRun>) -> Result<(), ApiError> {
        let mut runs = lock(&self.runs);
        forget_ended(&mut runs, Instant::now());
        let running = || runs.values().filter(|run| lock(&run.log).ended.is_none());
        let of_strangers = running().filter(|run| !run.owner.is_owner()).count();
        if running().count() >= MAX_RUNS || (!run.owner.is_owner() && of_strangers >= MAX_STRANGERS_RUNS) {
            return Err(ApiError::too_many_background_runs());
        }
        runs.insert(id.to_owned(), Arc::clone(run));
        Ok(())
    }
}

fn forget_ended(runs: &mut HashMap<String, Arc<BackgroundRun>>, now: Instant) {
    let mut ended: Vec<(Instant, String)> =
        runs.iter().filter_map(|(id, run)| Some((lock(&run.log).ended?, id.clone()))).collect();
    ended.sort_unstable();
    let excess = ended.len().saturating_sub(MAX_ENDED);
    for (index, (at, id)) in ended.into_iter().enumerate() {
        if index < excess || now.saturating_duration_since(at) > KEPT_AFTER_END {
            runs.remove(&id);
        }
    }
}

impl BackgroundRun {
    pub(super) fn new(owner: ResponseOwner, mode: ReplyMode) -> Self {
        BackgroundRun {
            owner,
            mode,
            cancelled: CancellationToken::new(),
            log: Mutex::default(),
            changed: watch::Sender::new(()),
        }
    }

    /// Cancels the response, and waits until it is stored as cancelled.
    pub(super) async fn cancel(&self) {
        self.cancelled.cancel();
        let mut changed = self.changed.subscribe();
        while lock(&self.log).ended.is_none() && changed.changed().await.is_ok() {}
    }

    pub(super) fn record(&self, events: &[u8]) {
        if self.mode == ReplyMode::Streamed {
            lock(&self.log).add(events);
            self.changed.send_replace(());
        }
    }

    pub(super) fn end(&self) {
        lock(&self.log).ended = Some(Instant::now());
        self.changed.send_replace(());
    }

    /// The events after the one of this number, as they come; `None` if they are not kept.
    pub(super) fn follow(
        self: &Arc<Self>,
        starting_after: Option<usize>,
    ) -> Option<impl Stream<Item = Result<Bytes, EventsTooLong>> + use<>> {
        if self.mode == ReplyMode::Complete {
            return None;
        }
        let next = starting_after.map_or(0, |after| after.saturating_add(1));
        let changed = self.changed.subscribe();
        let follower = Follower { run: Arc::clone(self), changed, next, is_over: false };
        Some(stream::unfold(follower, |mut follower| async move {
            let events = follower.next_events().await?;
            Some((events, follower))
        }))
    }
}

/// The events of a response that were too long to be kept.
pub(super) struct EventsTooLong {
    /// The number of the first event that the client does not have.
    pub(super) next: usize,
}

/// A client that reads the events of a response in the background.
struct Follower {
    run: Arc<BackgroundRun>,
    changed: watch::Receiver<()>,
    next: usize,
    is_over: bool,
}

impl Follower {
    /// Events that this client does not have yet; `None` after the last one.
    async fn next_events(&mut self) -> Option<Result<Bytes, EventsTooLong>> {
        loop {
            if self.is_over {
                return None;
            }
            self.changed.mark_unchanged();
            {
                let log = lock(&self.run.log);
                if log.is_too_long {
                    self.is_over = true;
                    return Some(Err(EventsTooLong { next: self.next }));
                }
                self.is_over = log.ended.is_some();
                if log.ends.len() > self.next {
                    let events = Bytes::copy_from_slice(log.since(self.next));
                    self.next = log.ends.len();
                    return Some(Ok(events));
                }
            }
            if !self.is_over && self.changed.changed().await.is_err() {
                return None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_from_any_number_and_comments_are_not_kept() {
        let mut log = EventLog::default();
        log.add(b"event: a\ndata: {}\n\n: hob STEP {}\n\nevent: b\ndata: {}\n\n");
        log.add(b": hob STEP {}\n\n");
        log.add(b"event: c\ndata: {}\n\n");
        assert_eq!(log.ends.len(), 3);
        let text = |next| String::from_utf8(log.since(next).to_vec()).unwrap();
        assert_eq!(text(0), "event: a\ndata: {}\n\nevent: b\ndata: {}\n\nevent: c\ndata: {}\n\n");
        assert_eq!(text(2), "event: c\ndata: {}\n\n");
        assert_eq!([text(3), text(9)], ["", ""]);
    }

    #[test]
    fn events_that_are_too_long_are_not_kept() {
        let mut log = EventLog::default();
        let event = format!("event: a\ndata: \"{}\"\n\n", "x".repeat(MAX_LOG_BYTES / 2));
        log.add(event.as_bytes());
        assert!(!log.is_too_long);
        log.add(event.as_bytes());
        log.add(b"event: b\ndata: {}\n\n");
        assert!(log.is_too_long && log.bytes.is_empty());
    }

    #[test]
    fn ended_runs_are_forgotten_by_number_and_by_age() {
        let now = Instant::now() + KEPT_AFTER_END * 3;
        let run = |ended: Option<Duration>| {
            let log = EventLog { ended: ended.map(|ago| now - ago), ..EventLog::default() };
            Arc::new(BackgroundRun {
                owner: ResponseOwner::owner(),
                mode: ReplyMode::Streamed,
                cancelled: CancellationToken::new(),
                log: Mutex::new(log),
                changed: watch::Sender::new(()),
            })
        };
        let mut runs: HashMap<String, Arc<BackgroundRun>> = (0..MAX_ENDED as u64 + 1)
            .map(|second| (format!("{second}"), run(Some(Duration::from_secs(second)))))
            .collect();
        runs.insert("running".into(), run(None));
        runs.insert("old".into(), run(Some(KEPT_AFTER_END * 2)));
        forget_ended(&mut runs, now);
        assert_eq!(runs.len(), MAX_ENDED + 1);
        assert!(runs.contains_key("running") && runs.contains_key("0") && !runs.contains_key("old"));
        forget_ended(&mut runs, now + KEPT_AFTER_END * 2);
        assert_eq!(runs.keys().collect::<Vec<_>>(), ["running"]);
    }
}
