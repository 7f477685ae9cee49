//! Scheduled tasks: kept, changed, and claimed so that every slot runs once, whoever is killed and however many ask.
//!
//! Takes `now` from its callers and starts nothing by itself. What a run does is not known here.

mod claim;
mod clock;
mod finish;
mod rows;

use hob_db::{ChangeWatch, Database, DatabaseError, Migrations};
use jiff::Timestamp;
use rusqlite::{Transaction, params};

use crate::schedule::ScheduleSpec;
use crate::task::{Task, TaskRun};
use crate::types::{Change, ScheduleError, TaskId, TaskStatus};

pub use claim::{Claimant, Claimed, Renewal};
pub use clock::Recalculated;
pub use finish::{Retry, RunEnd, back_off};

/// The steps that make its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "tasks",
    steps: &[include_str!("../../../migrations/1_tasks.sql")],
    legacy_versions: &[2],
};

/// More than anybody reads, and enough to hold in memory.
const MOST_LISTED: i64 = 100_000;

/// The tasks in a database. Cheap to clone.
#[derive(Clone)]
pub struct Tasks {
    pub(super) database: Database,
}

impl Tasks {
    pub fn new(database: Database) -> Self {
        Tasks { database }
    }

    /// Keeps a new task.
    pub fn insert(&self, task: &Task) -> Result<(), DatabaseError> {
        self.insert_all(std::slice::from_ref(task))
    }

    /// Keeps several, all or none of them.
    pub fn insert_all(&self, tasks: &[Task]) -> Result<(), DatabaseError> {
        self.database.write(|transaction| tasks.iter().try_for_each(|task| rows::insert(transaction, task)))
    }

    pub fn get(&self, id: &TaskId) -> Result<Option<Task>, DatabaseError> {
        self.database.read(|connection| rows::find(connection, id))
    }

    /// All tasks, or those in one state: first those that run next, then the youngest.
    pub fn list(&self, status: Option<TaskStatus>) -> Result<Vec<Task>, DatabaseError> {
        self.database.read(|connection| rows::list(connection, status, MOST_LISTED))
    }

    /// The newest runs of a task, newest first.
    pub fn runs(&self, id: &TaskId, limit: usize) -> Result<Vec<TaskRun>, DatabaseError> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.database.read(|connection| rows::runs(connection, id, limit))
    }

    /// Removes a task and its runs. Whoever runs it finds out when they renew their lease.
    pub fn delete(&self, id: &TaskId) -> Result<bool, DatabaseError> {
        self.database.write(|transaction| {
            let deleted = transaction.execute("DELETE FROM task WHERE id = ?1", [id.as_str()])?;
            Ok(deleted > 0)
        })
    }

    /// Pauses, resumes or cancels.
    pub fn change(
        &self,
        id: &TaskId,
        change: Change,
        now: Timestamp,
    ) -> Result<Result<Task, ScheduleError>, DatabaseError> {
        self.database.write(|transaction| {
            let Some(task) = rows::find(transaction, id)? else {
                return Ok(Err(ScheduleError::NotFound { id: id.to_string() }));
            };
            let status = match task.status.after(change) {
                Ok(status) => status,
                Err(refused) => return Ok(Err(refused)),
            };
            let next_run = match status {
                TaskStatus::Active => resumed(transaction, &task, now)?,
                TaskStatus::Paused => task.next_run,
                TaskStatus::Completed | TaskStatus::Cancelled => None,
            };
            transaction.execute(
                "UPDATE task SET status = ?2, next_run = ?3 WHERE id = ?1",
                params![id.as_str(), status.as_str(), next_run.map(Timestamp::as_microsecond)],
            )?;
            let is_date = matches!(task.timetable.spec, ScheduleSpec::Once { .. });
            match status {
                // What is left of a date is done when it goes on.
                TaskStatus::Active if is_date => {}
                TaskStatus::Paused => {}
                TaskStatus::Active | TaskStatus::Completed | TaskStatus::Cancelled => {
                    forget_retry(transaction, id)?;
                }
            }
            Ok(Ok(Task { status, next_run, ..task }))
        })
    }

    /// For noticing tasks that other processes make or change; `None` where there can be no others.
    pub fn watch(&self) -> Result<Option<ChangeWatch>, DatabaseError> {
        self.database.watch()
    }

    /// When the next task is due.
    pub fn next_due(&self) -> Result<Option<Timestamp>, DatabaseError> {
        self.database.read(|connection| {
            let due: Option<i64> = connection.query_row(NEXT_DUE, [], |row| row.get(0))?;
            due.map(|due| rows::moment(0, due)).transpose()
        })
    }
}

const NEXT_DUE: &str = "SELECT min(due) FROM task WHERE status = 'active'";

/// The next slot of a task that goes on. Slots of the pause are left out, but a date that is still to be kept is kept, and
/// what was done is not done again even if the clock was put back meanwhile.
fn resumed(
    transaction: &Transaction<'_>,
    task: &Task,
    now: Timestamp,
) -> rusqlite::Result<Option<Timestamp>> {
    if let ScheduleSpec::Once { .. } = task.timetable.spec {
        return Ok(task.next_run);
    }
    let settled = clock::settled(transaction, &task.id)?;
    if clock::is_carried_ahead(settled, now) {
        transaction.execute(
            "UPDATE task SET settled = ?2 WHERE id = ?1",
            params![task.id.as_str(), now.as_microsecond()],
        )?;
    }
    clock::next_slot(transaction, task, settled, now)
}

/// Gives up what was to be tried again, and makes the task due at its next slot unless it runs.
fn forget_retry(transaction: &Transaction<'_>, id: &TaskId) -> rusqlite::Result<()> {
    transaction.execute(
        "UPDATE task SET retry_slot = NULL, retry_attempt = NULL, retry_at = NULL,
             due = CASE WHEN EXISTS (SELECT 1 FROM task_run WHERE task_id = ?1 AND finished_at IS NULL)
                 THEN NULL ELSE next_run END
         WHERE id = ?1",
        [id.as_str()],
    )?;
    Ok(())
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
