//! Tasks whose schedule a wrong clock has moved ahead.
//!
//! A claim settles all slots up to the current time, and a task waits until then. If the clock was a year ahead for a moment, the
//! task would wait a year. So such tasks are recalculated once the clock is steady. A slot with a run never runs again.

use jiff::Timestamp;
use rusqlite::{Connection, Transaction, params};

use super::rows;
use crate::claim_plan::{self, correct_creation, latest_retry, latest_settled};
use crate::store::Recalculated;
use crate::task::Task;
use crate::types::TaskId;

/// The active tasks that wait for a time that the clock showed by mistake.
pub(super) fn carried_ahead(connection: &Connection, now: Timestamp) -> rusqlite::Result<Vec<TaskId>> {
    let mut statement = connection
        .prepare_cached("SELECT id FROM task WHERE status = 'active' AND (settled > ?1 OR retry_at > ?2)")?;
    let latest = [latest_settled(now).as_microsecond(), latest_retry(now).as_microsecond()];
    let ids = statement.query_map(latest, |row| rows::read_id(row, 0))?;
    ids.collect()
}

pub(super) fn recalculate_carried_ahead(
    transaction: &Transaction<'_>,
    now: Timestamp,
) -> rusqlite::Result<Vec<Recalculated>> {
    let mut recalculated = Vec::new();
    for id in carried_ahead(transaction, now)? {
        recalculated.extend(recalculate(transaction, &id, now)?);
    }
    Ok(recalculated)
}

fn recalculate(
    transaction: &Transaction<'_>,
    id: &TaskId,
    now: Timestamp,
) -> rusqlite::Result<Option<Recalculated>> {
    // A claim logs unreadable tasks.
    let Ok(Some(mut task)) = rows::find(transaction, id) else { return Ok(None) };
    let settled = settled(transaction, id)?;
    correct_creation(&mut task, now);
    let next_run = next_slot(transaction, &task, settled, now)?;
    transaction.execute(
        "UPDATE task SET next_run = ?2, settled = min(settled, ?3), created_at = ?4,
             retry_at = CASE WHEN retry_at > ?5 THEN ?3 ELSE retry_at END
         WHERE id = ?1",
        params![
            id.as_str(),
            next_run.map(Timestamp::as_microsecond),
            now.as_microsecond(),
            task.created_at.as_microsecond(),
            latest_retry(now).as_microsecond(),
        ],
    )?;
    // A running task becomes due when its run ends.
    transaction.execute(
        "UPDATE task SET due = coalesce(retry_at, next_run) WHERE id = ?1
             AND NOT EXISTS (SELECT 1 FROM task_run WHERE task_id = ?1 AND finished_at IS NULL)",
        [id.as_str()],
    )?;
    Ok(Some(Recalculated { task: id.clone(), ahead: settled.duration_since(now), next_run }))
}

/// All slots of a task up to here are settled.
pub(super) fn settled(transaction: &Transaction<'_>, id: &TaskId) -> rusqlite::Result<Timestamp> {
    let settled =
        transaction.query_row("SELECT settled FROM task WHERE id = ?1", [id.as_str()], |row| row.get(0))?;
    rows::moment(0, settled)
}

/// The next slot of a task that has no run yet.
pub(super) fn next_slot(
    transaction: &Transaction<'_>,
    task: &Task,
    settled: Timestamp,
    now: Timestamp,
) -> rusqlite::Result<Option<Timestamp>> {
    let mut has_run = transaction
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM task_run WHERE task_id = ?1 AND slot = ?2)")?;
    claim_plan::next_slot(task, settled, now, |slot| {
        has_run.query_row(params![task.id.as_str(), slot.as_microsecond()], |row| row.get(0))
    })
}
