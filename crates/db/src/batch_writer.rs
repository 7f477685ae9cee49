//! Writes entries in batches from its own thread, so that no caller waits for the disk. Knows nothing of what an entry contains.
//!
//! Adding an entry only locks a queue for a moment. When the queue is full the entry is dropped and counted.

use std::error::Error;
use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_sync::atomic::{AtomicU64, Ordering};
use hob_sync::thread::{self, JoinHandle};
use hob_sync::{Condvar, Mutex};
use tracing::{error, info, warn};

use crate::DbResult;

/// How long to wait before a failed batch is written again.
const RETRY: Duration = Duration::from_secs(1);

/// How long [`BatchWriter::close`] waits for the last entries.
const CLOSE_TIMEOUT: Duration = Duration::from_secs(5);

/// How often dropped entries are logged.
const DROPPED_LOG_INTERVAL: Duration = Duration::from_secs(60);

/// The name, the limits and the log messages of a writer.
#[derive(Debug, Clone, Copy)]
pub struct BatchOptions {
    pub thread: &'static str,
    /// Entries that may wait.
    pub capacity: usize,
    /// Entries that are written at once.
    pub batch: usize,
    /// How long the first entry of a batch waits for others.
    pub gather: Duration,
    /// Logged when entries are dropped.
    pub dropped: &'static str,
}

/// Where batches are written. All calls come from the thread of the writer.
pub trait BatchSink<T>: Send + 'static {
    /// Writes a batch. After an error the same batch is written again, until the writer is closed.
    fn write(&mut self, batch: &[T]) -> DbResult<()>;

    /// Does what else has to be done. Called before the thread waits for entries; returns the longest time until the next call.
    fn maintain(&mut self) -> Duration {
        Duration::MAX
    }

    /// Called after the last batch.
    fn finish(&mut self) {}
}

/// Writes entries to a sink. Dropping it writes the entries that wait.
pub struct BatchWriter<T> {
    shared: Arc<Shared<T>>,
    /// `None` once it is closed.
    thread: Mutex<Option<JoinHandle<()>>>,
}

struct Shared<T> {
    options: BatchOptions,
    state: Mutex<State<T>>,
    /// Wakes the thread.
    work: Condvar,
    /// Wakes callers that wait for the thread.
    progress: Condvar,
    dropped: AtomicU64,
}

struct State<T> {
    queue: Vec<T>,
    accepted: u64,
    written: u64,
    /// Accepted entries that could not be written. They also count as dropped.
    abandoned: u64,
    /// Failed attempts to write.
    failures: u64,
    /// When dropped entries were last logged.
    logged: Option<Instant>,
    /// A caller waits: do not gather, and retry at once.
    hurry: bool,
    stopping: bool,
    stopped: bool,
}

impl<T> BatchWriter<T> {
    /// Starts the thread; an error means that the system refused to start one.
    pub fn start(options: BatchOptions, mut sink: impl BatchSink<T>) -> io::Result<Self>
    where
        T: Send + 'static,
    {
        let state = State {
            queue: Vec::new(),
            accepted: 0,
            written: 0,
            abandoned: 0,
            failures: 0,
            logged: None,
            hurry: false,
            stopping: false,
            stopped: false,
        };
        let shared = Arc::new(Shared {
            options,
            state: Mutex::new(state),
            work: Condvar::new(),
            progress: Condvar::new(),
            dropped: AtomicU64::new(0),
        });
        let for_thread = MarkStopped(Arc::clone(&shared));
        let run = move || for_thread.0.write_all(&mut sink);
        let thread = thread::Builder::new().name(options.thread.to_owned()).spawn(run)?;
        Ok(BatchWriter { shared, thread: Mutex::new(Some(thread)) })
    }

    /// Adds an entry, or drops it if the queue is full or the writer is closed. Never blocks on the disk.
    pub fn add(&self, entry: T) {
        let mut state = self.shared.state.lock();
        if state.queue.len() >= self.shared.options.capacity || state.stopping || state.stopped {
            let is_due = is_log_due(&mut state.logged, Instant::now());
            drop(state);
            let dropped = self.shared.dropped.fetch_add(1, Ordering::Relaxed) + 1;
            if is_due {
                warn!(dropped, "{}", self.shared.options.dropped);
            }
            return;
        }
        state.queue.push(entry);
        state.accepted += 1;
        let waiting = state.queue.len();
        drop(state);
        if waiting == 1 || waiting == self.shared.options.batch {
            self.shared.work.notify_one();
        }
    }

    /// The number of entries that were lost.
    pub fn dropped(&self) -> u64 {
        self.shared.dropped.load(Ordering::Relaxed)
    }

    /// Waits until all entries so far are written, and returns whether they are. Stops waiting after a failed attempt or after `timeout`;
    /// the entries continue to wait.
    pub fn flush(&self, timeout: Duration) -> bool {
        let mut state = self.shared.state.lock();
        let (target, failures) = (state.accepted, state.failures);
        if state.written >= target {
            return true;
        }
        state.hurry = true;
        self.shared.work.notify_one();
        let waits =
            |state: &mut State<T>| state.written < target && state.failures == failures && !state.stopped;
        self.shared.progress.wait_while_for(&mut state, waits, timeout);
        state.written >= target
    }

    /// Writes the entries that wait, and accepts no more. Returns the number of accepted entries that could not be written. The
    /// second call does nothing.
    pub fn close(&self) -> u64 {
        let Some(thread) = self.thread.lock().take() else {
            return 0;
        };
        let mut state = self.shared.state.lock();
        state.stopping = true;
        self.shared.work.notify_one();
        self.shared.progress.wait_while_for(&mut state, |state| !state.stopped, CLOSE_TIMEOUT);
        // The process must be able to end. The thread may still write whole batches after this.
        let (stopped, lost) = (state.stopped, state.accepted.saturating_sub(state.written));
        let uncounted = lost.saturating_sub(std::mem::replace(&mut state.abandoned, lost));
        drop(state);
        self.shared.dropped.fetch_add(uncounted, Ordering::Relaxed);
        if stopped {
            // A panic is already logged.
            let _ = thread.join();
        }
        lost
    }
}

impl<T> Drop for BatchWriter<T> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<T> Shared<T> {
    /// The work of the thread.
    fn write_all(&self, sink: &mut impl BatchSink<T>) {
        let mut batch = Vec::new();
        loop {
            let timeout = sink.maintain();
            batch.clear();
            match self.next_batch(&mut batch, timeout) {
                Next::Batch => {}
                Next::Nothing => continue,
                Next::End => return sink.finish(),
            }
            while sink.write(&batch).is_err() {
                if self.pause_after_failure(batch.len()) == AfterFailure::GiveUp {
                    return;
                }
            }
            self.state.lock().written += batch.len() as u64;
            self.progress.notify_all();
        }
    }

    /// Waits for entries: until there are enough, the first has waited long enough, or a caller waits for them. Puts them into the
    /// empty `batch`, whose memory is used again.
    fn next_batch(&self, batch: &mut Vec<T>, timeout: Duration) -> Next {
        let mut state = self.state.lock();
        let is_idle = |state: &mut State<T>| state.queue.is_empty() && !state.stopping;
        self.work.wait_while_for(&mut state, is_idle, timeout);
        if state.queue.is_empty() {
            return if state.stopping { Next::End } else { Next::Nothing };
        }
        let BatchOptions { batch: size, gather, .. } = self.options;
        let gathers = |state: &mut State<T>| state.queue.len() < size && !state.hurry && !state.stopping;
        self.work.wait_while_for(&mut state, gathers, gather);
        // Swapping the vectors is fast, so no caller waits while entries are moved.
        std::mem::swap(&mut state.queue, batch);
        if batch.len() > size {
            state.queue = batch.split_off(size);
        } else {
            state.hurry = false;
        }
        Next::Batch
    }

    /// Waits before the next attempt, unless a caller waits. When the writer is closed there is no other attempt: the failed batch and
    /// all entries in the queue are lost.
    fn pause_after_failure(&self, batch: usize) -> AfterFailure {
        let mut state = self.state.lock();
        state.failures += 1;
        state.hurry = false;
        self.progress.notify_all();
        self.work.wait_while_for(&mut state, |state| !state.hurry && !state.stopping, RETRY);
        if !state.stopping {
            return AfterFailure::TryAgain;
        }
        let lost = (batch + state.queue.len()) as u64;
        state.queue.clear();
        state.abandoned += lost;
        self.dropped.fetch_add(lost, Ordering::Relaxed);
        AfterFailure::GiveUp
    }
}

fn is_log_due(last: &mut Option<Instant>, now: Instant) -> bool {
    let is_due = last.is_none_or(|last| now.duration_since(last) >= DROPPED_LOG_INTERVAL);
    if is_due {
        *last = Some(now);
    }
    is_due
}

enum Next {
    Batch,
    Nothing,
    /// The writer is closed.
    End,
}

#[derive(PartialEq, Eq)]
enum AfterFailure {
    TryAgain,
    GiveUp,
}

/// Marks the thread as stopped, also after a panic.
struct MarkStopped<T>(Arc<Shared<T>>);

impl<T> Drop for MarkStopped<T> {
    fn drop(&mut self) {
        if thread::panicking() {
            let thread = self.0.options.thread;
            error!(
                thread,
                "a writer thread panicked; it records nothing more. Restart Hob, and report this bug with \
                 the panic message on standard error"
            );
        }
        self.0.state.lock().stopped = true;
        self.0.progress.notify_all();
    }
}

/// Logs when an access to the database begins to fail, and when it works again.
#[derive(Debug)]
pub struct FailureLog {
    failed: &'static str,
    recovered: &'static str,
    is_failing: bool,
}

impl FailureLog {
    pub const fn new(failed: &'static str, recovered: &'static str) -> Self {
        FailureLog { failed, recovered, is_failing: false }
    }

    pub fn note(&mut self, result: &DbResult<()>) {
        match (self.change(result.is_ok()), result) {
            (Some(text), Ok(())) => info!("{text}"),
            (Some(text), Err(error)) => warn!(error = error as &dyn Error, "{text}"),
            (None, _) => {}
        }
    }

    fn change(&mut self, is_ok: bool) -> Option<&'static str> {
        let was_failing = std::mem::replace(&mut self.is_failing, !is_ok);
        match (was_failing, is_ok) {
            (false, false) => Some(self.failed),
            (true, true) => Some(self.recovered),
            _ => None,
        }
    }
}

#[cfg(all(test, shuttle))]
#[path = "batch_writer_interleaving_tests.rs"]
mod interleavings;

#[cfg(test)]
#[path = "batch_writer_tests.rs"]
mod tests;
