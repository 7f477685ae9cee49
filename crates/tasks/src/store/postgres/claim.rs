//! Claims: slots are claimed and their tasks advanced in one transaction, all together.

use std::collections::HashMap;
use std::sync::Arc;

use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult, Row};
use jiff::Timestamp;

use super::lease::{lease_now as lease_now_sql, microseconds};
use super::rows;
use crate::claim_plan::{Advance, ClaimPlan, MAX_RUNS, PendingRetry, RunCause, plan_claim};
use crate::store::columns::{TASK_COLUMNS, permit_of_key};
use crate::store::{Claimant, Claimed, Renewal};
use crate::task::{Task, TaskRun};
use crate::types::{TaskChange, TaskError, TaskId, TaskStatus};

const START_RETRIES: &str = "
    UPDATE task SET due = NULL, retry_slot = NULL, retry_attempt = NULL, retry_at = NULL, last_run = $2
    WHERE id = ANY($1)";

/// The tasks that run are due after their run has ended.
const ADVANCE: &str = "
    UPDATE task SET due = NULL, next_run = new.next_run, settled = new.settled, last_run = $4
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS new (id, next_run, settled)
    WHERE task.id = new.id";

const SKIP: &str = "
    UPDATE task SET due = new.next_run, next_run = new.next_run, settled = new.settled,
        status = CASE WHEN new.next_run IS NULL THEN 'completed' ELSE status END
    FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS new (id, next_run, settled)
    WHERE task.id = new.id";

const PRUNE: &str = "
    DELETE FROM task_run USING (
        SELECT task_id, (SELECT id FROM task_run WHERE task_run.task_id = pruned.task_id
            ORDER BY id DESC LIMIT 1 OFFSET $2) AS newest
        FROM unnest($1::text[]) AS pruned (task_id)
    ) AS old
    WHERE task_run.task_id = old.task_id AND finished_at IS NOT NULL AND id <= old.newest";

/// The SQL that finds and locks what is due.
pub(super) fn due() -> String {
    format!(
        "SELECT {TASK_COLUMNS}, retry_slot, retry_attempt, retry_at FROM task
         WHERE status = 'active' AND due <= $1 AND due IS NOT NULL ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED"
    )
}

/// The same without tasks whose permit has one of the texts of a list.
fn due_except() -> String {
    format!(
        "SELECT {TASK_COLUMNS}, retry_slot, retry_attempt, retry_at FROM task
         WHERE status = 'active' AND due <= $1 AND due IS NOT NULL
             AND NOT EXISTS (SELECT 1 FROM unnest($3::text[]) AS excepted (text) WHERE strpos(permit, excepted.text) > 0)
         ORDER BY due LIMIT $2 FOR UPDATE SKIP LOCKED"
    )
}

/// What the claims of one transaction do to their tasks.
#[derive(Default)]
struct Plans {
    /// In the order of their times.
    runs: Vec<PlannedRun>,
    skipped: Vec<(TaskId, Advance)>,
    /// No slot is left, or the task cannot be read.
    not_due: Vec<String>,
}

struct PlannedRun {
    task: Task,
    slot: Timestamp,
    attempt: u32,
    /// `None` for a retry, which leaves the schedule as it is.
    advance: Option<Advance>,
}

/// Without the tasks of these keys.
pub(super) fn claim_due(
    transaction: &mut PostgresTransaction<'_>,
    keys: &[Option<Arc<str>>],
    now: Timestamp,
    limit: usize,
    claimant: &Claimant,
    lease_now: Option<i64>,
) -> QueryResult<Vec<Claimed>> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = if keys.is_empty() {
        transaction.query(&due(), &[&now.as_microsecond(), &limit])?
    } else {
        let permits: Vec<String> = keys.iter().map(|key| permit_of_key(key.as_deref())).collect();
        transaction.query(&due_except(), &[&now.as_microsecond(), &limit, &permits])?
    };
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let plans = plan(&rows, now, claimant)?;
    if !plans.not_due.is_empty() {
        transaction.execute("UPDATE task SET due = NULL WHERE id = ANY($1)", &[&plans.not_due])?;
    }
    let mut skipped = plans.skipped;
    let started = insert_runs(transaction, &plans.runs, RunCause::Schedule, now, claimant, lease_now)?;
    let (mut claimed, mut retried, mut advanced) = (Vec::new(), Vec::new(), Vec::new());
    for PlannedRun { mut task, slot, attempt, advance } in plans.runs {
        let run = started.get(task.id.as_str());
        match (run, advance) {
            (_, None) => retried.push(task.id.to_string()),
            (Some(_), Some(advance)) => {
                advanced.push((task.id.clone(), advance));
                task.next_run = advance.next_run;
            }
            // It has already run.
            (None, Some(advance)) => skipped.push((task.id.clone(), advance)),
        }
        if let Some(id) = run {
            task.last_run = Some(now);
            let run = new_run(*id, &task.id, slot, attempt, now);
            claimed.push(Claimed { task, run });
        }
    }
    if !retried.is_empty() {
        transaction.execute(START_RETRIES, &[&retried, &now.as_microsecond()])?;
    }
    if !advanced.is_empty() {
        let (ids, next_runs, settled) = columns(&advanced);
        transaction.execute(ADVANCE, &[&ids, &next_runs, &settled, &now.as_microsecond()])?;
        transaction.execute(PRUNE, &[&ids, &(MAX_RUNS as i64)])?;
    }
    if !skipped.is_empty() {
        let (ids, next_runs, settled) = columns(&skipped);
        transaction.execute(SKIP, &[&ids, &next_runs, &settled])?;
    }
    Ok(claimed)
}

fn plan(rows: &[Row], now: Timestamp, claimant: &Claimant) -> QueryResult<Plans> {
    let mut plans = Plans::default();
    for row in rows {
        let task = match rows::read_task(row) {
            Ok(task) => task,
            // For example an unknown time zone. The other tasks must not wait for it.
            Err(error @ QueryError::Unreadable { .. }) => {
                let id: String = row.try_get(0)?;
                tracing::warn!(
                    task = %id,
                    %error,
                    "a task cannot be read and is skipped. Create it again with 'hob scheduler create'"
                );
                plans.not_due.push(id);
                continue;
            }
            Err(error) => return Err(error),
        };
        match plan_claim(&task, pending_retry(row)?, now, claimant.grace) {
            ClaimPlan::Retry(PendingRetry { slot, attempt }) => {
                plans.runs.push(PlannedRun { task, slot, attempt, advance: None });
            }
            ClaimPlan::Run { slot, advance } => {
                plans.runs.push(PlannedRun { task, slot, attempt: 1, advance: Some(advance) });
            }
            ClaimPlan::Skip(advance) => plans.skipped.push((task.id, advance)),
            ClaimPlan::Nothing => plans.not_due.push(task.id.to_string()),
        }
    }
    Ok(plans)
}

fn pending_retry(row: &Row) -> QueryResult<Option<PendingRetry>> {
    if row.try_get::<_, Option<i64>>("retry_at")?.is_none() {
        return Ok(None);
    }
    let slot = rows::moment("retry_slot", row.try_get("retry_slot")?)?;
    Ok(Some(PendingRetry { slot, attempt: rows::number("retry_attempt", row.try_get("retry_attempt")?)? }))
}

/// The ids of the new runs by task. A slot that has already run gets none.
fn insert_runs(
    transaction: &mut PostgresTransaction<'_>,
    runs: &[PlannedRun],
    cause: RunCause,
    now: Timestamp,
    claimant: &Claimant,
    lease_now: Option<i64>,
) -> QueryResult<HashMap<String, i64>> {
    if runs.is_empty() {
        return Ok(HashMap::new());
    }
    let tasks: Vec<&str> = runs.iter().map(|run| run.task.id.as_str()).collect();
    let slots: Vec<i64> = runs.iter().map(|run| run.slot.as_microsecond()).collect();
    let attempts: Vec<i64> = runs.iter().map(|run| run.attempt.into()).collect();
    let sql = format!(
        "INSERT INTO task_run (task_id, slot, attempt, cause, owner, lease, started_at)
         SELECT task_id, slot, attempt, $4, $5, {} + $6, $7
         FROM unnest($1::text[], $2::bigint[], $3::bigint[]) AS new (task_id, slot, attempt)
         ON CONFLICT (task_id, slot, attempt) DO NOTHING
         RETURNING id, task_id",
        lease_now_sql("$8")
    );
    let (lease, started) = (microseconds(claimant.lease), now.as_microsecond());
    let inserted = transaction.query(
        &sql,
        &[&tasks, &slots, &attempts, &cause.as_str(), &claimant.owner, &lease, &started, &lease_now],
    )?;
    inserted.iter().map(|row| Ok((row.try_get(1)?, row.try_get(0)?))).collect()
}

fn new_run(id: i64, task: &TaskId, slot: Timestamp, attempt: u32, now: Timestamp) -> TaskRun {
    TaskRun {
        id,
        task_id: task.clone(),
        slot,
        attempt,
        started_at: now,
        finished_at: None,
        outcome: None,
        result: None,
        error: None,
    }
}

fn columns(advanced: &[(TaskId, Advance)]) -> (Vec<&str>, Vec<Option<i64>>, Vec<i64>) {
    let ids = advanced.iter().map(|(id, _)| id.as_str()).collect();
    let next_runs =
        advanced.iter().map(|(_, advance)| advance.next_run.map(Timestamp::as_microsecond)).collect();
    let settled = advanced.iter().map(|(_, advance)| advance.settled.as_microsecond()).collect();
    (ids, next_runs, settled)
}

/// Claims a run outside the schedule, or returns the one of `unconfirmed` that the server has made.
pub(super) fn claim_now(
    transaction: &mut PostgresTransaction<'_>,
    id: &TaskId,
    now: Timestamp,
    claimant: &Claimant,
    lease_now: Option<i64>,
    unconfirmed: &[Claimed],
) -> QueryResult<Result<Claimed, TaskError>> {
    let Some((task, _)) = rows::find_to_change(transaction, id)? else {
        return Ok(Err(TaskError::NotFound { id: id.to_string() }));
    };
    // After the task is locked: a transaction that is not confirmed has ended by then.
    let asked: Vec<i64> = unconfirmed.iter().map(|claimed| claimed.run.id).collect();
    let made = renew_made(transaction, &asked, claimant, lease_now)?;
    if let Some(claimed) = unconfirmed.iter().find(|claimed| made.contains(&claimed.run.id)) {
        return Ok(Ok(claimed.clone()));
    }
    if task.status == TaskStatus::Cancelled {
        return Ok(Err(TaskError::Refused { change: TaskChange::Run, from: task.status }));
    }
    if is_running(transaction, id)? {
        return Ok(Err(TaskError::Running { id: id.clone() }));
    }
    let slot = free_slot(transaction, id, now)?;
    let planned = [PlannedRun { task, slot, attempt: 1, advance: None }];
    let started = insert_runs(transaction, &planned, RunCause::Manual, now, claimant, lease_now)?;
    let [PlannedRun { task, .. }] = planned;
    let Some(run) = started.get(id.as_str()) else {
        return Ok(Err(TaskError::Running { id: id.clone() }));
    };
    transaction.execute(
        "UPDATE task SET due = NULL, last_run = $2 WHERE id = $1",
        &[&id.as_str(), &now.as_microsecond()],
    )?;
    transaction.execute(PRUNE, &[&vec![id.as_str()], &(MAX_RUNS as i64)])?;
    let run = new_run(*run, id, slot, 1, now);
    Ok(Ok(Claimed { task: Task { last_run: Some(now), ..task }, run }))
}

pub(super) fn renew(
    transaction: &mut PostgresTransaction<'_>,
    run: i64,
    claimant: &Claimant,
    lease_now: Option<i64>,
) -> QueryResult<Renewal> {
    let sql = format!(
        "UPDATE task_run SET lease = {} + $3 FROM task
         WHERE task_run.id = $1 AND owner = $2 AND finished_at IS NULL AND task.id = task_id
         RETURNING status",
        lease_now_sql("$4")
    );
    let lease = microseconds(claimant.lease);
    let row = transaction.query_opt(&sql, &[&run, &claimant.owner, &lease, &lease_now])?;
    let Some(row) = row else { return Ok(Renewal::Lost) };
    let is_cancelled = row.try_get::<_, &str>(0)? == TaskStatus::Cancelled.as_str();
    Ok(if is_cancelled { Renewal::Cancelled } else { Renewal::Held })
}

/// Renews the leases of those of these runs that were made, and returns them.
pub(super) fn renew_made(
    transaction: &mut PostgresTransaction<'_>,
    runs: &[i64],
    claimant: &Claimant,
    lease_now: Option<i64>,
) -> QueryResult<Vec<i64>> {
    if runs.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "UPDATE task_run SET lease = {} + $3 WHERE id = ANY($1) AND owner = $2 AND finished_at IS NULL RETURNING id",
        lease_now_sql("$4")
    );
    let lease = microseconds(claimant.lease);
    let rows = transaction.query(&sql, &[&runs, &claimant.owner, &lease, &lease_now])?;
    rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
}

fn is_running(transaction: &mut PostgresTransaction<'_>, id: &TaskId) -> QueryResult<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM task_run WHERE task_id = $1 AND finished_at IS NULL)";
    Ok(transaction.query_one(sql, &[&id.as_str()])?.try_get(0)?)
}

/// A slot for a manual run: now, or the first free moment after it.
fn free_slot(
    transaction: &mut PostgresTransaction<'_>,
    id: &TaskId,
    now: Timestamp,
) -> QueryResult<Timestamp> {
    let sql = "SELECT max(slot) FROM task_run WHERE task_id = $1 AND slot >= $2";
    let taken: Option<i64> =
        transaction.query_one(sql, &[&id.as_str(), &now.as_microsecond()])?.try_get(0)?;
    taken.map_or(Ok(now), |taken| rows::moment("slot", taken.saturating_add(1)))
}
