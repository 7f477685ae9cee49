//! Tasks in SQLite. Every change is one immediate transaction, so that processes on one file never claim the same slot.

mod change;
mod claim;
mod clock;
mod finish;
mod rows;

use std::sync::Arc;
use std::time::Duration;

use hob_db::{ChangeWatch, DbResult, LazyDatabase, Migrations};
use jiff::Timestamp;

use super::{Claimant, Claimed, Recalculated, Renewal, RunResult, TaskStore};
use crate::task::{Task, TaskRun};
use crate::types::{TaskChange, TaskError, TaskId, TaskStatus};

/// The migrations of the tables of tasks.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "tasks",
    steps: &[
        include_str!("../../../migrations/1_tasks.sql"),
        include_str!("../../../migrations/2_model.sql"),
        include_str!("../../../migrations/3_first_calls.sql"),
    ],
    legacy_versions: &[2],
};

/// The longest list, which fits in memory.
const MAX_LISTED: i64 = 100_000;

const NEXT_DUE: &str = "SELECT min(due) FROM task WHERE status = 'active'";

/// Cheap to clone.
#[derive(Clone)]
pub struct SqliteTaskStore {
    pub(super) database: LazyDatabase,
}

impl SqliteTaskStore {
    pub fn new(database: impl Into<LazyDatabase>) -> Self {
        SqliteTaskStore { database: database.into() }
    }

    fn read<T>(&self, work: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>) -> DbResult<T> {
        self.database.open()?.read(work)
    }

    fn write<T>(&self, work: impl FnOnce(&rusqlite::Transaction<'_>) -> rusqlite::Result<T>) -> DbResult<T> {
        self.database.open()?.write(work)
    }
}

impl TaskStore for SqliteTaskStore {
    fn exists(&self) -> bool {
        self.database.exists()
    }

    fn insert_of_key(&self, task: &Task, key: &str, most: usize) -> DbResult<bool> {
        self.write(|transaction| rows::insert_of_key(transaction, task, key, most))
    }

    fn insert_all(&self, tasks: &[Task]) -> DbResult<()> {
        self.write(|transaction| tasks.iter().try_for_each(|task| rows::insert(transaction, task)))
    }

    fn get(&self, id: &TaskId) -> DbResult<Option<Task>> {
        self.read(|connection| rows::find(connection, id))
    }

    fn list(&self, status: Option<TaskStatus>) -> DbResult<Vec<Task>> {
        self.read(|connection| rows::list(connection, status, MAX_LISTED))
    }

    fn runs(&self, id: &TaskId, limit: usize) -> DbResult<Vec<TaskRun>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.read(|connection| rows::runs(connection, id, limit))
    }

    fn delete(&self, id: &TaskId) -> DbResult<bool> {
        self.write(|transaction| {
            let deleted = transaction.execute("DELETE FROM task WHERE id = ?1", [id.as_str()])?;
            Ok(deleted > 0)
        })
    }

    fn change(&self, id: &TaskId, change: TaskChange, now: Timestamp) -> DbResult<Result<Task, TaskError>> {
        self.write(|transaction| change::change(transaction, id, change, now))
    }

    fn watch(&self) -> DbResult<Option<ChangeWatch>> {
        self.database.open()?.watch()
    }

    fn next_due(&self) -> DbResult<Option<Timestamp>> {
        self.read(|connection| {
            let due: Option<i64> = connection.query_row(NEXT_DUE, [], |row| row.get(0))?;
            due.map(|due| rows::moment(0, due)).transpose()
        })
    }

    fn claim_due_except(
        &self,
        keys: &[Option<Arc<str>>],
        now: Timestamp,
        limit: usize,
        claimant: &Claimant,
    ) -> DbResult<Vec<Claimed>> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        self.write(|transaction| claim::claim_due(transaction, keys, now, limit, claimant))
    }

    fn claim_now(
        &self,
        id: &TaskId,
        now: Timestamp,
        claimant: &Claimant,
    ) -> DbResult<Result<Claimed, TaskError>> {
        self.write(|transaction| claim::claim_now(transaction, id, now, claimant))
    }

    fn renew(&self, run: i64, now: Timestamp, claimant: &Claimant) -> DbResult<Renewal> {
        self.write(|transaction| claim::renew(transaction, run, now, claimant))
    }

    fn finish(&self, run: i64, result: &RunResult, now: Timestamp, claimant: &Claimant) -> DbResult<bool> {
        self.write(|transaction| finish::finish(transaction, run, result, now, claimant))
    }

    fn expire_leases(&self, now: Timestamp, longest_lease: Duration) -> DbResult<Vec<TaskRun>> {
        // Usually there are none, and then no write lock is needed.
        if self.read(|connection| finish::expired(connection, now, longest_lease))?.is_empty() {
            return Ok(Vec::new());
        }
        self.write(|transaction| finish::expire_leases(transaction, now, longest_lease))
    }

    fn recalculate_carried_ahead(&self, now: Timestamp) -> DbResult<Vec<Recalculated>> {
        if self.read(|connection| clock::carried_ahead(connection, now))?.is_empty() {
            return Ok(Vec::new());
        }
        self.write(|transaction| clock::recalculate_carried_ahead(transaction, now))
    }
}

#[cfg(test)]
#[path = "sqlite_tests.rs"]
mod tests;
