//! Tasks whose schedule a wrong clock has moved ahead. The same as in SQLite.

use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult};
use jiff::Timestamp;

use super::rows;
use crate::claim_plan::{self, correct_creation, latest_retry, latest_settled};
use crate::store::Recalculated;
use crate::task::Task;
use crate::types::TaskId;

/// The active tasks that wait for a time that the clock showed by mistake.
const CARRIED_AHEAD: &str = "FROM task WHERE status = 'active' AND (settled > $1 OR retry_at > $2)";

pub(super) fn is_any_carried_ahead(
    transaction: &mut PostgresTransaction<'_>,
    now: Timestamp,
) -> QueryResult<bool> {
    let sql = format!("SELECT EXISTS (SELECT 1 {CARRIED_AHEAD})");
    let [settled, retry] = [latest_settled(now), latest_retry(now)].map(Timestamp::as_microsecond);
    Ok(transaction.query_one(&sql, &[&settled, &retry])?.try_get(0)?)
}

pub(super) fn recalculate_carried_ahead(
    transaction: &mut PostgresTransaction<'_>,
    now: Timestamp,
) -> QueryResult<Vec<Recalculated>> {
    // A task that another process changes now is looked at again by the next call.
    let sql = format!("SELECT id {CARRIED_AHEAD} FOR UPDATE SKIP LOCKED");
    let [settled, retry] = [latest_settled(now), latest_retry(now)].map(Timestamp::as_microsecond);
    let mut recalculated = Vec::new();
    for row in transaction.query(&sql, &[&settled, &retry])? {
        recalculated.extend(recalculate(transaction, &rows::task_id(row.try_get(0)?)?, now)?);
    }
    Ok(recalculated)
}

fn recalculate(
    transaction: &mut PostgresTransaction<'_>,
    id: &TaskId,
    now: Timestamp,
) -> QueryResult<Option<Recalculated>> {
    let (mut task, settled) = match rows::find_to_change(transaction, id) {
        Ok(Some(found)) => found,
        // A claim logs unreadable tasks.
        Ok(None) | Err(QueryError::Unreadable { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    correct_creation(&mut task, now);
    let next_run = next_slot(transaction, &task, settled, now)?;
    transaction.execute(
        "UPDATE task SET next_run = $2, settled = least(settled, $3), created_at = $4,
             retry_at = CASE WHEN retry_at > $5 THEN $3 ELSE retry_at END
         WHERE id = $1",
        &[
            &id.as_str(),
            &next_run.map(Timestamp::as_microsecond),
            &now.as_microsecond(),
            &task.created_at.as_microsecond(),
            &latest_retry(now).as_microsecond(),
        ],
    )?;
    // A running task becomes due when its run ends.
    transaction.execute(
        "UPDATE task SET due = coalesce(retry_at, next_run) WHERE id = $1
             AND NOT EXISTS (SELECT 1 FROM task_run WHERE task_id = $1 AND finished_at IS NULL)",
        &[&id.as_str()],
    )?;
    Ok(Some(Recalculated { task: id.clone(), ahead: settled.duration_since(now), next_run }))
}

/// The next slot of a task that has no run yet.
pub(super) fn next_slot(
    transaction: &mut PostgresTransaction<'_>,
    task: &Task,
    settled: Timestamp,
    now: Timestamp,
) -> QueryResult<Option<Timestamp>> {
    claim_plan::next_slot(task, settled, now, |slot| {
        let row = transaction.query_one(
            "SELECT EXISTS (SELECT 1 FROM task_run WHERE task_id = $1 AND slot = $2)",
            &[&task.id.as_str(), &slot.as_microsecond()],
        )?;
        Ok(row.try_get(0)?)
    })
}
