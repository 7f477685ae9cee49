//! The loop that runs tasks at their time.

use std::sync::Arc;
use std::time::Duration;

use hob_core::backoff::BackoffDelays;
use hob_core::defaults::{CONCURRENT_TASKS, TASK_POLL_INTERVAL};
use hob_core::{Ask, Backoff, EventBus, Zone};
use jiff::Timestamp;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::clock_check::ClockCheck;
use crate::fair_slots::{FairClaim, RunningKeys, TaskKey};
use crate::live_runs::LiveRuns;
use crate::manual_runs::{ManualRun, ManualRuns};
use crate::runner::{Runner, TaskRunOptions};
use crate::service::TaskService;
use crate::store::{Claimant, Claimed, Recalculated};
use crate::task::TaskRun;
use crate::types::{TaskError, TaskId};

/// So that an interval of zero does not use a whole processor.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(100);

/// How often it checks for changes of other processes. A check takes microseconds.
const CHANGE_CHECK_INTERVAL: Duration = Duration::from_millis(500);

/// How soon a poll that failed is tried again.
const RETRY: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(5) };

#[derive(Debug, Clone, Copy)]
pub struct SchedulerOptions {
    /// The longest sleep. Changes of other processes are noticed earlier.
    pub poll_interval: Duration,
    pub max_concurrent: usize,
    /// A run whose lease was not renewed for this time counts as interrupted.
    pub lease: Duration,
}

impl Default for SchedulerOptions {
    fn default() -> Self {
        SchedulerOptions {
            poll_interval: TASK_POLL_INTERVAL,
            max_concurrent: CONCURRENT_TASKS,
            lease: Duration::from_secs(30),
        }
    }
}

pub struct SchedulerParts {
    pub tasks: TaskService,
    /// Answers the prompts of tasks.
    pub ask: Arc<dyn Ask>,
    /// Gets events when runs start and end.
    pub bus: EventBus,
    pub options: SchedulerOptions,
}

/// Runs tasks. Owns every run that it starts.
pub struct Scheduler {
    shared: Arc<Shared>,
    /// The loop and the runs.
    active: TaskTracker,
    /// No more runs are started.
    stopping: CancellationToken,
    /// Active runs are stopped.
    abort: CancellationToken,
}

/// How long to wait, and for what.
struct NextPoll {
    time: Duration,
    expected: Expected,
}

/// The next task.
enum Expected {
    /// When it is due, if there is one.
    At(Option<Timestamp>),
    /// No more runs can be started.
    Nothing,
}

struct Shared {
    runner: Arc<Runner>,
    options: SchedulerOptions,
    slots: Arc<Semaphore>,
    /// The keys of the runs that have slots.
    keys: Arc<RunningKeys>,
    /// The runs outside the schedule, which need no slot.
    manual: Arc<ManualRuns>,
}

impl Scheduler {
    /// Runs nothing until [`start`](Self::start).
    pub fn new(parts: SchedulerParts) -> Self {
        let SchedulerParts { tasks, ask, bus, mut options } = parts;
        options.poll_interval = options.poll_interval.max(MIN_POLL_INTERVAL);
        let claimant = Claimant {
            owner: format!("{}-{:016x}", std::process::id(), fastrand::u64(..)),
            lease: options.lease,
            grace: options.poll_interval.saturating_mul(2).max(Duration::from_secs(60)),
        };
        let most = options.max_concurrent.clamp(1, Semaphore::MAX_PERMITS);
        let live = LiveRuns::default();
        let runner = Runner { ask, bus, service: tasks, claimant, live, away_at: Mutex::default() };
        let shared = Shared {
            runner: Arc::new(runner),
            options,
            slots: Arc::new(Semaphore::new(most)),
            keys: Arc::default(),
            manual: Arc::default(),
        };
        Scheduler {
            shared: Arc::new(shared),
            active: TaskTracker::new(),
            stopping: CancellationToken::new(),
            abort: CancellationToken::new(),
        }
    }

    pub fn tasks(&self) -> &TaskService {
        &self.shared.runner.service
    }

    /// Starts to run tasks.
    pub fn start(&self) {
        if !Zone::is_system_known() {
            tracing::warn!(
                "the time zone of this machine has no known name, so Hob uses UTC for calendars, feeds, and \
                 tasks without a time zone. Set the variable TZ to its name, such as TZ=Europe/Berlin"
            );
        }
        let (shared, active) = (Arc::clone(&self.shared), self.active.clone());
        let (stopping, abort) = (self.stopping.clone(), self.abort.clone());
        self.active.spawn(async move {
            let mut clock = ClockCheck::new(shared.options.lease);
            let mut failures = RETRY.delays();
            loop {
                let polled = shared.poll(&mut clock, &active, &abort).await;
                let NextPoll { time, expected } = shared.after_failure(polled, &mut failures);
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

    /// Starts a run outside the schedule, without waiting for its end.
    pub async fn run_now(&self, id: &TaskId) -> Result<TaskRun, TaskError> {
        let (shared, abort, id) = (Arc::clone(&self.shared), self.abort.clone(), id.clone());
        let (claimed_run, is_claimed) = oneshot::channel();
        // A caller that leaves does not drop the claim.
        self.active.spawn(async move {
            let (claimed, _manual) = match shared.claim_now(&id).await {
                Ok(claimed) => claimed,
                Err(error) => return drop(claimed_run.send(Err(error))),
            };
            drop(claimed_run.send(Ok(claimed.run.clone())));
            shared.runner.run(claimed, &abort, &TaskRunOptions::default()).await;
        });
        is_claimed.await.map_err(|error| TaskError::Unavailable(Box::new(error)))?
    }

    /// Runs a task outside the schedule to its end. Dropping the future stops the run, which is recorded as interrupted.
    pub async fn run_to_end(&self, id: &TaskId) -> Result<TaskRun, TaskError> {
        self.run_with(id, TaskRunOptions::default()).await
    }

    /// The same with options.
    pub async fn run_with(&self, id: &TaskId, options: TaskRunOptions) -> Result<TaskRun, TaskError> {
        let stop = options.stop.child_token();
        let _stop_if_dropped = stop.clone().drop_guard();
        let (shared, abort, id) = (Arc::clone(&self.shared), self.abort.clone(), id.clone());
        let options = TaskRunOptions { stop, ..options };
        // A caller that leaves drops neither the claim nor the record of the run.
        let running = self.active.spawn(async move {
            let (claimed, _manual) = shared.claim_now(&id).await?;
            Ok::<_, TaskError>(shared.runner.run(claimed, &abort, &options).await)
        });
        running.await.map_err(|error| TaskError::Unavailable(Box::new(error)))?
    }

    /// Stops all runs at once, and records it.
    pub fn abort(&self) {
        self.stopping.cancel();
        self.abort.cancel();
    }

    /// Starts no more runs, and waits up to `grace` until all have ended.
    pub async fn drain(&self, grace: Duration) {
        self.stopping.cancel();
        self.active.close();
        // Remaining runs are aborted when the scheduler closes.
        let _ = tokio::time::timeout(grace, self.active.wait()).await;
    }

    /// Stops at once. Active runs are recorded as interrupted.
    pub async fn close(&self) {
        self.abort();
        self.active.close();
        self.active.wait().await;
    }
}

impl Shared {
    /// Starts the due tasks, within the limit. Returns how long to wait.
    async fn poll(
        &self,
        clock: &mut ClockCheck,
        active: &TaskTracker,
        abort: &CancellationToken,
    ) -> Result<NextPoll, TaskError> {
        let longest = self.options.poll_interval;
        if !self.runner.service.exists() {
            // Without a database there are no tasks, and none is created here.
            return Ok(NextPoll { time: longest, expected: Expected::At(None) });
        }
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
                clock.mark_unsteady(steady);
                tracing::warn!(
                    %error,
                    "the tasks cannot be recalculated after a change of the clock; Hob tries again"
                );
            }
            let room = self.slots.available_permits();
            let begun = self.begin_due(now, room, active, abort).await?;
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
        let rest = rest.await?;
        let until_trusted = clock.until_steady(Instant::now()).into_iter().chain(self.runner.outage_left());
        Ok(match until_trusted.min() {
            Some(left) => NextPoll { time: rest.time.min(left.max(MIN_POLL_INTERVAL)), ..rest },
            None => rest,
        })
    }

    /// A poll that failed is tried again soon. The log says when polls begin to fail, and when they work again.
    fn after_failure(&self, polled: Result<NextPoll, TaskError>, failures: &mut BackoffDelays) -> NextPoll {
        match polled {
            Ok(next) => {
                if failures.has_failed() {
                    tracing::info!("the tasks can be read again");
                }
                failures.reset();
                next
            }
            Err(error) => {
                if !failures.has_failed() {
                    tracing::warn!(
                        error = %with_cause(&error),
                        "the tasks cannot be read; Hob keeps trying. 'hob doctor' checks the database"
                    );
                }
                self.runner.note_outage();
                let time = failures.next_delay().min(self.options.poll_interval);
                NextPoll { time, expected: Expected::Nothing }
            }
        }
    }

    /// Waits until another process makes a task due earlier than expected. Never returns if there can be no other process.
    async fn changed_by_others(&self, expected: Expected) {
        let Expected::At(expected) = expected else { return std::future::pending().await };
        let service = &self.runner.service;
        if !service.exists() {
            // Watching would create the database.
            while !service.exists() {
                tokio::time::sleep(CHANGE_CHECK_INTERVAL).await;
            }
            return;
        }
        let mut changes = match service.watch().await {
            Ok(Some(changes)) => changes,
            Ok(None) => return std::future::pending().await,
            Err(error) => {
                tracing::debug!(error = %with_cause(&error), "cannot watch the database; changes of other processes are noticed late");
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
                // The next poll reports it.
                Err(_) => return std::future::pending().await,
            }
            tokio::time::sleep(CHANGE_CHECK_INTERVAL).await;
        }
    }

    /// Recalculates tasks that wait for a time that the clock showed by mistake.
    async fn recalculate(&self, now: Timestamp) -> Result<(), TaskError> {
        let tasks = self.runner.service.work(move |store| store.recalculate_carried_ahead(now)).await?;
        for Recalculated { task, ahead, next_run } in tasks {
            let next_run = next_run.map_or_else(|| "never".to_owned(), |at| at.to_string());
            tracing::warn!(
                %task,
                next_run,
                "the clock was {} h ahead when this task last ran; Hob recalculated its next run",
                ahead.as_hours()
            );
        }
        Ok(())
    }

    /// Starts at most `room` due tasks, and returns how many. While tasks of other keys wait, a key gets half of the slots.
    async fn begin_due(
        &self,
        now: Timestamp,
        room: usize,
        active: &TaskTracker,
        abort: &CancellationToken,
    ) -> Result<usize, TaskError> {
        let share = self.options.max_concurrent.div_ceil(2).max(1);
        let mut begun = 0;
        while begun < room {
            let FairClaim { except, limit } = self.keys.fair_claim(share);
            let may_be_more = !except.is_empty();
            let mut claimed = self.claim_due(except, now, limit.min(room - begun)).await?;
            if claimed.is_empty() && may_be_more {
                // No task of another key waits.
                claimed = self.claim_due(Vec::new(), now, room - begun).await?;
            }
            if claimed.is_empty() {
                break;
            }
            begun += claimed.len();
            for claimed in claimed {
                self.begin(claimed, active, abort).await;
            }
        }
        Ok(begun)
    }

    async fn claim_due(
        &self,
        except: Vec<TaskKey>,
        now: Timestamp,
        limit: usize,
    ) -> Result<Vec<Claimed>, TaskError> {
        let claimant = self.runner.claimant.clone();
        self.runner.service.work(move |store| store.claim_due_except(&except, now, limit, &claimant)).await
    }

    async fn begin(&self, claimed: Claimed, active: &TaskTracker, abort: &CancellationToken) {
        // There is a free slot, because no more tasks were claimed. Manual runs need none.
        let Ok(slot) = Arc::clone(&self.slots).acquire_owned().await else { return };
        let runner = Arc::clone(&self.runner);
        let abort = abort.clone();
        let key = self.keys.begin(claimed.task.permit.key.clone());
        active.spawn(async move {
            runner.run(claimed, &abort, &TaskRunOptions::default()).await;
            drop(key);
            drop(slot);
            // After the slot is free, so that the next poll finds it.
            runner.service.notify_changed();
        });
    }

    /// Records runs as interrupted whose process has ended. After an outage of the database, other processes first have time to
    /// renew the leases of their runs. Runs of this process are known to be active.
    async fn expire_leases(&self) -> Result<(), TaskError> {
        if self.runner.outage_left().is_some() {
            return Ok(());
        }
        let (now, lease, claimant) =
            (self.runner.service.now(), self.options.lease, self.runner.claimant.clone());
        let own = self.runner.live.not_renewed_for(lease / 2);
        let ended = self.runner.service.work(move |store| {
            for run in own {
                store.renew(run, now, &claimant)?;
            }
            store.expire_leases(now, lease)
        });
        for run in ended.await? {
            tracing::warn!(
                task = %run.task_id,
                slot = %run.slot,
                "a run was interrupted: its process has ended. 'hob scheduler run' runs the task again"
            );
        }
        Ok(())
    }

    async fn claim_now(&self, id: &TaskId) -> Result<(Claimed, ManualRun), TaskError> {
        let key = self.runner.service.get(id).await?.permit.key;
        let manual = self.manual.begin(key.as_ref())?;
        // The process of an earlier run may have ended since the last poll.
        self.expire_leases().await?;
        let (id, claimant, now) = (id.clone(), self.runner.claimant.clone(), self.runner.service.now());
        let service = &self.runner.service;
        let claimed = service.work(move |store| store.claim_now(&id, now, &claimant)).await;
        if claimed.is_err() {
            // The run may be claimed all the same. The next poll looks for it.
            service.notify_changed();
        }
        Ok((claimed??, manual))
    }
}

/// The error with its cause.
fn with_cause(error: &TaskError) -> String {
    match std::error::Error::source(error) {
        Some(cause) => format!("{error}: {cause}"),
        None => error.to_string(),
    }
}

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
