//! Latencies: sums and histograms of days.

use std::collections::HashMap;

use hob_core::engine::CLOUD;
use hob_core::{RequestSource, UtcDay};
use rusqlite::Connection;

use crate::latency_histogram::Durations;
use crate::store::report::{Group, Grouping, ServedTimings};
use crate::timings::{ModelSpeed, TimingSums};

pub(super) fn read_group(row: &rusqlite::Row<'_>) -> rusqlite::Result<Group> {
    Ok(Group(row.get(0)?, row.get(1)?))
}

/// Only calls with a time count: a cancelled call has tokens, but no time. Days without the tokens of completed calls are
/// skipped.
const SPEEDS: &str = "
    SELECT engine, model, 1e6 * total(completed_tokens) / total(latency_us)
    FROM telemetry_day JOIN telemetry_series ON id = series WHERE day >= ?1 AND completed_tokens IS NOT NULL
    GROUP BY 1, 2 HAVING total(completed_tokens) > 0 AND total(latency_us) > 0
    ORDER BY sum(calls) DESC, 1, 2 LIMIT ?2";

pub(super) fn speeds(connection: &Connection, since: UtcDay, most: u32) -> rusqlite::Result<Vec<ModelSpeed>> {
    let mut statement = connection.prepare_cached(SPEEDS)?;
    let speeds = statement.query_map([since.days(), i64::from(most)], |row| {
        Ok(ModelSpeed { engine: row.get(0)?, model: row.get(1)?, tokens_per_second: row.get(2)? })
    })?;
    speeds.collect()
}

/// The histograms of all calls that match `which`.
pub(super) fn durations(
    connection: &Connection,
    columns: &str,
    which: &str,
    since: i64,
) -> rusqlite::Result<HashMap<Group, Durations>> {
    let sql = format!(
        "SELECT {columns}, latency, first_token
         FROM telemetry_latency JOIN telemetry_series ON id = series WHERE day >= ?1 AND {which}"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([since])?;
    let mut durations: HashMap<Group, Durations> = HashMap::new();
    while let Some(row) = rows.next()? {
        let of_group = durations.entry(read_group(row)?).or_default();
        of_group.latency.add_encoded(row.get_ref(2)?.as_blob()?);
        of_group.first_token.add_encoded(row.get_ref(3)?.as_blob()?);
    }
    Ok(durations)
}

/// The latencies of local answers since a day.
pub(super) fn served_timings(connection: &Connection, since: UtcDay) -> rusqlite::Result<ServedTimings> {
    let columns = Grouping::Model.columns();
    // Local calls without benchmarks.
    let which = format!("engine <> '{CLOUD}' AND source <> '{}'", RequestSource::Bench.as_str());
    let mut durations = durations(connection, columns, &which, since.days())?;
    let sql = format!(
        "SELECT {columns}, total(latency_us), sum(calls - failures - cancelled), total(first_token_us), sum(first_tokens)
         FROM telemetry_day JOIN telemetry_series ON id = series WHERE day >= ?1 AND {which} GROUP BY 1, 2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([since.days()])?;
    let mut groups = Vec::new();
    while let Some(row) = rows.next()? {
        let group = read_group(row)?;
        let times = TimingSums {
            durations: durations.remove(&group).unwrap_or_default(),
            latency_us: row.get(2)?,
            completed: row.get::<_, i64>(3)?.unsigned_abs(),
            first_token_us: row.get(4)?,
            streamed: row.get::<_, i64>(5)?.unsigned_abs(),
        };
        groups.push((group, times));
    }
    Ok(ServedTimings::of(groups))
}
