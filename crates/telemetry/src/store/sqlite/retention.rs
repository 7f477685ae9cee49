//! Deletes records. Pages and sums of a day always go together, so that the sums stay those of the inferences.

use std::error::Error;
use std::time::{Duration, Instant, SystemTime};

use hob_core::time::UtcDay;
use hob_db::{DatabaseError, Durability};
use rusqlite::Connection;

use crate::store::sqlite::Telemetry;
use crate::store::sqlite::report::first_moment;

/// How long to wait before trying again what the disk refused to delete.
const TRY_AGAIN: Duration = Duration::from_secs(60 * 60);

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
    pub fn clear(&self) -> Result<u64, DatabaseError> {
        self.database.write(|transaction| {
            let deleted = recorded(transaction, i64::MIN, i64::MAX)?;
            transaction.execute_batch(
                "DELETE FROM telemetry_page; DELETE FROM telemetry_day; DELETE FROM telemetry_latency;
                 DELETE FROM telemetry_served; DELETE FROM telemetry_series",
            )?;
            Ok(deleted)
        })
    }

    /// Deletes the oldest day that is more than `retention_days` before today, and says how many records that were; `None`
    /// when there is no such day. One day at a time: between two of them others can write.
    pub(crate) fn delete_oldest(
        &self,
        retention_days: u32,
        now: SystemTime,
    ) -> Result<Option<u64>, DatabaseError> {
        let oldest_kept = UtcDay::of(now).minus(retention_days);
        match self.database.read(first_moment)? {
            Some(first) if first.day() < oldest_kept => self.delete_day(first.day()).map(Some),
            _ => Ok(None),
        }
    }

    fn delete_day(&self, day: UtcDay) -> Result<u64, DatabaseError> {
        let (start, end) = (day.start().microseconds(), day.next().start().microseconds());
        self.database.write_with(Durability::ProcessEnd, |transaction| {
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

/// Keeps a record within the days it may have: from the start on, and whenever a day has passed.
pub(crate) struct Retention {
    /// 0 keeps all.
    days: u32,
    /// The day for which everything that is too old is gone.
    done: Option<UtcDay>,
    /// The last attempt, if it failed.
    refused: Option<Instant>,
}

/// Whether there is more to delete at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pruning {
    Continues,
    Rests,
}

impl Retention {
    pub(crate) fn new(days: u32) -> Self {
        Retention { days, done: None, refused: None }
    }

    /// Deletes a day, if there is one to be deleted. A failure is told, and tried again after a while.
    pub(crate) fn step(&mut self, telemetry: &Telemetry, now: SystemTime, clock: Instant) -> Pruning {
        let today = UtcDay::of(now);
        let too_soon = self.refused.is_some_and(|last| clock.saturating_duration_since(last) < TRY_AGAIN);
        if self.days == 0 || self.done == Some(today) || too_soon {
            return Pruning::Rests;
        }
        match telemetry.delete_oldest(self.days, now) {
            Ok(Some(deleted)) => {
                tracing::debug!(deleted, "the oldest day of the record of calls is gone");
                self.refused = None;
                Pruning::Continues
            }
            Ok(None) => {
                (self.done, self.refused) = (Some(today), None);
                Pruning::Rests
            }
            Err(error) => {
                if self.refused.replace(clock).is_none() {
                    tracing::warn!(
                        error = &error as &dyn Error,
                        "records of calls that are older than [telemetry] retention_days cannot be deleted; \
                         Hob keeps trying"
                    );
                }
                Pruning::Rests
            }
        }
    }
}

/// How many inferences are in the pages that begin from `start` on and before `end`.
fn recorded(connection: &Connection, start: i64, end: i64) -> rusqlite::Result<u64> {
    let sql =
        "SELECT coalesce(sum(count), 0) FROM telemetry_page WHERE first_started >= ?1 AND first_started < ?2";
    let count: i64 = connection.query_row(sql, [start, end], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
