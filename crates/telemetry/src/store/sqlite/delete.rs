//! Deletes calls: pages and sums of a day together.

use hob_core::UtcDay;
use hob_db::{Database, DbResult, Durability};
use rusqlite::Connection;

use super::report::first_moment;
use crate::store::DayDeletion;

/// Subtracts a day from the totals, except those that have reached their limit.
const SUBTRACT_DAY: &str = "
    UPDATE telemetry_series SET
        total_answered = total_answered - (calls - failures),
        total_prompt_tokens = max(total_prompt_tokens - prompt_tokens, 0),
        total_completion_tokens = max(total_completion_tokens - completion_tokens, 0),
        total_cost_pico = max(total_cost_pico - cost_pico, 0),
        total_energy_uj = max(total_energy_uj - energy_uj, 0),
        total_measured = total_measured - measured
    FROM telemetry_day WHERE day = ?1 AND series = id";

pub(super) fn clear(database: &Database) -> DbResult<u64> {
    database.write(|transaction| {
        let deleted = recorded(transaction, i64::MIN, i64::MAX)?;
        transaction.execute_batch(
            "DELETE FROM telemetry_page; DELETE FROM telemetry_day; DELETE FROM telemetry_latency;
             DELETE FROM telemetry_served; DELETE FROM telemetry_series",
        )?;
        Ok(deleted)
    })
}

pub(super) fn delete_oldest(database: &Database, oldest_kept: UtcDay) -> DbResult<DayDeletion> {
    match database.read(first_moment)? {
        Some(first) if first.day() < oldest_kept => {
            delete_day(database, first.day()).map(DayDeletion::Deleted)
        }
        _ => Ok(DayDeletion::NothingOld),
    }
}

fn delete_day(database: &Database, day: UtcDay) -> DbResult<u64> {
    let (start, end) = (day.start().microseconds(), day.next().start().microseconds());
    database.write_with(Durability::ProcessEnd, |transaction| {
        let deleted = recorded(transaction, start, end)?;
        transaction.execute(
            "DELETE FROM telemetry_page WHERE first_started >= ?1 AND first_started < ?2",
            [start, end],
        )?;
        transaction.execute(SUBTRACT_DAY, [day.days()])?;
        transaction.execute("DELETE FROM telemetry_day WHERE day = ?1", [day.days()])?;
        transaction.execute("DELETE FROM telemetry_latency WHERE day = ?1", [day.days()])?;
        transaction.execute(
            "DELETE FROM telemetry_served WHERE quarter >= ?1 AND quarter < ?2",
            [day.start().quarter(), day.next().start().quarter()],
        )?;
        transaction
            .execute("DELETE FROM telemetry_series WHERE id NOT IN (SELECT series FROM telemetry_day)", [])?;
        Ok(deleted)
    })
}

/// The number of inferences in the pages from `start` to `end`.
fn recorded(connection: &Connection, start: i64, end: i64) -> rusqlite::Result<u64> {
    let sql =
        "SELECT coalesce(sum(count), 0) FROM telemetry_page WHERE first_started >= ?1 AND first_started < ?2";
    let count: i64 = connection.query_row(sql, [start, end], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}
