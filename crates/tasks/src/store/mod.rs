//! Stores and claims tasks, so that every slot runs once, with any number of processes and crashes.
//!
//! Every call blocks. A store gets `now` from its callers, and does not know what a run does.

mod columns;
mod copy;
mod postgres;
mod sqlite;

use std::sync::Arc;
use std::time::Duration;

use hob_db::{ChangeWatch, DbResult, Storage};
use jiff::{SignedDuration, Timestamp};

use crate::task::{RunOutcome, Task, TaskRun};
use crate::types::{TaskChange, TaskError, TaskId, TaskStatus};

pub use copy::COPY_TABLES;
pub use postgres::{POSTGRES_MIGRATIONS, PostgresTaskStore};
pub use sqlite::{MIGRATIONS, SqliteTaskStore};

/// The tasks in a database.
pub fn task_store(storage: impl Into<Storage>) -> Arc<dyn TaskStore> {
    match storage.into() {
        Storage::Sqlite(database) => Arc::new(SqliteTaskStore::new(database)),
        Storage::Postgres(database) => Arc::new(PostgresTaskStore::new(database)),
    }
}

pub trait TaskStore: Send + Sync {
    /// Whether there is anything to read. Creates nothing.
    fn exists(&self) -> bool;

    fn insert(&self, task: &Task) -> DbResult<()> {
        self.insert_all(std::slice::from_ref(task))
    }

    /// Inserts a task of a key. Returns `false`, and inserts nothing, if the key has `most` tasks that have not ended. Of those that
    /// have, only the newest `most` are kept, and those that still run.
    fn insert_of_key(&self, task: &Task, key: &str, most: usize) -> DbResult<bool>;

    /// All or none.
    fn insert_all(&self, tasks: &[Task]) -> DbResult<()>;

    fn get(&self, id: &TaskId) -> DbResult<Option<Task>>;

    /// All tasks, or those in one state: the next to run first, then the newest.
    fn list(&self, status: Option<TaskStatus>) -> DbResult<Vec<Task>>;

    /// The newest runs of a task, newest first.
    fn runs(&self, id: &TaskId, limit: usize) -> DbResult<Vec<TaskRun>>;

    /// Deletes a task and its runs. The process that runs it notices when it renews its lease. Returns `false` if there is no
    /// such task.
    fn delete(&self, id: &TaskId) -> DbResult<bool>;

    /// Pauses, resumes or cancels. A resumed task skips the slots of its pause, except a date, and no slot runs twice even if the
    /// clock was put back.
    fn change(&self, id: &TaskId, change: TaskChange, now: Timestamp) -> DbResult<Result<Task, TaskError>>;

    /// Watches changes of other processes; `None` if there can be none.
    fn watch(&self) -> DbResult<Option<ChangeWatch>>;

    /// When the next task is due.
    fn next_due(&self) -> DbResult<Option<Timestamp>>;

    /// Claims at most `limit` due tasks, the longest waiting first.
    fn claim_due(&self, now: Timestamp, limit: usize, claimant: &Claimant) -> DbResult<Vec<Claimed>> {
        self.claim_due_except(&[], now, limit, claimant)
    }

    /// The same without the tasks of these keys. `None` stands for tasks without a key.
    fn claim_due_except(
        &self,
        keys: &[Option<Arc<str>>],
        now: Timestamp,
        limit: usize,
        claimant: &Claimant,
    ) -> DbResult<Vec<Claimed>>;

    /// Claims a run outside the schedule, which does not change.
    fn claim_now(
        &self,
        id: &TaskId,
        now: Timestamp,
        claimant: &Claimant,
    ) -> DbResult<Result<Claimed, TaskError>>;

    /// Extends the lease of an active run.
    fn renew(&self, run: i64, now: Timestamp, claimant: &Claimant) -> DbResult<Renewal>;

    /// Records how a run ended, and when its task is due next. Returns `false` if the lease was lost; then nothing is written.
    fn finish(&self, run: i64, result: &RunResult, now: Timestamp, claimant: &Claimant) -> DbResult<bool>;

    /// Records runs with an expired lease as interrupted, and returns them. A lease beyond `longest_lease` is from before the
    /// clock was put back.
    fn expire_leases(&self, now: Timestamp, longest_lease: Duration) -> DbResult<Vec<TaskRun>>;

    /// Recalculates active tasks that wait for a time that the clock showed by mistake, and returns them. The caller waits until
    /// the clock is steady: a clock that is briefly behind must not undo what was settled.
    fn recalculate_carried_ahead(&self, now: Timestamp) -> DbResult<Vec<Recalculated>>;
}

/// A process that runs tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// Unique among all processes on all machines.
    pub owner: String,
    /// How long a claim is valid without a renewal.
    pub lease: Duration,
    /// How late a slot may start without counting as missed.
    pub grace: Duration,
}

/// A claimed slot.
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
    /// The lease expired, or the task was deleted: the result of the run does not count.
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

/// Whether a failed run may be retried, if its task has retries left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryPolicy {
    IfLeft,
    Never,
}

/// A task whose next run was recalculated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalculated {
    pub task: TaskId,
    /// About how far the clock was ahead when the task last ran or was created.
    pub ahead: SignedDuration,
    pub next_run: Option<Timestamp>,
}

#[cfg(test)]
mod clock_tests;
#[cfg(test)]
mod processes_tests;
#[cfg(test)]
mod simulation_tests;
#[cfg(test)]
mod tests;
