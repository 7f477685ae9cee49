//! How long calls took: means from the days' sums, percentiles from the days' histograms.

use std::collections::HashMap;
use std::time::Duration;

use hob_core::RequestSource;
use hob_core::time::{UtcDay, as_seconds};
use hob_db::DatabaseError;
use rusqlite::Connection;
use serde::Serialize;

use crate::latency_histogram::{Durations, Histogram};
use crate::store::sqlite::report::{Group, Grouping};
use crate::store::sqlite::{CLOUD, Telemetry};

/// How long calls took; in seconds when serialised. The mean is exact; percentiles are within 2.5 %, and of a single call exact.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Timing {
    #[serde(serialize_with = "as_seconds")]
    pub mean: Duration,
    #[serde(serialize_with = "as_seconds")]
    pub p50: Duration,
    #[serde(serialize_with = "as_seconds")]
    pub p95: Duration,
}

/// The timings of some calls; nothing where none was completed, or none of them streamed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Timings {
    pub latency: Option<Timing>,
    pub first_token: Option<Timing>,
}

/// How fast a model on an engine writes.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpeed {
    pub engine: String,
    pub model: String,
    /// Of completed calls, over the whole time of each.
    pub tokens_per_second: f64,
}

/// Only calls whose time is in the sums count: one that was cancelled has tokens there, and no time. A day of which nobody knows
/// which tokens were of which calls says nothing.
const SPEEDS: &str = "
    SELECT engine, model, 1e6 * total(completed_tokens) / total(latency_us)
    FROM telemetry_day JOIN telemetry_series ON id = series WHERE day >= ?1 AND completed_tokens IS NOT NULL
    GROUP BY 1, 2 HAVING total(completed_tokens) > 0 AND total(latency_us) > 0
    ORDER BY sum(calls) DESC, 1, 2 LIMIT ?2";

impl Telemetry {
    /// How fast models have written from the day `since` on; of those with the most calls, and at most of so many.
    pub fn speeds(&self, since: UtcDay, most: u32) -> Result<Vec<ModelSpeed>, DatabaseError> {
        self.database.read(|connection| {
            let mut statement = connection.prepare_cached(SPEEDS)?;
            let speeds = statement.query_map([since.days(), i64::from(most)], |row| {
                Ok(ModelSpeed { engine: row.get(0)?, model: row.get(1)?, tokens_per_second: row.get(2)? })
            })?;
            speeds.collect()
        })
    }
}

/// What timings are made of.
#[derive(Default)]
pub(super) struct Times {
    pub(super) durations: Durations,
    /// Of all completed calls together, and how many that were.
    pub(super) latency_us: f64,
    pub(super) completed: u64,
    /// The same of those that were streamed.
    pub(super) first_token_us: f64,
    pub(super) streamed: u64,
}

impl Times {
    fn add(&mut self, other: &Times) {
        self.durations.latency.merge(&other.durations.latency);
        self.durations.first_token.merge(&other.durations.first_token);
        self.latency_us += other.latency_us;
        self.completed += other.completed;
        self.first_token_us += other.first_token_us;
        self.streamed += other.streamed;
    }

    pub(super) fn timings(&self) -> Timings {
        let Times { durations, latency_us, completed, first_token_us, streamed } = self;
        Timings {
            latency: timing(&durations.latency, *latency_us, *completed),
            first_token: timing(&durations.first_token, *first_token_us, *streamed),
        }
    }
}

fn timing(histogram: &Histogram, total_us: f64, calls: u64) -> Option<Timing> {
    let mean = Duration::try_from_secs_f64(total_us / calls as f64 / 1e6).ok()?;
    if calls == 1 {
        return Some(Timing { mean, p50: mean, p95: mean });
    }
    Some(Timing { mean, p50: histogram.percentile(50)?, p95: histogram.percentile(95)? })
}

/// The histograms of all calls that meet the condition `which`.
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
        let of_group = durations.entry(Group::read(row)?).or_default();
        of_group.latency.add_encoded(row.get_ref(2)?.as_blob()?);
        of_group.first_token.add_encoded(row.get_ref(3)?.as_blob()?);
    }
    Ok(durations)
}

/// How long answers that save money took from the day `since` on: all of them together, and by model and engine.
pub(super) fn served_timings(connection: &Connection, since: UtcDay) -> rusqlite::Result<ServedTimings> {
    let columns = Grouping::Model.columns();
    // Those on local engines that were no measurement.
    let which = format!("engine <> '{CLOUD}' AND source <> '{}'", RequestSource::Bench.as_str());
    let mut durations = durations(connection, columns, &which, since.days())?;
    let sql = format!(
        "SELECT {columns}, total(latency_us), sum(calls - failures - cancelled), total(first_token_us), sum(first_tokens)
         FROM telemetry_day JOIN telemetry_series ON id = series WHERE day >= ?1 AND {which} GROUP BY 1, 2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([since.days()])?;
    let mut together = Times::default();
    let mut by_model = HashMap::new();
    while let Some(row) = rows.next()? {
        let group = Group::read(row)?;
        let times = Times {
            durations: durations.remove(&group).unwrap_or_default(),
            latency_us: row.get(2)?,
            completed: row.get::<_, i64>(3)?.unsigned_abs(),
            first_token_us: row.get(4)?,
            streamed: row.get::<_, i64>(5)?.unsigned_abs(),
        };
        together.add(&times);
        let Group(model, engine) = group;
        by_model.insert((model, engine), times.timings());
    }
    Ok(ServedTimings { together: together.timings(), by_model })
}

/// See [`served_timings`].
pub(super) struct ServedTimings {
    pub(super) together: Timings,
    pub(super) by_model: HashMap<(String, String), Timings>,
}
