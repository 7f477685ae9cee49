//! Takes records without blocking, and writes them from a thread of its own.
//!
//! An answer is on its way to its caller when it is recorded, so nothing here may hold it up or fail it: a record goes into
//! a queue, whose lock is only ever held for a moment, and one that finds the queue full is counted and forgotten. The
//! thread writes what has gathered at least five times a second, so that a process that is killed loses no more than that, and
//! brings it to the disk once a second, so that a power cut takes no more than that. It also deletes what has become too old, and
//! opens a database that could not be opened before.

use std::error::Error;
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant, SystemTime};

use hob_db::DatabaseError;
use tracing::{debug, info, warn};

use crate::entry::shorten;
use crate::inference::{Inference, InferenceLog};
use crate::retention::{Pruning, Retention};
use crate::savings::Prices;
use crate::store::TelemetryStore;

/// Records that may wait.
const CAPACITY: usize = 8192;

/// Records written at once.
const BATCH: usize = 2048;

/// How long the first record of a batch waits for others.
const GATHER: Duration = Duration::from_millis(200);

/// How long records may be with the operating system alone.
const SYNC_EVERY: Duration = Duration::from_secs(1);

/// How long to wait before trying again when the disk refused.
const RETRY: Duration = Duration::from_secs(1);

/// The same when the database cannot even be opened: from the first wait to the longest, doubling.
const REOPEN: Duration = Duration::from_secs(1);
const LONGEST_REOPEN: Duration = Duration::from_secs(60);

/// How long the end of the process may wait for the last records.
const LAST_WORDS: Duration = Duration::from_secs(5);

/// How often the date is looked at while there is nothing to write: a new day makes another one too old.
const LOOK_AT_DATE: Duration = Duration::from_secs(10 * 60);

/// How often to say that records are lost.
const REMIND: Duration = Duration::from_secs(60);

/// Keeps inferences in a database. Dropping it writes what still waits.
pub struct TelemetryWriter {
    shared: Arc<Shared>,
    /// `None` once it was closed.
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared {
    state: Mutex<State>,
    /// There is something to do for the thread.
    work: Condvar,
    /// The thread has done something.
    progress: Condvar,
    dropped: AtomicU64,
}

#[derive(Default)]
struct State {
    queue: Vec<Inference>,
    /// Records taken so far.
    accepted: u64,
    /// Those of them that are written.
    written: u64,
    /// Those of them that never will be, and are counted as dropped.
    given_up: u64,
    /// Attempts to write that failed.
    failures: u64,
    reminder: Reminder,
    /// A caller waits: do not gather, do not pause before trying again.
    hurry: bool,
    stopping: bool,
    stopped: bool,
}

/// How calls are recorded.
#[derive(Debug, Clone)]
pub struct WriterOptions {
    /// What calls to the cloud are charged with.
    pub prices: Arc<Prices>,
    /// Days that records are kept; 0 is for ever.
    pub retention_days: u32,
}

impl TelemetryWriter {
    /// Starts the thread; an error is the system's refusal to do so.
    pub fn start(store: Arc<dyn TelemetryStore>, options: WriterOptions) -> io::Result<Self> {
        Self::spawn(options, |_| Some(store))
    }

    /// The same with a database that could not be opened just now: `open` is tried again until it can be. Until then records
    /// wait, as many as there is room for.
    pub fn start_unopened(
        open: impl FnMut() -> Result<Arc<dyn TelemetryStore>, DatabaseError> + Send + 'static,
        options: WriterOptions,
    ) -> io::Result<Self> {
        Self::spawn(options, |shared| open_in_the_end(shared, open))
    }

    fn spawn(
        options: WriterOptions,
        open: impl FnOnce(&Shared) -> Option<Arc<dyn TelemetryStore>> + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared {
            state: Mutex::default(),
            work: Condvar::new(),
            progress: Condvar::new(),
            dropped: AtomicU64::new(0),
        });
        let its = Arc::clone(&shared);
        let thread = thread::Builder::new().name("telemetry".to_owned()).spawn(move || {
            let ending = MarkStopped(its);
            if let Some(store) = open(&ending.0) {
                write_all(&ending.0, store.as_ref(), &options);
            }
        })?;
        Ok(TelemetryWriter { shared, thread: Mutex::new(Some(thread)) })
    }

    /// How many records were lost: the queue was full, the disk refused to the end, or they came after the end.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Waits until everything recorded so far is written, and says whether it is. Gives up when the disk refuses it, or when
    /// `patience` is over; the records go on waiting.
    pub fn flush(&self, patience: Duration) -> bool {
        let mut state = self.shared.lock();
        let (target, failures) = (state.accepted, state.failures);
        if state.written >= target {
            return true;
        }
        state.hurry = true;
        self.shared.work.notify_one();
        let waiting =
            |state: &mut State| state.written < target && state.failures == failures && !state.stopped;
        let waited = self.shared.progress.wait_timeout_while(state, patience, waiting);
        waited.unwrap_or_else(PoisonError::into_inner).0.written >= target
    }

    /// Writes what still waits, and takes no more. Says how many records could not be written, which is also logged; those that
    /// are counted as [dropped](Self::dropped) earlier are not among them. The second call does nothing.
    pub fn close(&self) -> u64 {
        let Some(thread) = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return 0;
        };
        let mut state = self.shared.lock();
        state.stopping = true;
        self.shared.work.notify_one();
        let waited = self.shared.progress.wait_timeout_while(state, LAST_WORDS, |state| !state.stopped);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        // The process must be able to end. What the thread still manages to write after this is whole batches, as ever.
        let (stopped, unsaved) = (state.stopped, state.accepted.saturating_sub(state.written));
        let uncounted = unsaved.saturating_sub(std::mem::replace(&mut state.given_up, unsaved));
        drop(state);
        self.shared.dropped.fetch_add(uncounted, Ordering::Relaxed);
        if stopped && thread.join().is_err() {
            warn!("the telemetry thread panicked; calls after that were not recorded");
        }
        if unsaved > 0 {
            warn!(unsaved, "the last calls could not be recorded: the database could not be written in time");
        }
        unsaved
    }
}

impl InferenceLog for TelemetryWriter {
    fn record(&self, mut inference: Inference) {
        shorten(&mut inference);
        let mut state = self.shared.lock();
        if state.queue.len() >= CAPACITY || state.stopping {
            let remind = state.reminder.is_due(Instant::now());
            drop(state);
            let dropped = self.shared.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if remind {
                warn!(dropped, "calls cannot be written to the database in time; some are not recorded");
            }
            return;
        }
        state.queue.push(inference);
        state.accepted += 1;
        let waiting = state.queue.len();
        drop(state);
        if waiting == 1 || waiting == BATCH {
            self.shared.work.notify_one();
        }
    }
}

impl Drop for TelemetryWriter {
    fn drop(&mut self) {
        self.close();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for records: until there are enough of them, the first has waited long enough, or a caller waits for them. Puts
    /// them into the empty `batch`, whose room is used again. Waits no longer than `longest` for the first of them.
    fn next_batch(&self, batch: &mut Vec<Inference>, longest: Duration) -> Next {
        let idle = |state: &mut State| state.queue.is_empty() && !state.stopping;
        let waited = self.work.wait_timeout_while(self.lock(), longest, idle);
        let state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.queue.is_empty() {
            return if state.stopping { Next::Over } else { Next::Nothing };
        }
        let gathering = |state: &mut State| state.queue.len() < BATCH && !state.hurry && !state.stopping;
        let waited = self.work.wait_timeout_while(state, GATHER, gathering);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        // The whole queue is exchanged for the empty batch, so that no caller waits while records are moved one by one.
        std::mem::swap(&mut state.queue, batch);
        if batch.len() > BATCH {
            state.queue = batch.split_off(BATCH);
        } else {
            state.hurry = false;
        }
        Next::Batch
    }

    fn note_written(&self, count: usize) {
        self.lock().written += count as u64;
        self.progress.notify_all();
    }

    /// Pauses after a failure, unless a caller waits. At the end there is no second attempt, and all that waits is
    /// given up: the caller's `batch` too.
    fn note_failure(&self, batch: usize, pause: Duration) -> AfterFailure {
        let mut state = self.lock();
        state.failures += 1;
        state.hurry = false;
        self.progress.notify_all();
        let calm = |state: &mut State| !state.hurry && !state.stopping;
        let waited = self.work.wait_timeout_while(state, pause, calm);
        let mut state = waited.unwrap_or_else(PoisonError::into_inner).0;
        if state.stopping {
            let lost = (batch + state.queue.len()) as u64;
            state.queue.clear();
            state.given_up += lost;
            self.dropped.fetch_add(lost, Ordering::Relaxed);
            return AfterFailure::GiveUp;
        }
        AfterFailure::TryAgain
    }
}

/// What there is for the thread to do.
enum Next {
    Batch,
    Nothing,
    /// There will be no more.
    Over,
}

enum AfterFailure {
    TryAgain,
    GiveUp,
}

/// Opens the database when that becomes possible; `None` when everything ends before.
fn open_in_the_end(
    shared: &Shared,
    mut open: impl FnMut() -> Result<Arc<dyn TelemetryStore>, DatabaseError>,
) -> Option<Arc<dyn TelemetryStore>> {
    let mut pause = REOPEN;
    loop {
        match shared.note_failure(0, pause) {
            AfterFailure::TryAgain => {}
            AfterFailure::GiveUp => return None,
        }
        match open() {
            Ok(store) => {
                info!("calls are being recorded again");
                return Some(store);
            }
            Err(error) => debug!(error = &error as &dyn Error, "the database still cannot be opened"),
        }
        pause = (pause * 2).min(LONGEST_REOPEN);
    }
}

/// The thread's work: batch after batch, each until it is written, and what is too old in between, day by day, so that no record
/// waits long for that.
fn write_all(shared: &Shared, store: &dyn TelemetryStore, options: &WriterOptions) {
    let mut retention = Retention::new(options.retention_days);
    let mut disk = Disk::default();
    let mut unsynced = Unsynced::default();
    let mut batch = Vec::new();
    loop {
        let longest = match retention.step(store, SystemTime::now(), Instant::now()) {
            Pruning::Continues => Duration::ZERO,
            Pruning::Rests => LOOK_AT_DATE,
        };
        if unsynced.is_due(Instant::now()) {
            unsynced.sync(store);
        }
        batch.clear();
        match shared.next_batch(&mut batch, longest.min(unsynced.left(Instant::now()))) {
            Next::Batch => {}
            Next::Nothing => continue,
            Next::Over => return unsynced.sync(store),
        }
        loop {
            let result = store.record_batch(&batch, &options.prices);
            match (disk.note(result.is_ok()), &result) {
                (Some(DiskNews::Refuses), Err(error)) => warn!(
                    error = error as &dyn Error,
                    "calls are not being recorded; Hob goes on answering, and keeps trying"
                ),
                (Some(DiskNews::WorksAgain), _) => info!("calls are being recorded again"),
                _ => {}
            }
            if result.is_ok() {
                unsynced.note_written(Instant::now());
                shared.note_written(batch.len());
                break;
            }
            match shared.note_failure(batch.len(), RETRY) {
                AfterFailure::TryAgain => {}
                AfterFailure::GiveUp => return,
            }
        }
    }
}

/// Since when there are records that a power cut would take.
#[derive(Default)]
struct Unsynced {
    since: Option<Instant>,
}

impl Unsynced {
    fn note_written(&mut self, now: Instant) {
        self.since.get_or_insert(now);
    }

    fn is_due(&self, now: Instant) -> bool {
        self.left(now).is_zero()
    }

    fn left(&self, now: Instant) -> Duration {
        self.since.map_or(Duration::MAX, |since| (since + SYNC_EVERY).saturating_duration_since(now))
    }

    fn sync(&mut self, store: &dyn TelemetryStore) {
        if self.since.take().is_some()
            && let Err(error) = store.sync()
        {
            debug!(error = &error as &dyn Error, "records are not on the disk yet; trying again");
            self.note_written(Instant::now());
        }
    }
}

/// Says that the thread has ended, even when it ended in a panic.
struct MarkStopped(Arc<Shared>);

impl Drop for MarkStopped {
    fn drop(&mut self) {
        self.0.lock().stopped = true;
        self.0.progress.notify_all();
    }
}

/// Whether writing works; news only when that changes.
#[derive(Default)]
struct Disk {
    refusing: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum DiskNews {
    Refuses,
    WorksAgain,
}

impl Disk {
    fn note(&mut self, written: bool) -> Option<DiskNews> {
        let was_refusing = std::mem::replace(&mut self.refusing, !written);
        match (was_refusing, written) {
            (false, false) => Some(DiskNews::Refuses),
            (true, true) => Some(DiskNews::WorksAgain),
            _ => None,
        }
    }
}

/// Lets one thing be said once in a while.
#[derive(Default)]
struct Reminder {
    last: Option<Instant>,
}

impl Reminder {
    fn is_due(&mut self, now: Instant) -> bool {
        let due = self.last.is_none_or(|last| now.duration_since(last) >= REMIND);
        if due {
            self.last = Some(now);
        }
        due
    }
}

#[cfg(test)]
#[path = "writer_tests.rs"]
mod tests;
