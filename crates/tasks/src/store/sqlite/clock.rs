//! Tasks whose schedule a wrong clock has carried ahead.
//!
//! A claim settles all slots up to the time on the clock, and a task waits until that time has passed. When the clock was
//! ahead by a year for a moment, that would be a year. So once the clock is believed again, such tasks are recalculated. The slots
//! that ran meanwhile stay done: a slot with a run is never run again.

use hob_db::DatabaseError;
use jiff::{SignedDuration, Timestamp};
use rusqlite::{Transaction, params};

use super::claim::MOST_RUNS;
use super::finish::RETRY_BACKOFF;
use super::{Tasks, rows};
use crate::schedule::ScheduleSpec;
use crate::task::Task;
use crate::types::TaskId;

/// Clocks are corrected by seconds all the time, and a slot that one run has made up for must not run after such a correction.
/// Further ahead than this nothing is settled by a clock that is only a little off.
const TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// A task whose next run was recalculated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recalculated {
    pub task: TaskId,
    /// How far the clock was ahead when the task last ran or was made, about.
    pub ahead: SignedDuration,
    pub next_run: Option<Timestamp>,
}

impl Tasks {
    /// Recalculates the next run of active tasks that wait for a time the clock showed by mistake; these tasks. To be called
    /// when the clock has been steady for a while: one that is behind for a moment must not undo what was settled.
    pub fn recalculate_carried_ahead(&self, now: Timestamp) -> Result<Vec<Recalculated>, DatabaseError> {
        let (settled, retry) = (furthest(now, TOLERANCE), furthest(now, signed_back_off()));
        let carried = |connection: &rusqlite::Connection| {
            let mut statement = connection.prepare_cached(
                "SELECT id FROM task WHERE status = 'active' AND (settled > ?1 OR retry_at > ?2)",
            )?;
            let ids = statement.query_map([settled, retry], |row| rows::read_id(row, 0))?;
            ids.collect::<rusqlite::Result<Vec<TaskId>>>()
        };
        // Mostly there are none, and then nobody needs to be waited for.
        if self.database.read(carried)?.is_empty() {
            return Ok(Vec::new());
        }
        self.database.write(|transaction| {
            let mut recalculated = Vec::new();
            for id in carried(transaction)? {
                recalculated.extend(recalculate(transaction, &id, now)?);
            }
            Ok(recalculated)
        })
    }
}

fn recalculate(
    transaction: &Transaction<'_>,
    id: &TaskId,
    now: Timestamp,
) -> rusqlite::Result<Option<Recalculated>> {
    // One that cannot be read is told of when it is due.
    let Ok(Some(mut task)) = rows::find(transaction, id) else { return Ok(None) };
    let settled = settled(transaction, id)?;
    if task.created_at > later(now, TOLERANCE) {
        // Intervals are counted from here.
        task.created_at = now;
        task.timetable.anchor = now;
    }
    let next_run = match task.timetable.spec {
        // A date is where it is, whatever the clock showed.
        ScheduleSpec::Once { .. } => task.next_run,
        _ => next_slot(transaction, &task, settled, now)?,
    };
    transaction.execute(
        "UPDATE task SET next_run = ?2, settled = min(settled, ?3), created_at = ?4,
             retry_at = CASE WHEN retry_at > ?5 THEN ?3 ELSE retry_at END
         WHERE id = ?1",
        params![
            id.as_str(),
            next_run.map(Timestamp::as_microsecond),
            now.as_microsecond(),
            task.created_at.as_microsecond(),
            furthest(now, signed_back_off()),
        ],
    )?;
    // One that runs becomes due when its run ends.
    transaction.execute(
        "UPDATE task SET due = coalesce(retry_at, next_run) WHERE id = ?1
             AND NOT EXISTS (SELECT 1 FROM task_run WHERE task_id = ?1 AND finished_at IS NULL)",
        [id.as_str()],
    )?;
    Ok(Some(Recalculated { task: id.clone(), ahead: settled.duration_since(now), next_run }))
}

/// Slots of a task up to here are done with.
pub(super) fn settled(transaction: &Transaction<'_>, id: &TaskId) -> rusqlite::Result<Timestamp> {
    let settled =
        transaction.query_row("SELECT settled FROM task WHERE id = ?1", [id.as_str()], |row| row.get(0))?;
    rows::moment(0, settled)
}

/// The next slot of a recurring task that has neither run nor been made up for. What is settled too far ahead was settled by a
/// clock that was wrong, and does not count.
pub(super) fn next_slot(
    transaction: &Transaction<'_>,
    task: &Task,
    settled: Timestamp,
    now: Timestamp,
) -> rusqlite::Result<Option<Timestamp>> {
    let after = if is_carried_ahead(settled, now) { now } else { now.max(settled) };
    let mut has_run = transaction
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM task_run WHERE task_id = ?1 AND slot = ?2)")?;
    // No more slots can have run than runs are kept.
    for slot in task.timetable.upcoming(after).take(MOST_RUNS.unsigned_abs() as usize + 1) {
        if !has_run.query_row(params![task.id.as_str(), slot.as_microsecond()], |row| row.get(0))? {
            return Ok(Some(slot));
        }
    }
    Ok(None)
}

fn signed_back_off() -> SignedDuration {
    super::claim::signed(RETRY_BACKOFF.longest)
}

/// Whether slots were settled by a clock that was ahead.
pub(super) fn is_carried_ahead(settled: Timestamp, now: Timestamp) -> bool {
    settled > later(now, TOLERANCE)
}

fn furthest(now: Timestamp, ahead: SignedDuration) -> i64 {
    later(now, ahead).as_microsecond()
}

/// At the latest the last moment there is: a clock may show anything.
fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}
