//! How runs end: by themselves, or given up for dead when their lease runs out.

use std::time::Duration;

use hob_core::Backoff;
use hob_db::DatabaseError;
use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};

use super::claim::Claimant;
use super::{Tasks, rows};
use crate::task::{RunOutcome, TaskRun};
use crate::types::TaskId;

/// The waits before retries.
pub(super) const RETRY_BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(30), longest: Duration::from_secs(3600) };

pub(super) const EXPIRED: &str =
    "SELECT id FROM task_run WHERE finished_at IS NULL AND (lease < ?1 OR lease > ?2) LIMIT 1000";

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunEnd {
    pub outcome: RunOutcome,
    pub result: Option<String>,
    pub error: Option<String>,
    pub retry: Retry,
}

/// Whether a run that did not succeed may be tried again, if its task has tries left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    IfLeft,
    Never,
}

/// How long to wait after so many tries.
pub fn back_off(attempt: u32) -> Duration {
    RETRY_BACKOFF.delay(attempt)
}

impl Tasks {
    /// Writes down how a run ended, and makes its task ready for what comes next. `false` when the run was given up for
    /// dead meanwhile; then nothing is written.
    pub fn finish(
        &self,
        run: i64,
        end: &RunEnd,
        now: Timestamp,
        claimant: &Claimant,
    ) -> Result<bool, DatabaseError> {
        self.database.write(|transaction| {
            let owner: Option<String> = transaction
                .query_row("SELECT owner FROM task_run WHERE id = ?1 AND finished_at IS NULL", [run], |row| {
                    row.get(0)
                })
                .optional()?;
            if owner.as_deref() != Some(claimant.owner.as_str()) {
                return Ok(false);
            }
            write_end(transaction, run, end, now)?;
            Ok(true)
        })
    }

    /// Writes down as interrupted whatever is not alive any more; these runs. Nobody sets a lease further ahead than
    /// `longest_lease`, so one that is comes from before the clock was put back.
    pub fn interrupt_expired(
        &self,
        now: Timestamp,
        longest_lease: Duration,
    ) -> Result<Vec<TaskRun>, DatabaseError> {
        let furthest = now
            .as_microsecond()
            .saturating_add(hob_core::time::microseconds(longest_lease.saturating_mul(2)));
        let expired = |connection: &rusqlite::Connection| {
            let mut statement = connection.prepare_cached(EXPIRED)?;
            let ids = statement.query_map([now.as_microsecond(), furthest], |row| row.get(0))?;
            ids.collect::<rusqlite::Result<Vec<i64>>>()
        };
        // Mostly there are none, and then nobody needs to be waited for.
        if self.database.read(expired)?.is_empty() {
            return Ok(Vec::new());
        }
        let end = RunEnd {
            outcome: RunOutcome::Interrupted,
            result: None,
            error: Some("the process that ran it is gone".to_owned()),
            retry: Retry::IfLeft,
        };
        self.database.write(|transaction| {
            expired(transaction)?.into_iter().map(|run| write_end(transaction, run, &end, now)).collect()
        })
    }
}

fn write_end(
    transaction: &Transaction<'_>,
    run: i64,
    end: &RunEnd,
    now: Timestamp,
) -> rusqlite::Result<TaskRun> {
    transaction
        .prepare_cached(
            "UPDATE task_run SET finished_at = ?2, outcome = ?3, result = ?4, error = ?5 WHERE id = ?1",
        )?
        .execute(params![run, now.as_microsecond(), end.outcome.as_str(), end.result, end.error])?;
    let (run, cause, retries): (TaskRun, String, u32) = transaction
        .prepare_cached(
            "SELECT task_run.id, task_id, slot, attempt, started_at, cause, retries
             FROM task_run JOIN task ON task.id = task_id WHERE task_run.id = ?1",
        )?
        .query_row([run], |row| {
            let run = TaskRun {
                id: row.get(0)?,
                task_id: rows::read_id(row, 1)?,
                slot: rows::moment(2, row.get(2)?)?,
                attempt: row.get(3)?,
                started_at: rows::moment(4, row.get(4)?)?,
                finished_at: Some(now),
                outcome: Some(end.outcome),
                result: end.result.clone(),
                error: end.error.clone(),
            };
            Ok((run, row.get(5)?, row.get(6)?))
        })?;
    let failed = matches!(end.outcome, RunOutcome::Failed | RunOutcome::Interrupted);
    let again = failed && end.retry == Retry::IfLeft && cause == "schedule" && run.attempt <= retries;
    if again {
        put_off(transaction, &run, now)?;
    }
    release(transaction, &run.task_id)?;
    Ok(run)
}

/// Notes that the slot is to be tried again.
fn put_off(transaction: &Transaction<'_>, run: &TaskRun, now: Timestamp) -> rusqlite::Result<()> {
    let wait = hob_core::time::microseconds(back_off(run.attempt));
    transaction.execute(
        "UPDATE task SET retry_slot = ?2, retry_attempt = ?3, retry_at = ?4
         WHERE id = ?1 AND status IN ('active', 'paused')",
        params![
            run.task_id.as_str(),
            run.slot.as_microsecond(),
            run.attempt + 1,
            now.as_microsecond().saturating_add(wait)
        ],
    )?;
    Ok(())
}

/// The task is due again when its retry or its next slot is; with neither, it is done.
fn release(transaction: &Transaction<'_>, id: &TaskId) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE task SET due = coalesce(retry_at, next_run),
                 status = CASE WHEN coalesce(retry_at, next_run) IS NULL AND status IN ('active', 'paused')
                     THEN 'completed' ELSE status END
             WHERE id = ?1",
        )?
        .execute([id.as_str()])?;
    Ok(())
}
