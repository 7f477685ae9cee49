//! Deletes records. Pages and sums of a day always go together, so that the sums stay those of the inferences.

use std::time::SystemTime;

use rusqlite::Connection;

use crate::error::StoreError;
use crate::telemetry::Telemetry;
use crate::telemetry::report::first_moment;
use crate::time::UtcDay;

/// Takes a day out of the sums of all days. Those that reached their limit no longer know what they are made of.
const SUBTRACT_DAY: &str = "
    UPDATE telemetry_series SET
        total_answered = total_answered - (calls - failures),
        total_prompt_tokens = max(total_prompt_tokens - prompt_tokens, 0),
        total_completion_tokens = max(total_completion_tokens - completion_tokens, 0),
        total_cost_pico = max(total_cost_pico - cost_pico, 0),
        total_energy_uj = max(total_energy_uj - energy_uj, 0),
        total_measured = total_measured - measured
    FROM telemetry_day WHERE day = ?1 AND series = id";

impl Telemetry {
    /// Deletes all records, and says how many there were.
    pub fn clear(&self) -> Result<u64, StoreError> {
        self.store.write(|transaction| {
            let deleted = recorded(transaction, i64::MIN, i64::MAX)?;
            transaction.execute_batch(
                "DELETE FROM telemetry_page; DELETE FROM telemetry_day; DELETE FROM telemetry_latency;
                 DELETE FROM telemetry_served; DELETE FROM telemetry_series",
            )?;
            Ok(deleted)
        })
    }

    /// Deletes the records of days more than `retention_days` before today, and says how many there were. 0 keeps all.
    pub fn prune(&self, retention_days: u32, now: SystemTime) -> Result<u64, StoreError> {
        if retention_days == 0 {
            return Ok(0);
        }
        let oldest_kept = UtcDay::of(now).minus(retention_days);
        let mut deleted = 0;
        // Day by day: between two of them others can write.
        while let Some(first) = self.store.read(first_moment)?
            && first.day() < oldest_kept
        {
            deleted += self.delete_day(first.day())?;
        }
        Ok(deleted)
    }

    fn delete_day(&self, day: UtcDay) -> Result<u64, StoreError> {
        let (start, end) = (day.start().microseconds(), day.next().start().microseconds());
        self.store.write(|transaction| {
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
            transaction.execute(
                "DELETE FROM telemetry_series WHERE id NOT IN (SELECT series FROM telemetry_day)",
                [],
            )?;
            Ok(deleted)
        })
    }
}

/// How many inferences are in the pages that begin from `start` on and before `end`.
fn recorded(connection: &Connection, start: i64, end: i64) -> rusqlite::Result<u64> {
    let sql =
        "SELECT coalesce(sum(count), 0) FROM telemetry_page WHERE first_started >= ?1 AND first_started < ?2";
    let count: i64 = connection.query_row(sql, [start, end], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}
