//! Who runs what: a slot is claimed, and the task moved on to the next, in one transaction.

use std::time::Duration;

use hob_db::DatabaseError;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{OptionalExtension, Transaction, params};

use super::{Tasks, rows};
use crate::task::{Missed, Task, TaskRun};
use crate::types::{Change, ScheduleError, TaskId, TaskStatus};

/// Runs of one task that are kept.
pub(super) const MOST_RUNS: i64 = 1000;

pub(super) const DUE: &str =
    "SELECT id FROM task WHERE status = 'active' AND due <= ?1 ORDER BY due LIMIT ?2";

/// Somebody who runs tasks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimant {
    /// Unlike that of everybody else, on whatever machine.
    pub owner: String,
    /// How long a claim holds without being renewed.
    pub lease: Duration,
    /// How late a slot may be and still count as kept.
    pub grace: Duration,
}

/// A slot that is the claimant's to run.
#[derive(Debug, Clone, PartialEq)]
pub struct Claimed {
    pub task: Task,
    pub run: TaskRun,
}

/// What became of a lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Renewal {
    Held,
    /// The task was cancelled, so its run should stop.
    Cancelled,
    /// The run was given up for dead, or its task is gone: nothing that comes of it counts.
    Lost,
}

impl Tasks {
    /// Claims at most `limit` of the tasks that are due, the longest waiting first.
    pub fn claim_due(
        &self,
        now: Timestamp,
        limit: usize,
        claimant: &Claimant,
    ) -> Result<Vec<Claimed>, DatabaseError> {
        if limit == 0 {
            return Ok(Vec::new());
        }
        self.database.write(|transaction| {
            let limit = i64::try_from(limit).unwrap_or(i64::MAX);
            let mut due = transaction.prepare_cached(DUE)?;
            let ids = due
                .query_map(params![now.as_microsecond(), limit], |row| rows::read_id(row, 0))?
                .collect::<rusqlite::Result<Vec<TaskId>>>()?;
            let mut claimed = Vec::with_capacity(ids.len());
            for id in ids {
                claimed.extend(claim(transaction, &id, now, claimant)?);
            }
            Ok(claimed)
        })
    }

    /// Claims a run beside the schedule, which stays as it is.
    pub fn claim_now(
        &self,
        id: &TaskId,
        now: Timestamp,
        claimant: &Claimant,
    ) -> Result<Result<Claimed, ScheduleError>, DatabaseError> {
        self.database.write(|transaction| {
            let Some(task) = rows::find(transaction, id)? else {
                return Ok(Err(ScheduleError::NotFound { id: id.to_string() }));
            };
            if task.status == TaskStatus::Cancelled {
                return Ok(Err(ScheduleError::Refused { change: Change::Run, from: task.status }));
            }
            if is_running(transaction, id)? {
                return Ok(Err(ScheduleError::Running { id: id.clone() }));
            }
            let slot = free_slot(transaction, id, now)?;
            let begin = Begin { slot, attempt: 1, cause: "manual" };
            let Some(run) = begin.write(transaction, id, now, claimant)? else {
                return Ok(Err(ScheduleError::Running { id: id.clone() }));
            };
            transaction.execute(
                "UPDATE task SET due = NULL, last_run = ?2 WHERE id = ?1",
                params![id.as_str(), now.as_microsecond()],
            )?;
            Ok(Ok(Claimed { task: Task { last_run: Some(now), ..task }, run }))
        })
    }

    /// Says that the run is alive.
    pub fn renew(&self, run: i64, now: Timestamp, claimant: &Claimant) -> Result<Renewal, DatabaseError> {
        self.database.write(|transaction| {
            let status: Option<String> = transaction
                .prepare_cached(
                    "UPDATE task_run SET lease = ?3 WHERE id = ?1 AND owner = ?2 AND finished_at IS NULL
                     RETURNING (SELECT status FROM task WHERE task.id = task_run.task_id)",
                )?
                .query_row(params![run, claimant.owner, lease(now, claimant)], |row| row.get(0))
                .optional()?;
            Ok(match status.as_deref() {
                None => Renewal::Lost,
                Some("cancelled") => Renewal::Cancelled,
                Some(_) => Renewal::Held,
            })
        })
    }
}

/// Claims what is due of one task: what is to be tried again, else its slot.
fn claim(
    transaction: &Transaction<'_>,
    id: &TaskId,
    now: Timestamp,
    claimant: &Claimant,
) -> rusqlite::Result<Option<Claimed>> {
    let task = match rows::find(transaction, id) {
        Ok(Some(task)) => task,
        Ok(None) => return Ok(None),
        // A time zone that is no more, or a row that somebody else wrote: the others shall not wait behind it.
        Err(error @ rusqlite::Error::FromSqlConversionFailure(..)) => {
            tracing::warn!(task = %id, %error, "a task cannot be read and is left out");
            transaction.execute("UPDATE task SET due = NULL WHERE id = ?1", [id.as_str()])?;
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    if let Some((slot, attempt)) = retry(transaction, id)? {
        let begin = Begin { slot, attempt, cause: "schedule" };
        let run = begin.write(transaction, id, now, claimant)?;
        transaction.execute(
            "UPDATE task SET due = NULL, retry_slot = NULL, retry_attempt = NULL, retry_at = NULL, last_run = ?2 WHERE id = ?1",
            params![id.as_str(), now.as_microsecond()],
        )?;
        return Ok(run.map(|run| Claimed { task: Task { last_run: Some(now), ..task }, run }));
    }
    let Some(slot) = task.next_run else {
        transaction.execute("UPDATE task SET due = NULL WHERE id = ?1", [id.as_str()])?;
        return Ok(None);
    };
    // All slots up to now are settled by what happens here: one run makes up for those that were missed.
    let settled = now.max(slot);
    let next_run = task.timetable.next_run(settled);
    let late = now.duration_since(slot) > signed(claimant.grace);
    if late && task.missed == Missed::Skip {
        skip(transaction, id, settled, next_run)?;
        return Ok(None);
    }
    let begin = Begin { slot, attempt: 1, cause: "schedule" };
    let Some(run) = begin.write(transaction, id, now, claimant)? else {
        // It has run already, whatever the clock says.
        skip(transaction, id, settled, next_run)?;
        return Ok(None);
    };
    transaction
        .prepare_cached(
            "UPDATE task SET due = NULL, next_run = ?2, settled = ?3, last_run = ?4 WHERE id = ?1",
        )?
        .execute(params![
            id.as_str(),
            next_run.map(Timestamp::as_microsecond),
            settled.as_microsecond(),
            now.as_microsecond()
        ])?;
    prune(transaction, id)?;
    Ok(Some(Claimed { task: Task { next_run, last_run: Some(now), ..task }, run }))
}

/// Moves a task on without a run.
fn skip(
    transaction: &Transaction<'_>,
    id: &TaskId,
    settled: Timestamp,
    next_run: Option<Timestamp>,
) -> rusqlite::Result<()> {
    transaction.execute(
        "UPDATE task SET next_run = ?2, due = ?2, settled = ?3,
             status = CASE WHEN ?2 IS NULL THEN 'completed' ELSE status END
         WHERE id = ?1",
        params![id.as_str(), next_run.map(Timestamp::as_microsecond), settled.as_microsecond()],
    )?;
    Ok(())
}

fn retry(transaction: &Transaction<'_>, id: &TaskId) -> rusqlite::Result<Option<(Timestamp, u32)>> {
    let sql = "SELECT retry_slot, retry_attempt FROM task WHERE id = ?1 AND retry_at IS NOT NULL";
    transaction
        .prepare_cached(sql)?
        .query_row([id.as_str()], |row| Ok((rows::moment(0, row.get(0)?)?, row.get(1)?)))
        .optional()
}

fn is_running(transaction: &Transaction<'_>, id: &TaskId) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM task_run WHERE task_id = ?1 AND finished_at IS NULL)";
    transaction.query_row(sql, [id.as_str()], |row| row.get(0))
}

/// A slot for a run that has none: now, or the first moment after it that is not taken.
fn free_slot(transaction: &Transaction<'_>, id: &TaskId, now: Timestamp) -> rusqlite::Result<Timestamp> {
    let sql = "SELECT max(slot) FROM task_run WHERE task_id = ?1 AND slot >= ?2";
    let taken: Option<i64> =
        transaction.query_row(sql, params![id.as_str(), now.as_microsecond()], |row| row.get(0))?;
    taken.map_or(Ok(now), |taken| rows::moment(0, taken.saturating_add(1)))
}

/// A run about to begin.
struct Begin {
    slot: Timestamp,
    attempt: u32,
    cause: &'static str,
}

impl Begin {
    /// `None` when the slot has been run already.
    fn write(
        &self,
        transaction: &Transaction<'_>,
        id: &TaskId,
        now: Timestamp,
        claimant: &Claimant,
    ) -> rusqlite::Result<Option<TaskRun>> {
        let mut insert = transaction.prepare_cached(
            "INSERT INTO task_run (task_id, slot, attempt, cause, owner, lease, started_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7) ON CONFLICT (task_id, slot, attempt) DO NOTHING",
        )?;
        let inserted = insert.execute(params![
            id.as_str(),
            self.slot.as_microsecond(),
            self.attempt,
            self.cause,
            claimant.owner,
            lease(now, claimant),
            now.as_microsecond(),
        ])?;
        Ok((inserted > 0).then(|| TaskRun {
            id: transaction.last_insert_rowid(),
            task_id: id.clone(),
            slot: self.slot,
            attempt: self.attempt,
            started_at: now,
            finished_at: None,
            outcome: None,
            result: None,
            error: None,
        }))
    }
}

fn prune(transaction: &Transaction<'_>, id: &TaskId) -> rusqlite::Result<()> {
    let mut delete = transaction.prepare_cached(
        "DELETE FROM task_run WHERE task_id = ?1 AND finished_at IS NOT NULL AND id <=
             (SELECT id FROM task_run WHERE task_id = ?1 ORDER BY id DESC LIMIT 1 OFFSET ?2)",
    )?;
    delete.execute(params![id.as_str(), MOST_RUNS])?;
    Ok(())
}

/// Until when the claim holds.
fn lease(now: Timestamp, claimant: &Claimant) -> i64 {
    now.as_microsecond().saturating_add(hob_core::time::microseconds(claimant.lease))
}

pub(super) fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}
