//! Writes inferences: into pages, and into the sums, in one transaction.

use std::collections::HashMap;

use hob_core::time::UtcDay;
use hob_db::{Database, DbResult, Durability};
use rusqlite::{OptionalExtension, Transaction, params};

use super::pages::Pages;
use crate::entry::{Entry, Series};
use crate::inference::Inference;
use crate::latency_histogram::Durations;
use crate::savings::Prices;
use crate::store::sums::{ServedSum, Sums, by_start};

// SQLite turns a sum that overflows into a float; `min` limits it to the largest integer.
const ADD_TO_DAY: &str = "
    INSERT INTO telemetry_day (
        day, series, calls, failures, cancelled, estimated, prompt_tokens, completion_tokens, cached_tokens, latency_us,
        first_token_us, first_tokens, cost_pico, unpriced, energy_uj, measured, completed_tokens
    ) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17)
    ON CONFLICT DO UPDATE SET
        calls = calls + excluded.calls,
        failures = failures + excluded.failures,
        cancelled = cancelled + excluded.cancelled,
        estimated = estimated + excluded.estimated,
        prompt_tokens = min(prompt_tokens + excluded.prompt_tokens, 9223372036854775807),
        completion_tokens = min(completion_tokens + excluded.completion_tokens, 9223372036854775807),
        cached_tokens = min(cached_tokens + excluded.cached_tokens, 9223372036854775807),
        latency_us = min(latency_us + excluded.latency_us, 9223372036854775807),
        first_token_us = min(first_token_us + excluded.first_token_us, 9223372036854775807),
        first_tokens = first_tokens + excluded.first_tokens,
        cost_pico = min(cost_pico + excluded.cost_pico, 9223372036854775807),
        unpriced = unpriced + excluded.unpriced,
        energy_uj = min(energy_uj + excluded.energy_uj, 9223372036854775807),
        measured = measured + excluded.measured,
        completed_tokens = min(completed_tokens + excluded.completed_tokens, 9223372036854775807)";

const ADD_TO_SERIES: &str = "
    UPDATE telemetry_series SET
        total_answered = total_answered + ?2,
        total_prompt_tokens = min(total_prompt_tokens + ?3, 9223372036854775807),
        total_completion_tokens = min(total_completion_tokens + ?4, 9223372036854775807),
        total_cost_pico = min(total_cost_pico + ?5, 9223372036854775807),
        total_energy_uj = min(total_energy_uj + ?6, 9223372036854775807),
        total_measured = total_measured + ?7
    WHERE id = ?1";

const ADD_TO_SERVED: &str = "
    INSERT INTO telemetry_served (quarter, calls, prompt_tokens, completion_tokens) VALUES (?1, ?2, ?3, ?4)
    ON CONFLICT DO UPDATE SET
        calls = calls + excluded.calls,
        prompt_tokens = min(prompt_tokens + excluded.prompt_tokens, 9223372036854775807),
        completion_tokens = min(completion_tokens + excluded.completion_tokens, 9223372036854775807)";

const FIND_DURATIONS: &str =
    "SELECT latency, first_token FROM telemetry_latency WHERE day = ?1 AND series = ?2";

const REPLACE_DURATIONS: &str =
    "INSERT OR REPLACE INTO telemetry_latency (day, series, latency, first_token) VALUES (?1, ?2, ?3, ?4)";

const FIND_SERIES: &str = "SELECT id FROM telemetry_series WHERE engine = ?1 AND model = ?2 AND agent = ?3 AND source = ?4 AND key = ?5";

const INSERT_SERIES: &str =
    "INSERT INTO telemetry_series (engine, model, agent, source, key) VALUES (?1, ?2, ?3, ?4, ?5)";

pub(super) fn record_batch(database: &Database, batch: &[Inference], prices: &Prices) -> DbResult<()> {
    database.write_with(Durability::ProcessEnd, |transaction| {
        let mut pages = Pages::new(transaction, batch.len())?;
        let mut series = SeriesIds::default();
        let mut sums = Sums::default();
        for inference in by_start(batch) {
            let entry = Entry::of(inference, prices);
            let id = series.of(transaction, entry.series)?;
            pages.add(id, &entry)?;
            sums.add(id, &entry);
        }
        pages.finish()?;
        write(sums, transaction)
    })
}

/// The series of a batch by their ids.
#[derive(Default)]
struct SeriesIds<'a> {
    known: HashMap<Series<'a>, i64>,
    /// The next call is often of the same series.
    last: Option<(Series<'a>, i64)>,
}

impl<'a> SeriesIds<'a> {
    fn of(&mut self, transaction: &Transaction<'_>, series: Series<'a>) -> rusqlite::Result<i64> {
        if let Some((last, id)) = self.last
            && last == series
        {
            return Ok(id);
        }
        let id = match self.known.get(&series) {
            Some(id) => *id,
            None => *self.known.entry(series).or_insert(series_id(transaction, &series)?),
        };
        self.last = Some((series, id));
        Ok(id)
    }
}

fn series_id(transaction: &Transaction<'_>, series: &Series<'_>) -> rusqlite::Result<i64> {
    let names = params![series.engine, series.model, series.agent, series.source, series.key];
    let known = transaction.prepare_cached(FIND_SERIES)?.query_row(names, |row| row.get(0)).optional()?;
    match known {
        Some(id) => Ok(id),
        None => transaction.prepare_cached(INSERT_SERIES)?.insert(names),
    }
}

fn write(sums: Sums<i64>, transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let mut add_to_day = transaction.prepare_cached(ADD_TO_DAY)?;
    let mut add_to_series = transaction.prepare_cached(ADD_TO_SERIES)?;
    for ((day, series), sum) in sums.days {
        add_to_day.execute(params![
            day.days(),
            series,
            sum.calls,
            sum.failures,
            sum.cancelled,
            sum.estimated,
            sum.prompt_tokens,
            sum.completion_tokens,
            sum.cached_tokens,
            sum.latency_us,
            sum.first_token_us,
            sum.first_tokens,
            sum.cost_pico,
            sum.unpriced,
            sum.energy_uj,
            sum.measured,
            sum.completed_tokens,
        ])?;
        add_to_series.execute([
            series,
            sum.calls - sum.failures,
            sum.prompt_tokens,
            sum.completion_tokens,
            sum.cost_pico,
            sum.energy_uj,
            sum.measured,
        ])?;
        if let Some(durations) = sum.durations {
            add_durations(transaction, day, series, durations)?;
        }
    }
    let mut add_to_served = transaction.prepare_cached(ADD_TO_SERVED)?;
    for (quarter, served) in sums.served {
        let ServedSum { calls, prompt_tokens, completion_tokens } = served;
        add_to_served.execute([quarter, calls, prompt_tokens, completion_tokens])?;
    }
    Ok(())
}

fn add_durations(
    transaction: &Transaction<'_>,
    day: UtcDay,
    series: i64,
    mut durations: Durations,
) -> rusqlite::Result<()> {
    let mut find = transaction.prepare_cached(FIND_DURATIONS)?;
    let mut known = find.query(params![day.days(), series])?;
    if let Some(row) = known.next()? {
        durations.latency.add_encoded(row.get_ref(0)?.as_blob()?);
        durations.first_token.add_encoded(row.get_ref(1)?.as_blob()?);
    }
    let (latency, first_token) = (durations.latency.encode(), durations.first_token.encode());
    let mut replace = transaction.prepare_cached(REPLACE_DURATIONS)?;
    replace.execute(params![day.days(), series, latency, first_token])?;
    Ok(())
}
