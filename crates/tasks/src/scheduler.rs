//! The loop that runs tasks at their time.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Ask, EventBus};
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock_check::ClockWatch;
use crate::runner::Runner;
use crate::service::TaskBook;
use crate::store::{Claimant, Claimed, Recalculated};
use crate::task::TaskRun;
use crate::types::{ScheduleError, TaskId};

/// Whoever sets the interval to nothing does not mean to keep a processor busy.
const SHORTEST_POLL: Duration = Duration::from_millis(100);

/// How soon it notices what another process has put into the book. A look costs a few microseconds.
const LOOK_FOR_CHANGES: Duration = Duration::from_millis(500);

/// How the scheduler goes about it.
#[derive(Debug, Clone, Copy)]
pub struct SchedulerOptions {
    /// How long it sleeps at most. What another process puts into the book is noticed earlier.
    pub poll_interval: Duration,
    pub max_concurrent: usize,
    /// How long after its last sign of life a run is given up for dead.
    pub lease: Duration,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        SchedulerOptions {
            poll_interval: Duration::from_secs(60),
            max_concurrent: 4,
            lease: Duration::from_secs(30),
        }
    }
}

/// What a [`Scheduler`] is made of.
pub struct SchedulerParts {
    pub book: TaskBook,
    /// Answers what tasks ask.
    pub ask: Arc<dyn Ask>,
    /// Hears when runs begin and end.
    pub bus: EventBus,
    pub options: SchedulerOptions,
}

/// Runs tasks. Owns every run it has begun.
pub struct Scheduler {
    shared: Arc<Shared>,
    /// The loop and the runs.
    under_way: TaskTracker,
    /// No more runs are begun.
    stopping: CancellationToken,
    /// Runs that have not ended are ended.
    cut: CancellationToken,
}

/// What there is to wait for.
struct Rest {
    /// How long there is nothing to do.
    time: Duration,
    expected: Expected,
}

/// What is known of the next task.
enum Expected {
    /// When it is due; `None` when there is none.
    At(Option<Timestamp>),
    /// Nothing more can be begun, whatever is due.
    Nothing,
}

struct Shared {
    runner: Arc<Runner>,
    options: SchedulerOptions,
    room: Arc<Semaphore>,
}

impl Scheduler {
    /// One that runs nothing until it is told to.
    pub fn new(parts: SchedulerParts) -> Self {
        let SchedulerParts { book, ask, bus, mut options } = parts;
        options.poll_interval = options.poll_interval.max(SHORTEST_POLL);
        let claimant = Claimant {
            owner: format!("{}-{:016x}", std::process::id(), fastrand::u64(..)),
            lease: options.lease,
            grace: options.poll_interval.saturating_mul(2).max(Duration::from_secs(60)),
        };
        let most = options.max_concurrent.clamp(1, Semaphore::MAX_PERMITS);
        let shared = Shared {
            runner: Arc::new(Runner { ask, bus, book, claimant }),
            options,
            room: Arc::new(Semaphore::new(most)),
        };
        Scheduler {
            shared: Arc::new(shared),
            under_way: TaskTracker::new(),
            stopping: CancellationToken::new(),
            cut: CancellationToken::new(),
        }
    }

    /// The tasks.
    pub fn book(&self) -> &TaskBook {
        &self.shared.runner.book
    }

    /// Begins to run tasks at their time.
    pub fn start(&self) {
        let (shared, under_way) = (Arc::clone(&self.shared), self.under_way.clone());
        let (stopping, cut) = (self.stopping.clone(), self.cut.clone());
        self.under_way.spawn(async move {
            let mut watch = ClockWatch::new(shared.options.lease);
            loop {
                let Rest { time, expected } = shared.poll(&mut watch, &under_way, &cut).await;
                tokio::select! {
                    biased;
                    () = stopping.cancelled() => return,
                    () = shared.runner.book.changed() => {}
                    () = shared.changed_by_others(expected) => {}
                    () = tokio::time::sleep(time) => {}
                }
            }
        });
    }

    /// Begins a run beside the schedule, and does not wait for its end.
    pub async fn run_now(&self, id: &TaskId) -> Result<TaskRun, ScheduleError> {
        let claimed = self.shared.claim_now(id).await?;
        let run = claimed.run.clone();
        let (shared, cut) = (Arc::clone(&self.shared), self.cut.clone());
        self.under_way.spawn(async move { shared.runner.run(claimed, &cut).await });
        Ok(run)
    }

    /// A run beside the schedule, to its end. One that is dropped is given up for dead when its lease runs out.
    pub async fn run_to_end(&self, id: &TaskId) -> Result<TaskRun, ScheduleError> {
        let claimed = self.shared.claim_now(id).await?;
        Ok(self.shared.runner.run(claimed, &self.cut).await)
    }

    /// Ends what runs at once, and writes that down.
    pub fn cut(&self) {
        self.stopping.cancel();
        self.cut.cancel();
    }

    /// Begins nothing more, and waits until all that runs has ended, `grace` at most.
    pub async fn drain(&self, grace: Duration) {
        self.stopping.cancel();
        self.under_way.close();
        // What is still there then is cut off when the scheduler closes.
        let _ = tokio::time::timeout(grace, self.under_way.wait()).await;
    }

    /// Stops at once; runs that have not ended are logged as interrupted.
    pub async fn close(&self) {
        self.cut();
        self.under_way.close();
        self.under_way.wait().await;
    }
}

impl Shared {
    /// Begins what is due, as far as there is room. How long there is nothing to do then.
    async fn poll(&self, watch: &mut ClockWatch, under_way: &TaskTracker, cut: &CancellationToken) -> Rest {
        let longest = self.options.poll_interval;
        let rest = async {
            let book = &self.runner.book;
            let now = book.now();
            let steady = Instant::now();
            if watch.believes(now, steady) {
                self.bury().await?;
            }
            if watch.is_newly_steady(steady)
                && let Err(error) = self.recalculate(now).await
            {
                watch.is_unsteady(steady);
                tracing::warn!(%error, "tasks could not be recalculated after a change of the clock; Hob tries again");
            }
            let room = self.room.available_permits();
            let claimant = self.runner.claimant.clone();
            let claimed = book.work(move |tasks| tasks.claim_due(now, room, &claimant)).await?;
            let begun = claimed.len();
            for claimed in claimed {
                self.begin(claimed, under_way, cut).await;
            }
            if begun >= room {
                // Somebody's end will tell.
                return Ok(Rest { time: longest, expected: Expected::Nothing });
            }
            let due = book.work(|tasks| tasks.next_due()).await?;
            let time = due.map(|due| Duration::try_from(due.duration_since(book.now())).unwrap_or_default());
            let time = time.map_or(longest, |time| time.min(longest));
            Ok::<_, ScheduleError>(Rest { time, expected: Expected::At(due) })
        };
        let rest = rest.await.unwrap_or_else(|error| {
            tracing::warn!(error = %with_cause(&error), "the tasks cannot be looked at; trying again later");
            Rest { time: longest, expected: Expected::Nothing }
        });
        match watch.until_steady(Instant::now()) {
            Some(left) => Rest { time: rest.time.min(left.max(SHORTEST_POLL)), ..rest },
            None => rest,
        }
    }

    /// Waits until another process has made something due earlier than expected. Never ends where there can be no other
    /// process.
    async fn changed_by_others(&self, expected: Expected) {
        let Expected::At(expected) = expected else { return std::future::pending().await };
        let book = &self.runner.book;
        let mut changes = match book.watch().await {
            Ok(Some(changes)) => changes,
            Ok(None) => return std::future::pending().await,
            Err(error) => {
                tracing::debug!(error = %with_cause(&error), "changes by other processes are noticed late");
                return std::future::pending().await;
            }
        };
        loop {
            let looked = book.work(move |tasks| {
                let due = if changes.has_changed()? { tasks.next_due()? } else { None };
                Ok((changes, due))
            });
            match looked.await {
                Ok((_, Some(due))) if expected.is_none_or(|expected| due < expected) => return,
                Ok((same, _)) => changes = same,
                // The next poll tells of it.
                Err(_) => return std::future::pending().await,
            }
            tokio::time::sleep(LOOK_FOR_CHANGES).await;
        }
    }

    /// Puts tasks right that wait for a time which the clock showed by mistake.
    async fn recalculate(&self, now: Timestamp) -> Result<(), ScheduleError> {
        let tasks = self.runner.book.work(move |tasks| tasks.recalculate_carried_ahead(now)).await?;
        for Recalculated { task, ahead, next_run } in tasks {
            let next_run = next_run.map_or_else(|| "never".to_owned(), |at| at.to_string());
            tracing::warn!(
                %task,
                next_run,
                "the clock was ahead by {} h when this task last ran; its next run is recalculated",
                ahead.as_hours()
            );
        }
        Ok(())
    }

    async fn begin(&self, claimed: Claimed, under_way: &TaskTracker, cut: &CancellationToken) {
        // There is room, as no more was claimed; runs that are asked for by hand need none.
        let Ok(place) = Arc::clone(&self.room).acquire_owned().await else { return };
        let runner = Arc::clone(&self.runner);
        let cut = cut.clone();
        under_way.spawn(async move {
            runner.run(claimed, &cut).await;
            drop(place);
            // After the place is free, or nobody would be told that it is.
            runner.book.tell_of_change();
        });
    }

    /// Logs runs as interrupted whose process is gone.
    async fn bury(&self) -> Result<(), ScheduleError> {
        let (now, lease) = (self.runner.book.now(), self.options.lease);
        for run in self.runner.book.work(move |tasks| tasks.interrupt_expired(now, lease)).await? {
            tracing::warn!(task = %run.task_id, slot = %run.slot, "a run was interrupted: its process is gone");
        }
        Ok(())
    }

    async fn claim_now(&self, id: &TaskId) -> Result<Claimed, ScheduleError> {
        // Nobody may have looked since the run before was killed.
        self.bury().await?;
        let (id, claimant, now) = (id.clone(), self.runner.claimant.clone(), self.runner.book.now());
        self.runner.book.work(move |tasks| tasks.claim_now(&id, now, &claimant)).await?
    }
}

/// The error and what is behind it.
fn with_cause(error: &ScheduleError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
