//! Tasks in PostgreSQL. Due tasks are locked while they are claimed, and locked ones are skipped, so that processes never claim the
//! same slot and do not wait for each other.

mod change;
mod claim;
mod clock;
mod finish;
mod lease;
mod rows;

use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hob_db::postgres::{PostgresDatabase, PostgresMigrations};
use hob_db::{ChangeWatch, DbResult};
use jiff::Timestamp;

use super::{Claimant, Claimed, Recalculated, Renewal, RunResult, TaskStore};
use crate::claim_plan::lease_until;
use crate::task::{Task, TaskRun};
use crate::types::{TaskChange, TaskError, TaskId, TaskStatus};

/// The migrations of the tables of tasks in PostgreSQL.
pub const POSTGRES_MIGRATIONS: PostgresMigrations = PostgresMigrations {
    capability: "tasks",
    steps: &[
        include_str!("../../../migrations/postgres/1_tasks.sql"),
        include_str!("../../../migrations/postgres/2_model.sql"),
        include_str!("../../../migrations/postgres/3_first_calls.sql"),
    ],
    usable_from: 0,
};

/// The longest list, which fits in memory.
const MAX_LISTED: i64 = 100_000;

/// Announced when a task may be due earlier than others know. Claims and ends of runs are not: their process knows what comes next,
/// and the others look now and then in case it has ended.
const TOPIC: &str = "tasks";

const NEXT_DUE: &str = "SELECT min(due) FROM task WHERE status = 'active' AND due IS NOT NULL";

/// Cheap to clone.
#[derive(Clone)]
pub struct PostgresTaskStore {
    database: PostgresDatabase,
    /// Parameter of `lease_now`, made of the time that a caller passes: `None`, except in tests with a simulated time.
    lease_clock: fn(Timestamp) -> Option<i64>,
    /// Claims whose transaction failed: if the connection broke during the commit, the server may have made them. Kept as long as
    /// their leases last.
    unconfirmed: Arc<Mutex<Vec<Claimed>>>,
}

impl PostgresTaskStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresTaskStore { database, lease_clock: |_| None, unconfirmed: Arc::default() }
    }

    /// With leases that end by the times that the callers pass.
    #[cfg(test)]
    pub(super) fn with_simulated_time(database: PostgresDatabase) -> Self {
        PostgresTaskStore {
            lease_clock: |now| Some(now.as_microsecond()),
            ..PostgresTaskStore::new(database)
        }
    }

    /// Claims that may have been made although their commit was not confirmed.
    fn take_unconfirmed(&self, now: Timestamp, claimant: &Claimant) -> Vec<Claimed> {
        let mut claims = mem::take(&mut *self.lock_unconfirmed());
        claims.retain(|claimed| lease_until(claimed.run.started_at, claimant.lease) > now);
        claims
    }

    /// Those of them that are for one task.
    fn take_unconfirmed_of(&self, id: &TaskId, now: Timestamp, claimant: &Claimant) -> Vec<Claimed> {
        let (own, others) =
            self.take_unconfirmed(now, claimant).into_iter().partition(|claimed| claimed.task.id == *id);
        self.lock_unconfirmed().extend::<Vec<_>>(others);
        own
    }

    fn lock_unconfirmed(&self) -> MutexGuard<'_, Vec<Claimed>> {
        self.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaskStore for PostgresTaskStore {
    fn exists(&self) -> bool {
        true
    }

    fn insert_of_key(&self, task: &Task, key: &str, most: usize) -> DbResult<bool> {
        self.database.write(|transaction| {
            let is_inserted = rows::insert_of_key(transaction, task, key, most)?;
            transaction.notify(TOPIC)?;
            Ok(is_inserted)
        })
    }

    fn insert_all(&self, tasks: &[Task]) -> DbResult<()> {
        self.database.write(|transaction| {
            rows::insert_all(transaction, tasks)?;
            transaction.notify(TOPIC)
        })
    }

    fn get(&self, id: &TaskId) -> DbResult<Option<Task>> {
        self.database.read(|transaction| rows::find(transaction, id))
    }

    fn list(&self, status: Option<TaskStatus>) -> DbResult<Vec<Task>> {
        self.database.read(|transaction| rows::list(transaction, status, MAX_LISTED))
    }

    fn runs(&self, id: &TaskId, limit: usize) -> DbResult<Vec<TaskRun>> {
        let limit = i64::try_from(limit).unwrap_or(i64::MAX);
        self.database.read(|transaction| rows::runs(transaction, id, limit))
    }

    fn delete(&self, id: &TaskId) -> DbResult<bool> {
        self.database.write(|transaction| {
            let deleted = transaction.execute("DELETE FROM task WHERE id = $1", &[&id.as_str()])?;
            transaction.notify(TOPIC)?;
            Ok(deleted > 0)
        })
    }

    fn change(&self, id: &TaskId, change: TaskChange, now: Timestamp) -> DbResult<Result<Task, TaskError>> {
        self.database.write(|transaction| {
            let changed = change::change(transaction, id, change, now)?;
            transaction.notify(TOPIC)?;
            Ok(changed)
        })
    }

    fn watch(&self) -> DbResult<Option<ChangeWatch>> {
        self.database.watch(TOPIC).map(Some)
    }

    fn next_due(&self) -> DbResult<Option<Timestamp>> {
        self.database.read(|transaction| {
            let due = transaction.query_one(NEXT_DUE, &[])?.try_get(0)?;
            rows::optional_moment("due", due)
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
        let lease_now = (self.lease_clock)(now);
        let unconfirmed = self.take_unconfirmed(now, claimant);
        let asked: Vec<i64> = unconfirmed.iter().map(|claimed| claimed.run.id).take(limit).collect();
        let (mut made, mut new) = (Vec::new(), Vec::new());
        let written = self.database.write(|transaction| {
            made = claim::renew_made(transaction, &asked, claimant, lease_now)?;
            new = claim::claim_due(transaction, keys, now, limit - made.len(), claimant, lease_now)?;
            Ok(())
        });
        match written {
            Ok(()) => {
                let (mut claimed, rest): (Vec<_>, Vec<_>) =
                    unconfirmed.into_iter().partition(|claimed| made.contains(&claimed.run.id));
                self.lock_unconfirmed().extend(rest);
                claimed.extend(new);
                Ok(claimed)
            }
            Err(error) => {
                self.lock_unconfirmed().extend(unconfirmed.into_iter().chain(new));
                Err(error)
            }
        }
    }

    fn claim_now(
        &self,
        id: &TaskId,
        now: Timestamp,
        claimant: &Claimant,
    ) -> DbResult<Result<Claimed, TaskError>> {
        let lease_now = (self.lease_clock)(now);
        let mut unconfirmed = self.take_unconfirmed_of(id, now, claimant);
        let mut is_retry = false;
        loop {
            let mut new = None;
            let written = self.database.write(|transaction| {
                let claimed = claim::claim_now(transaction, id, now, claimant, lease_now, &unconfirmed)?;
                new = claimed.as_ref().ok().cloned();
                Ok(claimed)
            });
            match written {
                Ok(claimed) => return Ok(claimed),
                // Often only the connection broke. Then a second look says whether the run was made.
                Err(_) if new.is_some() && !is_retry => {
                    unconfirmed.extend(new);
                    is_retry = true;
                }
                Err(error) => {
                    self.lock_unconfirmed().extend(unconfirmed.into_iter().chain(new));
                    return Err(error);
                }
            }
        }
    }

    fn renew(&self, run: i64, now: Timestamp, claimant: &Claimant) -> DbResult<Renewal> {
        let lease_now = (self.lease_clock)(now);
        self.database.write(|transaction| claim::renew(transaction, run, claimant, lease_now))
    }

    fn finish(&self, run: i64, result: &RunResult, now: Timestamp, claimant: &Claimant) -> DbResult<bool> {
        self.database.write(|transaction| finish::finish(transaction, run, result, now, claimant))
    }

    fn expire_leases(&self, now: Timestamp, longest_lease: Duration) -> DbResult<Vec<TaskRun>> {
        // Usually there are none, and then no lock is needed.
        let lease_now = (self.lease_clock)(now);
        if !self.database.read(|transaction| finish::has_expired(transaction, longest_lease, lease_now))? {
            return Ok(Vec::new());
        }
        self.database.write(|transaction| {
            let expired = finish::expire_leases(transaction, now, longest_lease, lease_now)?;
            transaction.notify(TOPIC)?;
            Ok(expired)
        })
    }

    fn recalculate_carried_ahead(&self, now: Timestamp) -> DbResult<Vec<Recalculated>> {
        if !self.database.read(|transaction| clock::is_any_carried_ahead(transaction, now))? {
            return Ok(Vec::new());
        }
        self.database.write(|transaction| {
            let recalculated = clock::recalculate_carried_ahead(transaction, now)?;
            transaction.notify(TOPIC)?;
            Ok(recalculated)
        })
    }
}

#[cfg(test)]
#[path = "postgres_tests.rs"]
mod tests;
