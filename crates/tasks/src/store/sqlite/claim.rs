//! Claims: a slot is claimed and its task advanced in one transaction.

use std::sync::Arc;

use jiff::Timestamp;
use rusqlite::{OptionalExtension, Transaction, params};
use serde_json::json;

use super::rows;
use crate::claim_plan::{Advance, ClaimPlan, MAX_RUNS, PendingRetry, RunCause, lease_until, plan_claim};
use crate::store::columns::permit_of_key;
use crate::store::{Claimant, Claimed, Renewal};
use crate::task::{Task, TaskRun};
use crate::types::{TaskChange, TaskError, TaskId, TaskStatus};

pub(super) const DUE: &str =
    "SELECT id FROM task WHERE status = 'active' AND due <= ?1 ORDER BY due LIMIT ?2";

/// The same without tasks whose permit has one of the texts of a list.
const DUE_EXCEPT: &str = "SELECT id FROM task WHERE status = 'active' AND due <= ?1
    AND NOT EXISTS (SELECT 1 FROM json_each(?3) WHERE instr(permit, json_each.value) > 0) ORDER BY due LIMIT ?2";

/// Without the tasks of these keys.
pub(super) fn claim_due(
    transaction: &Transaction<'_>,
    keys: &[Option<Arc<str>>],
    now: Timestamp,
    limit: usize,
    claimant: &Claimant,
) -> rusqlite::Result<Vec<Claimed>> {
    let (now_us, limit) = (now.as_microsecond(), i64::try_from(limit).unwrap_or(i64::MAX));
    let ids = if keys.is_empty() {
        transaction
            .prepare_cached(DUE)?
            .query_map(params![now_us, limit], |row| rows::read_id(row, 0))?
            .collect::<rusqlite::Result<Vec<TaskId>>>()?
    } else {
        let permits: Vec<String> = keys.iter().map(|key| permit_of_key(key.as_deref())).collect();
        transaction
            .prepare_cached(DUE_EXCEPT)?
            .query_map(params![now_us, limit, json!(permits).to_string()], |row| rows::read_id(row, 0))?
            .collect::<rusqlite::Result<Vec<TaskId>>>()?
    };
    let mut claimed = Vec::with_capacity(ids.len());
    for id in ids {
        claimed.extend(claim(transaction, &id, now, claimant)?);
    }
    Ok(claimed)
}

pub(super) fn claim_now(
    transaction: &Transaction<'_>,
    id: &TaskId,
    now: Timestamp,
    claimant: &Claimant,
) -> rusqlite::Result<Result<Claimed, TaskError>> {
    let Some(task) = rows::find(transaction, id)? else {
        return Ok(Err(TaskError::NotFound { id: id.to_string() }));
    };
    if task.status == TaskStatus::Cancelled {
        return Ok(Err(TaskError::Refused { change: TaskChange::Run, from: task.status }));
    }
    if is_running(transaction, id)? {
        return Ok(Err(TaskError::Running { id: id.clone() }));
    }
    let slot = free_slot(transaction, id, now)?;
    let new_run = NewRun { slot, attempt: 1, cause: RunCause::Manual };
    let Some(run) = new_run.insert(transaction, id, now, claimant)? else {
        return Ok(Err(TaskError::Running { id: id.clone() }));
    };
    transaction.execute(
        "UPDATE task SET due = NULL, last_run = ?2 WHERE id = ?1",
        params![id.as_str(), now.as_microsecond()],
    )?;
    prune(transaction, id)?;
    Ok(Ok(Claimed { task: Task { last_run: Some(now), ..task }, run }))
}

pub(super) fn renew(
    transaction: &Transaction<'_>,
    run: i64,
    now: Timestamp,
    claimant: &Claimant,
) -> rusqlite::Result<Renewal> {
    let status: Option<String> = transaction
        .prepare_cached(
            "UPDATE task_run SET lease = ?3 WHERE id = ?1 AND owner = ?2 AND finished_at IS NULL
             RETURNING (SELECT status FROM task WHERE task.id = task_run.task_id)",
        )?
        .query_row(params![run, claimant.owner, lease_until(now, claimant.lease).as_microsecond()], |row| {
            row.get(0)
        })
        .optional()?;
    Ok(match status.as_deref() {
        None => Renewal::Lost,
        Some("cancelled") => Renewal::Cancelled,
        Some(_) => Renewal::Held,
    })
}

/// Claims the due slot of one task: a retry, else its next slot.
fn claim(
    transaction: &Transaction<'_>,
    id: &TaskId,
    now: Timestamp,
    claimant: &Claimant,
) -> rusqlite::Result<Option<Claimed>> {
    let task = match rows::find(transaction, id) {
        Ok(Some(task)) => task,
        Ok(None) => return Ok(None),
        // For example an unknown time zone. The other tasks must not wait for it.
        Err(error @ rusqlite::Error::FromSqlConversionFailure(..)) => {
            tracing::warn!(
                task = %id,
                %error,
                "a task cannot be read and is skipped. Create it again with 'hob scheduler create'"
            );
            not_due(transaction, id)?;
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    match plan_claim(&task, pending_retry(transaction, id)?, now, claimant.grace) {
        ClaimPlan::Retry(PendingRetry { slot, attempt }) => {
            let new_run = NewRun { slot, attempt, cause: RunCause::Schedule };
            let run = new_run.insert(transaction, id, now, claimant)?;
            transaction.execute(
                "UPDATE task SET due = NULL, retry_slot = NULL, retry_attempt = NULL, retry_at = NULL, last_run = ?2 WHERE id = ?1",
                params![id.as_str(), now.as_microsecond()],
            )?;
            Ok(run.map(|run| Claimed { task: Task { last_run: Some(now), ..task }, run }))
        }
        ClaimPlan::Run { slot, advance } => {
            let new_run = NewRun { slot, attempt: 1, cause: RunCause::Schedule };
            let Some(run) = new_run.insert(transaction, id, now, claimant)? else {
                // It has already run.
                skip(transaction, id, advance)?;
                return Ok(None);
            };
            advance_task(transaction, id, advance, now)?;
            prune(transaction, id)?;
            Ok(Some(Claimed { task: Task { next_run: advance.next_run, last_run: Some(now), ..task }, run }))
        }
        ClaimPlan::Skip(advance) => {
            skip(transaction, id, advance)?;
            Ok(None)
        }
        ClaimPlan::Nothing => {
            not_due(transaction, id)?;
            Ok(None)
        }
    }
}

/// Advances a task to its next slot. It is due then, after its run has ended.
fn advance_task(
    transaction: &Transaction<'_>,
    id: &TaskId,
    advance: Advance,
    now: Timestamp,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE task SET due = NULL, next_run = ?2, settled = ?3, last_run = ?4 WHERE id = ?1",
        )?
        .execute(params![
            id.as_str(),
            advance.next_run.map(Timestamp::as_microsecond),
            advance.settled.as_microsecond(),
            now.as_microsecond()
        ])?;
    Ok(())
}

/// Advances a task without a run.
fn skip(transaction: &Transaction<'_>, id: &TaskId, advance: Advance) -> rusqlite::Result<()> {
    transaction.execute(
        "UPDATE task SET next_run = ?2, due = ?2, settled = ?3,
             status = CASE WHEN ?2 IS NULL THEN 'completed' ELSE status END
         WHERE id = ?1",
        params![
            id.as_str(),
            advance.next_run.map(Timestamp::as_microsecond),
            advance.settled.as_microsecond()
        ],
    )?;
    Ok(())
}

fn not_due(transaction: &Transaction<'_>, id: &TaskId) -> rusqlite::Result<()> {
    transaction.execute("UPDATE task SET due = NULL WHERE id = ?1", [id.as_str()])?;
    Ok(())
}

fn pending_retry(transaction: &Transaction<'_>, id: &TaskId) -> rusqlite::Result<Option<PendingRetry>> {
    let sql = "SELECT retry_slot, retry_attempt FROM task WHERE id = ?1 AND retry_at IS NOT NULL";
    transaction
        .prepare_cached(sql)?
        .query_row([id.as_str()], |row| {
            Ok(PendingRetry { slot: rows::moment(0, row.get(0)?)?, attempt: row.get(1)? })
        })
        .optional()
}

fn is_running(transaction: &Transaction<'_>, id: &TaskId) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM task_run WHERE task_id = ?1 AND finished_at IS NULL)";
    transaction.query_row(sql, [id.as_str()], |row| row.get(0))
}

/// A slot for a manual run: now, or the first free moment after it.
fn free_slot(transaction: &Transaction<'_>, id: &TaskId, now: Timestamp) -> rusqlite::Result<Timestamp> {
    let sql = "SELECT max(slot) FROM task_run WHERE task_id = ?1 AND slot >= ?2";
    let taken: Option<i64> =
        transaction.query_row(sql, params![id.as_str(), now.as_microsecond()], |row| row.get(0))?;
    taken.map_or(Ok(now), |taken| rows::moment(0, taken.saturating_add(1)))
}

/// A run to start.
struct NewRun {
    slot: Timestamp,
    attempt: u32,
    cause: RunCause,
}

impl NewRun {
    /// `None` if the slot has already run.
    fn insert(
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
            self.cause.as_str(),
            claimant.owner,
            lease_until(now, claimant.lease).as_microsecond(),
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
    delete.execute(params![id.as_str(), MAX_RUNS as i64])?;
    Ok(())
}
