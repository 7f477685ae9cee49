//! How runs end: by themselves, or as interrupted when their lease expires.

use std::time::Duration;

use hob_db::postgres::{PostgresTransaction, QueryResult, SqlText};
use jiff::Timestamp;

use super::lease::{lease_now, microseconds};
use super::rows;
use crate::claim_plan::retry_at;
use crate::store::columns::run_cause;
use crate::store::{Claimant, RetryPolicy, RunResult};
use crate::task::{RunOutcome, TaskRun};

/// The runs whose lease has expired, or is so far ahead that it is from before the clock was put back.
fn expired() -> String {
    let now = lease_now("$2");
    format!("finished_at IS NULL AND (lease < {now} OR lease > {now} + 2 * $1::bigint)")
}

/// Runs that have ended, or belong to another process, are not in the result. Tasks are locked first, as everywhere.
const RECORD: &str = "
    WITH own AS MATERIALIZED (
        SELECT task_run.id AS run, retries FROM task JOIN task_run ON task_id = task.id
        WHERE task_run.id = ANY($1) AND finished_at IS NULL AND ($6::text IS NULL OR owner = $6) FOR UPDATE
    )
    UPDATE task_run SET finished_at = $2, outcome = $3, result = $4, error = $5 FROM own WHERE id = run
    RETURNING id, task_id, slot, attempt, started_at, cause, retries";

/// The task is due at its retry or its next slot; with neither, it is completed. Only tasks that are not done get a retry.
const RELEASE: &str = "
    UPDATE task SET
        retry_slot = ended.retry_slot, retry_attempt = ended.retry_attempt, retry_at = ended.retry_at,
        due = coalesce(ended.retry_at, next_run),
        status = CASE WHEN ended.is_open AND coalesce(ended.retry_at, next_run) IS NULL THEN 'completed' ELSE status END
    FROM (
        SELECT task.id, status IN ('active', 'paused') AS is_open,
            CASE WHEN has_retry THEN new.slot ELSE task.retry_slot END AS retry_slot,
            CASE WHEN has_retry THEN new.attempt ELSE task.retry_attempt END AS retry_attempt,
            CASE WHEN has_retry THEN new.at ELSE task.retry_at END AS retry_at
        FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::bigint[]) AS new (id, slot, attempt, at)
        JOIN task ON task.id = new.id
        CROSS JOIN LATERAL (SELECT new.at IS NOT NULL AND status IN ('active', 'paused') AS has_retry) AS decided
    ) AS ended
    WHERE task.id = ended.id";

pub(super) fn finish(
    transaction: &mut PostgresTransaction<'_>,
    run: i64,
    result: &RunResult,
    now: Timestamp,
    claimant: &Claimant,
) -> QueryResult<bool> {
    Ok(!record(transaction, &[run], Some(&claimant.owner), result, now)?.is_empty())
}

/// Whether any lease has expired.
pub(super) fn has_expired(
    transaction: &mut PostgresTransaction<'_>,
    longest_lease: Duration,
    lease_now: Option<i64>,
) -> QueryResult<bool> {
    let sql = format!("SELECT EXISTS (SELECT 1 FROM task_run WHERE {})", expired());
    Ok(transaction.query_one(&sql, &[&microseconds(longest_lease), &lease_now])?.try_get(0)?)
}

pub(super) fn expire_leases(
    transaction: &mut PostgresTransaction<'_>,
    now: Timestamp,
    longest_lease: Duration,
    lease_now: Option<i64>,
) -> QueryResult<Vec<TaskRun>> {
    let result = RunResult {
        outcome: RunOutcome::Interrupted,
        result: None,
        error: Some("its process has ended".to_owned()),
        retry: RetryPolicy::IfLeft,
    };
    // Another process may record the same ones now, so those are skipped.
    let sql = format!(
        "SELECT task_run.id FROM task JOIN task_run ON task_id = task.id
         WHERE {} LIMIT 1000 FOR UPDATE SKIP LOCKED",
        expired()
    );
    let expired = transaction.query(&sql, &[&microseconds(longest_lease), &lease_now])?;
    let expired: Vec<i64> = expired.iter().map(|row| Ok(row.try_get(0)?)).collect::<QueryResult<_>>()?;
    record(transaction, &expired, None, &result, now)
}

fn record(
    transaction: &mut PostgresTransaction<'_>,
    runs: &[i64],
    owner: Option<&str>,
    result: &RunResult,
    now: Timestamp,
) -> QueryResult<Vec<TaskRun>> {
    let text = result.result.as_deref().map(SqlText);
    let error = result.error.as_deref().map(SqlText);
    let rows = transaction
        .query(RECORD, &[&runs, &now.as_microsecond(), &result.outcome.as_str(), &text, &error, &owner])?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let (mut ended, mut retries) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in &rows {
        let run = TaskRun {
            id: row.try_get(0)?,
            task_id: rows::task_id(row.try_get(1)?)?,
            slot: rows::moment("slot", row.try_get(2)?)?,
            attempt: rows::number("attempt", row.try_get(3)?)?,
            started_at: rows::moment("started_at", row.try_get(4)?)?,
            finished_at: Some(now),
            outcome: Some(result.outcome),
            result: result.result.clone(),
            error: result.error.clone(),
        };
        let allowed = rows::number("retries", row.try_get(6)?)?;
        retries.push(retry_at(result, run_cause(row.try_get(5)?), run.attempt, allowed, now));
        ended.push(run);
    }
    let tasks: Vec<&str> = ended.iter().map(|run| run.task_id.as_str()).collect();
    let slots: Vec<i64> = ended.iter().map(|run| run.slot.as_microsecond()).collect();
    let attempts: Vec<i64> = ended.iter().map(|run| i64::from(run.attempt) + 1).collect();
    let times: Vec<Option<i64>> = retries.iter().map(|at| at.map(Timestamp::as_microsecond)).collect();
    transaction.execute(RELEASE, &[&tasks, &slots, &attempts, &times])?;
    Ok(ended)
}
