//! Sums for reports, from the daily sums alone, so that their cost does not depend on the number of calls.

use std::collections::HashMap;

use hob_core::engine::CLOUD;
use hob_core::{RequestSource, UtcDay};
use hob_db::postgres::{PostgresTransaction, QueryResult, Row};

use crate::latency_histogram::Durations;
use crate::store::report::{Group, GroupSums, Grouping, Groups, LAST_DAYS, LastDays, ServedTimings, dollars};
use crate::timings::{ModelSpeed, TimingSums};

/// Only calls with a time count: a cancelled call has tokens, but no time. Days without the tokens of completed calls are
/// skipped.
const SPEEDS: &str = "
    SELECT engine, model, 1e6::float8 * sum(completed_tokens)::float8 / sum(latency_us)::float8
    FROM telemetry_day JOIN telemetry_series ON id = series WHERE day >= $1 AND completed_tokens IS NOT NULL
    GROUP BY 1, 2 HAVING sum(completed_tokens) > 0 AND sum(latency_us) > 0
    ORDER BY sum(calls) DESC, 1, 2 LIMIT $2";

/// The last day with a call of each key.
pub(super) fn last_days(transaction: &mut PostgresTransaction<'_>) -> QueryResult<LastDays> {
    let read = |row: &Row| Ok((row.try_get(0)?, UtcDay::from_days(row.try_get(1)?)));
    transaction.query(LAST_DAYS, &[])?.iter().map(read).collect()
}

pub(super) fn groups(
    transaction: &mut PostgresTransaction<'_>,
    grouping: Grouping,
    since: Option<UtcDay>,
) -> QueryResult<Groups> {
    let columns = grouping.columns();
    let since = since.map_or(i64::MIN, UtcDay::days);
    let mut durations = durations(transaction, columns, "TRUE", since)?;
    let sql = format!(
        "SELECT {columns}, sum(calls)::bigint, sum(failures)::bigint, sum(cancelled)::bigint, sum(estimated)::bigint,
             sum(prompt_tokens)::bigint, sum(completion_tokens)::bigint, sum(cached_tokens)::bigint,
             sum(latency_us)::float8, sum(first_token_us)::float8, sum(first_tokens)::bigint,
             sum(cost_pico / 1000000)::bigint, sum(cost_pico % 1000000)::bigint, sum(unpriced)::bigint,
             sum(energy_uj)::float8, sum(measured)::bigint
         FROM telemetry_day JOIN telemetry_series ON id = series WHERE day >= $1 GROUP BY 1, 2"
    );
    let mut groups = Groups::new();
    for row in transaction.query(&sql, &[&since])? {
        let group = read_group(&row)?;
        let count = |column: usize| count(&row, column);
        let sums = GroupSums {
            calls: count(2)?,
            failures: count(3)?,
            cancelled: count(4)?,
            estimated: count(5)?,
            prompt_tokens: count(6)?,
            completion_tokens: count(7)?,
            cached_tokens: count(8)?,
            first_tokens: count(11)?,
            cost: dollars(count(12)?, count(13)?),
            unpriced: count(14)?,
            energy_uj: row.try_get(15)?,
            measured: count(16)?,
            timings: TimingSums {
                durations: durations.remove(&group).unwrap_or_default(),
                latency_us: row.try_get(9)?,
                first_token_us: row.try_get(10)?,
                ..TimingSums::default()
            },
        };
        groups.insert(group, sums.figures());
    }
    Ok(groups)
}

pub(super) fn speeds(
    transaction: &mut PostgresTransaction<'_>,
    since: UtcDay,
    most: u32,
) -> QueryResult<Vec<ModelSpeed>> {
    let read = |row: &Row| {
        Ok(ModelSpeed { engine: row.try_get(0)?, model: row.try_get(1)?, tokens_per_second: row.try_get(2)? })
    };
    transaction.query(SPEEDS, &[&since.days(), &i64::from(most)])?.iter().map(read).collect()
}

/// The latencies of local answers since a day.
pub(super) fn served_timings(
    transaction: &mut PostgresTransaction<'_>,
    since: UtcDay,
) -> QueryResult<ServedTimings> {
    let columns = Grouping::Model.columns();
    // Local calls without benchmarks.
    let which = format!("engine <> '{CLOUD}' AND source <> '{}'", RequestSource::Bench.as_str());
    let mut durations = durations(transaction, columns, &which, since.days())?;
    let sql = format!(
        "SELECT {columns}, sum(latency_us)::float8, sum(calls - failures - cancelled)::bigint,
             sum(first_token_us)::float8, sum(first_tokens)::bigint
         FROM telemetry_day JOIN telemetry_series ON id = series WHERE day >= $1 AND {which} GROUP BY 1, 2"
    );
    let mut groups = Vec::new();
    for row in transaction.query(&sql, &[&since.days()])? {
        let group = read_group(&row)?;
        let times = TimingSums {
            durations: durations.remove(&group).unwrap_or_default(),
            latency_us: row.try_get(2)?,
            completed: count(&row, 3)?,
            first_token_us: row.try_get(4)?,
            streamed: count(&row, 5)?,
        };
        groups.push((group, times));
    }
    Ok(ServedTimings::of(groups))
}

/// The histograms of all calls that match `which`.
fn durations(
    transaction: &mut PostgresTransaction<'_>,
    columns: &str,
    which: &str,
    since: i64,
) -> QueryResult<HashMap<Group, Durations>> {
    let sql = format!(
        "SELECT {columns}, latency, first_token
         FROM telemetry_latency JOIN telemetry_series ON id = series WHERE day >= $1 AND {which}"
    );
    let mut durations: HashMap<Group, Durations> = HashMap::new();
    for row in transaction.query(&sql, &[&since])? {
        let of_group = durations.entry(read_group(&row)?).or_default();
        of_group.latency.add_encoded(row.try_get(2)?);
        of_group.first_token.add_encoded(row.try_get(3)?);
    }
    Ok(durations)
}

pub(super) fn count(row: &Row, column: usize) -> QueryResult<u64> {
    Ok(row.try_get::<_, i64>(column)?.unsigned_abs())
}

fn read_group(row: &Row) -> QueryResult<Group> {
    Ok(Group(row.try_get(0)?, row.try_get(1)?))
}
