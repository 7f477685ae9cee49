//! Sums for reports, from the daily sums alone, so that their cost does not depend on the number of calls.

use hob_core::{Moment, UtcDay};
use rusqlite::Connection;

use super::timing::{durations, read_group};
use crate::store::report::{GroupSums, Grouping, Groups, LAST_DAYS, LastDays, dollars};
use crate::timings::TimingSums;

pub(super) fn first_moment(connection: &Connection) -> rusqlite::Result<Option<Moment>> {
    let first =
        connection.query_row("SELECT min(first_started) FROM telemetry_page", [], |row| row.get(0))?;
    Ok(Option::<i64>::map(first, Moment::from_microseconds))
}

/// The last day with a call of each key.
pub(super) fn last_days(connection: &Connection) -> rusqlite::Result<LastDays> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, UtcDay::from_days(row.get(1)?)));
    connection.prepare_cached(LAST_DAYS)?.query_map([], read)?.collect()
}

pub(super) fn groups(
    connection: &Connection,
    grouping: Grouping,
    since: Option<UtcDay>,
) -> rusqlite::Result<Groups> {
    let columns = grouping.columns();
    let since = since.map_or(i64::MIN, UtcDay::days);
    let mut durations = durations(connection, columns, "TRUE", since)?;
    // The cost is summed in two parts, because the total may exceed SQLite's integers.
    let sql = format!(
        "SELECT {columns}, sum(calls), sum(failures), sum(cancelled), sum(estimated), sum(prompt_tokens),
             sum(completion_tokens), sum(cached_tokens), total(latency_us), total(first_token_us), sum(first_tokens),
             sum(cost_pico / 1000000), sum(cost_pico % 1000000), sum(unpriced), total(energy_uj), sum(measured)
         FROM telemetry_day JOIN telemetry_series ON id = series WHERE day >= ?1 GROUP BY 1, 2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let mut rows = statement.query([since])?;
    let mut groups = Groups::new();
    while let Some(row) = rows.next()? {
        let group = read_group(row)?;
        let count = |column: usize| row.get::<_, i64>(column).map(i64::unsigned_abs);
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
            energy_uj: row.get(15)?,
            measured: count(16)?,
            timings: TimingSums {
                durations: durations.remove(&group).unwrap_or_default(),
                latency_us: row.get(9)?,
                first_token_us: row.get(10)?,
                ..TimingSums::default()
            },
        };
        groups.insert(group, sums.figures());
    }
    Ok(groups)
}
