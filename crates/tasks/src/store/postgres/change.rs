//! Pauses, resumes and cancels.

use hob_db::postgres::{PostgresTransaction, QueryResult};
use jiff::Timestamp;

use super::{clock, rows};
use crate::claim_plan::{drops_retry, is_carried_ahead};
use crate::task::Task;
use crate::types::{TaskChange, TaskError, TaskId, TaskStatus};

pub(super) fn change(
    transaction: &mut PostgresTransaction<'_>,
    id: &TaskId,
    change: TaskChange,
    now: Timestamp,
) -> QueryResult<Result<Task, TaskError>> {
    let Some((task, settled)) = rows::find_to_change(transaction, id)? else {
        return Ok(Err(TaskError::NotFound { id: id.to_string() }));
    };
    let status = match task.status.after(change) {
        Ok(status) => status,
        Err(refused) => return Ok(Err(refused)),
    };
    let next_run = match status {
        TaskStatus::Active => resume(transaction, &task, settled, now)?,
        TaskStatus::Paused => task.next_run,
        TaskStatus::Completed | TaskStatus::Cancelled => None,
    };
    transaction.execute(
        "UPDATE task SET status = $2, next_run = $3 WHERE id = $1",
        &[&id.as_str(), &status.as_str(), &next_run.map(Timestamp::as_microsecond)],
    )?;
    if drops_retry(&task, status) {
        drop_retry(transaction, id)?;
    }
    Ok(Ok(Task { status, next_run, ..task }))
}

/// The next slot of a task that is resumed.
fn resume(
    transaction: &mut PostgresTransaction<'_>,
    task: &Task,
    settled: Timestamp,
    now: Timestamp,
) -> QueryResult<Option<Timestamp>> {
    if task.schedule.is_recurring() && is_carried_ahead(settled, now) {
        transaction.execute(
            "UPDATE task SET settled = $2 WHERE id = $1",
            &[&task.id.as_str(), &now.as_microsecond()],
        )?;
    }
    clock::next_slot(transaction, task, settled, now)
}

/// Drops a pending retry, and makes the task due at its next slot unless it runs.
fn drop_retry(transaction: &mut PostgresTransaction<'_>, id: &TaskId) -> QueryResult<()> {
    transaction.execute(
        "UPDATE task SET retry_slot = NULL, retry_attempt = NULL, retry_at = NULL,
             due = CASE WHEN EXISTS (SELECT 1 FROM task_run WHERE task_id = $1 AND finished_at IS NULL)
                 THEN NULL ELSE next_run END
         WHERE id = $1",
        &[&id.as_str()],
    )?;
    Ok(())
}
