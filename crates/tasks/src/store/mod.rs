//! Where tasks are saved, changed and claimed, so that every slot runs once: whichever process is killed, and however many ask.
//!
//! Every call blocks. A store takes `now` from its callers, starts nothing by itself, and does not know what a run does.

mod sqlite;

use std::time::Duration;

use hob_db::{ChangeWatch, DatabaseError};
use jiff::{SignedDuration, Timestamp};

use crate::task::{RunOutcome, Task, TaskRun};
use crate::types::{TaskChange, TaskError, TaskId, TaskStatus};

pub use sqlite::{MIGRATIONS, SqliteTaskStore};

/// Saves tasks and their runs.
pub trait TaskStore: Send + Sync {
    /// Whether there is anything to read. Creates nothing.
    fn exists(&self) -> bool;

    /// Saves a new task.
    fn insert(&self, task: &Task) -> Result<(), DatabaseError> {
        self.insert_all(std::slice::from_ref(task))
    }

    /// Saves several tasks, all or none of them.
    fn insert_all(&self, tasks: &[Task]) -> Result<(), DatabaseError>;

    fn get(&self, id: &TaskId) -> Result<Option<Task>, DatabaseError>;

    /// All tasks, or those in one state: first those that run next, then the youngest.
    fn list(&self, status: Option<TaskStatus>) -> Result<Vec<Task>, DatabaseError>;

    /// The newest runs of a task, newest first.
    fn runs(&self, id: &TaskId, limit: usize) -> Result<Vec<TaskRun>, DatabaseError>;

    /// Removes a task and its runs. The process that runs it notices when it renews its lease. `false` when there is no such task.
    fn delete(&self, id: &TaskId) -> Result<bool, DatabaseError>;

    /// Pauses, resumes or cancels. A resumed task skips the slots of its pause, but a date is not lost, and no slot runs again
    /// even if the clock was put back meanwhile.
    fn change(
        &self,
        id: &TaskId,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<Result<Task, TaskError>, DatabaseError>;

    /// Notices tasks that other processes make or change; `None` where there can be no others.
    fn watch(&self) -> Result<Option<ChangeWatch>, DatabaseError>;

    /// When the next task is due.
    fn next_due(&self) -> Result<Option<Timestamp>, DatabaseError>;

    /// Claims at most `limit` of the tasks that are due, the longest waiting first.
    fn claim_due(
        &self,
        now: Timestamp,
        limit: usize,
        claimant: &Claimant,
    ) -> Result<Vec<Claimed>, DatabaseError>;

    /// Claims a run beside the schedule, which stays as it is.
    fn claim_now(
        &self,
        id: &TaskId,
        now: Timestamp,
        claimant: &Claimant,
    ) -> Result<Result<Claimed, TaskError>, DatabaseError>;

    /// Extends the lease of a run that is alive.
    fn renew(&self, run: i64, now: Timestamp, claimant: &Claimant) -> Result<Renewal, DatabaseError>;

    /// Records how a run ended, and when its task is due next. `false` when the lease was lost meanwhile; then nothing is
    /// written.
    fn finish(
        &self,
        run: i64,
        result: &RunResult,
        now: Timestamp,
        claimant: &Claimant,
    ) -> Result<bool, DatabaseError>;

    /// Records runs whose lease has expired as interrupted, and returns them. No process sets a lease further ahead than
    /// `longest_lease`, so one that is comes from before the clock was put back.
    fn expire_leases(&self, now: Timestamp, longest_lease: Duration) -> Result<Vec<TaskRun>, DatabaseError>;

    /// Recalculates the next run of active tasks that wait for a time the clock showed by mistake, and returns these tasks. The
    /// caller waits until the clock has been steady for a while: one that is behind for a moment must not undo what was settled.
    fn recalculate_carried_ahead(&self, now: Timestamp) -> Result<Vec<Recalculated>, DatabaseError>;
}

/// A process that runs tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// Unlike that of every other process, on any machine.
    pub owner: String,
    /// How long a claim holds without being renewed.
    pub lease: Duration,
    /// How late a slot may be and still count as kept.
    pub grace: Duration,
}

/// A slot that the claimant runs.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub task: Task,
    pub run: TaskRun,
}

/// The state of a lease after its renewal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    Held,
    /// The task was cancelled, so its run should stop.
    Cancelled,
    /// The lease expired, or the task is gone: the result of the run does not count.
    Lost,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunResult {
    pub outcome: RunOutcome,
    pub result: Option<String>,
    pub error: Option<String>,
    pub retry: RetryPolicy,
}

/// Whether a run that did not succeed may be tried again, if its task has tries left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPolicy {
    IfLeft,
    Never,
}

/// A task whose next run was recalculated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalculated {
    pub task: TaskId,
    /// How far the clock was ahead when the task last ran or was made, about.
    pub ahead: SignedDuration,
    pub next_run: Option<Timestamp>,
}

#[cfg(test)]
mod processes_tests;
#[cfg(test)]
mod simulation_tests;
#[cfg(test)]
mod tests;
