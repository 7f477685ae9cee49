//! The loop that runs tasks at their time.

use std::sync::Arc;
use std::time::Duration;

use hob_core::{Ask, EventBus};
use jiff::Timestamp;
use tokio::sync::Semaphore;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock_check::ClockCheck;
use crate::runner::Runner;
use crate::service::TaskService;
use crate::store::{Claimant, Claimed, Recalculated};
use crate::task::TaskRun;
use crate::types::{TaskError, TaskId};

/// An interval of zero must not keep a processor busy.
const SHORTEST_POLL: Duration = Duration::from_millis(100);

/// How soon it notices what another process has saved. A look costs a few microseconds.
const LOOK_FOR_CHANGES: Duration = Duration::from_millis(500);

/// How the scheduler goes about it.
#[derive(Debug, Clone, Copy)]
pub struct SchedulerOptions {
    /// How long it sleeps at most. What another process saves is noticed earlier.
    pub poll_interval: Duration,
    pub max_concurrent: usize,
    /// How long after the last renewal of its lease a run counts as interrupted.
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
    pub tasks: TaskService,
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
    abort: CancellationToken,
}

/// What there is to wait for.
struct NextPoll {
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
    /// Runs nothing until [`start`](Self::start).
    pub fn new(parts: SchedulerParts) -> Self {
        let SchedulerParts { tasks, ask, bus, mut options } = parts;
        options.poll_interval = options.poll_interval.max(SHORTEST_POLL);
        let claimant = Claimant {
            owner: format!("{}-{:016x}", std::process::id(), fastrand::u64(..)),
            lease: options.lease,
            grace: options.poll_interval.saturating_mul(2).max(Duration::from_secs(60)),
        };
        let most = options.max_concurrent.clamp(1, Semaphore::MAX_PERMITS);
        let shared = Shared {
            runner: Arc::new(Runner { ask, bus, service: tasks, claimant }),
            options,
            room: Arc::new(Semaphore::new(most)),
        };
        Scheduler {
            shared: Arc::new(shared),
            under_way: TaskTracker::new(),
            stopping: CancellationToken::new(),
            abort: CancellationToken::new(),
        }
    }

    /// The tasks.
    pub fn tasks(&self) -> &TaskService {
        &self.shared.runner.service
    }

    /// Begins to run tasks at their time.
    pub fn start(&self) {
        let (shared, under_way) = (Arc::clone(&self.shared), self.under_way.clone());
        let (stopping, abort) = (self.stopping.clone(), self.abort.clone());
        self.under_way.spawn(async move {
            let mut clock = ClockCheck::new(shared.options.lease);
            loop {
                let NextPoll { time, expected } = shared.poll(&mut clock, &under_way, &abort).await;
                tokio::select! {
                    biased;
                    () = stopping.cancelled() => return,
                    () = shared.runner.service.changed() => {}
                    () = shared.changed_by_others(expected) => {}
                    () = tokio::time::sleep(time) => {}
                }
            }
        });
    }

    /// Begins a run beside the schedule, and does not wait for its end.
    pub async fn run_now(&self, id: &TaskId) -> Result<TaskRun, TaskError> {
        let claimed = self.shared.claim_now(id).await?;
        let run = claimed.run.clone();
        let (shared, abort) = (Arc::clone(&self.shared), self.abort.clone());
        self.under_way.spawn(async move { shared.runner.run(claimed, &abort).await });
        Ok(run)
    }

    /// A run beside the schedule, to its end. One that is dropped counts as interrupted when its lease expires.
    pub async fn run_to_end(&self, id: &TaskId) -> Result<TaskRun, TaskError> {
        let claimed = self.shared.claim_now(id).await?;
        Ok(self.shared.runner.run(claimed, &self.abort).await)
    }

    /// Ends what runs at once, and writes that down.
    pub fn abort(&self) {
        self.stopping.cancel();
        self.abort.cancel();
    }

    /// Begins nothing more, and waits until all that runs has ended, `grace` at most.
    pub async fn drain(&self, grace: Duration) {
        self.stopping.cancel();
        self.under_way.close();
        // What still runs then is aborted when the scheduler closes.
        let _ = tokio::time::timeout(grace, self.under_way.wait()).await;
    }

    /// Stops at once; runs that have not ended are logged as interrupted.
    pub async fn close(&self) {
        self.abort();
        self.under_way.close();
        self.under_way.wait().await;
    }
}

impl Shared {
    /// Begins what is due, as far as there is room. How long there is nothing to do then.
    async fn poll(
        &self,
        clock: &mut ClockCheck,
        under_way: &TaskTracker,
        abort: &CancellationToken,
    ) -> NextPoll {
        let longest = self.options.poll_interval;
        let rest = async {
            let service = &self.runner.service;
            let now = service.now();
            let steady = Instant::now();
            if clock.is_trusted(now, steady) {
                self.expire_leases().await?;
            }
            if clock.is_newly_steady(steady)
                && let Err(error) = self.recalculate(now).await
            {
                clock.is_unsteady(steady);
                tracing::warn!(%error, "tasks could not be recalculated after a change of the clock; Hob tries again");
            }
            let room = self.room.available_permits();
            let claimant = self.runner.claimant.clone();
            let claimed = service.work(move |store| store.claim_due(now, room, &claimant)).await?;
            let begun = claimed.len();
            for claimed in claimed {
                self.begin(claimed, under_way, abort).await;
            }
            if begun >= room {
                // The end of a run notifies.
                return Ok(NextPoll { time: longest, expected: Expected::Nothing });
            }
            let due = service.work(|store| store.next_due()).await?;
            let time =
                due.map(|due| Duration::try_from(due.duration_since(service.now())).unwrap_or_default());
            let time = time.map_or(longest, |time| time.min(longest));
            Ok::<_, TaskError>(NextPoll { time, expected: Expected::At(due) })
        };
        let rest = rest.await.unwrap_or_else(|error| {
            tracing::warn!(error = %with_cause(&error), "the tasks cannot be looked at; trying again later");
            NextPoll { time: longest, expected: Expected::Nothing }
        });
        match clock.until_steady(Instant::now()) {
            Some(left) => NextPoll { time: rest.time.min(left.max(SHORTEST_POLL)), ..rest },
            None => rest,
        }
    }

    /// Waits until another process has made something due earlier than expected. Never ends where there can be no other
    /// process.
    async fn changed_by_others(&self, expected: Expected) {
        let Expected::At(expected) = expected else { return std::future::pending().await };
        let service = &self.runner.service;
        let mut changes = match service.watch().await {
            Ok(Some(changes)) => changes,
            Ok(None) => return std::future::pending().await,
            Err(error) => {
                tracing::debug!(error = %with_cause(&error), "changes by other processes are noticed late");
                return std::future::pending().await;
            }
        };
        loop {
            let looked = service.work(move |store| {
                let due = if changes.has_changed()? { store.next_due()? } else { None };
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
    async fn recalculate(&self, now: Timestamp) -> Result<(), TaskError> {
        let tasks = self.runner.service.work(move |store| store.recalculate_carried_ahead(now)).await?;
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

    async fn begin(&self, claimed: Claimed, under_way: &TaskTracker, abort: &CancellationToken) {
        // There is room, as no more was claimed; runs that are asked for by hand need none.
        let Ok(place) = Arc::clone(&self.room).acquire_owned().await else { return };
        let runner = Arc::clone(&self.runner);
        let abort = abort.clone();
        under_way.spawn(async move {
            runner.run(claimed, &abort).await;
            drop(place);
            // After the place is free, so that the next poll finds it.
            runner.service.notify_changed();
        });
    }

    /// Logs runs as interrupted whose process is gone.
    async fn expire_leases(&self) -> Result<(), TaskError> {
        let (now, lease) = (self.runner.service.now(), self.options.lease);
        for run in self.runner.service.work(move |store| store.expire_leases(now, lease)).await? {
            tracing::warn!(task = %run.task_id, slot = %run.slot, "a run was interrupted: its process is gone");
        }
        Ok(())
    }

    async fn claim_now(&self, id: &TaskId) -> Result<Claimed, TaskError> {
        // An earlier run may have been killed since the last poll.
        self.expire_leases().await?;
        let (id, claimant, now) = (id.clone(), self.runner.claimant.clone(), self.runner.service.now());
        self.runner.service.work(move |store| store.claim_now(&id, now, &claimant)).await?
    }
}

/// The error and what is behind it.
fn with_cause(error: &TaskError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
