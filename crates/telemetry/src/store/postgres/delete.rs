//! Deletes calls: rows and sums of a day together.

use hob_core::UtcDay;
use hob_db::postgres::{PostgresTransaction, QueryResult};

use super::calls::first_moment;
use super::record::day_lock;
use crate::store::DayDeletion;

/// Of all processes, one deletes old days.
const RETENTION_LOCK: &str = "hob.telemetry.retention";

/// In the order in which a batch locks them, which is by all their names.
pub(super) const LOCK_SERIES: &str = "
    SELECT id FROM telemetry_series WHERE id IN (SELECT series FROM telemetry_day WHERE day = $1)
    ORDER BY engine, model, agent, source, key FOR UPDATE";

/// Subtracts a day from the totals, except those that have reached their limit.
const SUBTRACT_DAY: &str = "
    UPDATE telemetry_series SET
        total_calls = total_calls - calls,
        total_answered = total_answered - (calls - failures),
        total_prompt_tokens = greatest(total_prompt_tokens - prompt_tokens, 0),
        total_completion_tokens = greatest(total_completion_tokens - completion_tokens, 0),
        total_cost_pico = greatest(total_cost_pico - cost_pico, 0),
        total_energy_uj = greatest(total_energy_uj - energy_uj, 0),
        total_measured = total_measured - measured
    FROM telemetry_day WHERE day = $1 AND series = id";

/// A process that is deleting holds the lock; the others do not wait for it. Writers of other days are not affected.
pub(super) fn delete_oldest(
    transaction: &mut PostgresTransaction<'_>,
    oldest_kept: UtcDay,
) -> QueryResult<DayDeletion> {
    if !transaction.try_lock(RETENTION_LOCK)? {
        return Ok(DayDeletion::Busy);
    }
    match first_moment(transaction)? {
        Some(first) if first.day() < oldest_kept => {
            delete_day(transaction, first.day()).map(DayDeletion::Deleted)
        }
        _ => Ok(DayDeletion::NothingOld),
    }
}

fn delete_day(transaction: &mut PostgresTransaction<'_>, day: UtcDay) -> QueryResult<u64> {
    // A day may have millions of rows.
    transaction.wait_without_limit()?;
    // A batch that still writes to this day is complete before, or comes after: its rows and its sums are deleted together.
    transaction.lock(&day_lock(day))?;
    let (start, end) = (day.start(), day.next().start());
    let deleted = transaction.execute(
        "DELETE FROM telemetry_call WHERE started >= $1 AND started < $2",
        &[&start.microseconds(), &end.microseconds()],
    )?;
    transaction.query(LOCK_SERIES, &[&day.days()])?;
    transaction.execute(SUBTRACT_DAY, &[&day.days()])?;
    transaction.execute("DELETE FROM telemetry_day WHERE day = $1", &[&day.days()])?;
    transaction.execute("DELETE FROM telemetry_latency WHERE day = $1", &[&day.days()])?;
    transaction.execute(
        "DELETE FROM telemetry_served WHERE quarter >= $1 AND quarter < $2",
        &[&start.quarter(), &end.quarter()],
    )?;
    transaction.execute("DELETE FROM telemetry_series WHERE total_calls = 0", &[])?;
    Ok(deleted)
}

pub(super) fn clear(transaction: &mut PostgresTransaction<'_>) -> QueryResult<u64> {
    transaction.wait_without_limit()?;
    // Batches wait. Reports do not.
    transaction.run_script("LOCK TABLE telemetry_call IN SHARE ROW EXCLUSIVE MODE")?;
    let deleted = transaction.execute("DELETE FROM telemetry_call", &[])?;
    transaction.run_script(
        "DELETE FROM telemetry_series; DELETE FROM telemetry_day; DELETE FROM telemetry_latency;
         DELETE FROM telemetry_served",
    )?;
    Ok(deleted)
}
