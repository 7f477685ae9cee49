//! How runs end: by themselves, or as interrupted when their lease expires.

use std::time::Duration;

use jiff::Timestamp;
use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::rows;
use crate::claim_plan::{RunCause, latest_lease, retry_at};
use crate::store::{Claimant, RetryPolicy, RunResult};
use crate::task::{RunOutcome, TaskRun};
use crate::types::TaskId;

pub(super) const EXPIRED: &str =
    "SELECT id FROM task_run WHERE finished_at IS NULL AND (lease < ?1 OR lease > ?2) LIMIT 1000";

pub(super) fn finish(
    transaction: &Transaction<'_>,
    run: i64,
    result: &RunResult,
    now: Timestamp,
    claimant: &Claimant,
) -> rusqlite::Result<bool> {
    let owner: Option<String> = transaction
        .query_row("SELECT owner FROM task_run WHERE id = ?1 AND finished_at IS NULL", [run], |row| {
            row.get(0)
        })
        .optional()?;
    if owner.as_deref() != Some(claimant.owner.as_str()) {
        return Ok(false);
    }
    record(transaction, run, result, now)?;
    Ok(true)
}

/// The runs whose lease has expired.
pub(super) fn expired(
    connection: &Connection,
    now: Timestamp,
    longest_lease: Duration,
) -> rusqlite::Result<Vec<i64>> {
    let mut statement = connection.prepare_cached(EXPIRED)?;
    let limits = [now.as_microsecond(), latest_lease(now, longest_lease).as_microsecond()];
    let ids = statement.query_map(limits, |row| row.get(0))?;
    ids.collect()
}

pub(super) fn expire_leases(
    transaction: &Transaction<'_>,
    now: Timestamp,
    longest_lease: Duration,
) -> rusqlite::Result<Vec<TaskRun>> {
    let result = RunResult {
        outcome: RunOutcome::Interrupted,
        result: None,
        error: Some("its process has ended".to_owned()),
        retry: RetryPolicy::IfLeft,
    };
    let expired = expired(transaction, now, longest_lease)?;
    expired.into_iter().map(|run| record(transaction, run, &result, now)).collect()
}

fn record(
    transaction: &Transaction<'_>,
    run: i64,
    result: &RunResult,
    now: Timestamp,
) -> rusqlite::Result<TaskRun> {
    transaction
        .prepare_cached(
            "UPDATE task_run SET finished_at = ?2, outcome = ?3, result = ?4, error = ?5 WHERE id = ?1",
        )?
        .execute(params![run, now.as_microsecond(), result.outcome.as_str(), result.result, result.error])?;
    let (run, cause, retries): (TaskRun, RunCause, u32) = transaction
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
                outcome: Some(result.outcome),
                result: result.result.clone(),
                error: result.error.clone(),
            };
            Ok((run, rows::read_cause(row, 5)?, row.get(6)?))
        })?;
    if let Some(at) = retry_at(result, cause, run.attempt, retries, now) {
        schedule_retry(transaction, &run, at)?;
    }
    release(transaction, &run.task_id)?;
    Ok(run)
}

fn schedule_retry(transaction: &Transaction<'_>, run: &TaskRun, at: Timestamp) -> rusqlite::Result<()> {
    transaction.execute(
        "UPDATE task SET retry_slot = ?2, retry_attempt = ?3, retry_at = ?4
         WHERE id = ?1 AND status IN ('active', 'paused')",
        params![run.task_id.as_str(), run.slot.as_microsecond(), run.attempt + 1, at.as_microsecond()],
    )?;
    Ok(())
}

/// The task is due at its retry or its next slot; with neither, it is completed.
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
