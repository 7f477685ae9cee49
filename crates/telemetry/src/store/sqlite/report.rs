//! Sums for reports, from the daily sums alone, so that their cost does not depend on the number of calls.

use std::collections::BTreeMap;
use std::time::SystemTime;

use hob_core::{Moment, UtcDay};
use rusqlite::Connection;

use super::timing::{Group, Grouping, durations};
use crate::figures::{
    AgentFigures, CallFigures, CallOverview, DayFigures, EngineFigures, KeyFigures, ModelFigures,
};
use crate::inference::Energy;
use crate::savings::Dollars;
use crate::timings::{CallTimings, TimingSums};

pub(super) fn overview(connection: &Connection, since: Option<UtcDay>) -> rusqlite::Result<CallOverview> {
    let figures = groups(connection, Grouping::Together, since)?;
    Ok(CallOverview {
        recorded_since: first_moment(connection)?,
        figures: figures.into_values().next().unwrap_or_default(),
    })
}

pub(super) fn top_models(
    connection: &Connection,
    since: Option<UtcDay>,
    most: usize,
) -> rusqlite::Result<Vec<ModelFigures>> {
    let models = ranked(connection, Grouping::Model, since)?;
    let named = |(Group(model, engine), figures)| ModelFigures { model, engine, figures };
    Ok(models.into_iter().take(most).map(named).collect())
}

pub(super) fn engines(
    connection: &Connection,
    since: Option<UtcDay>,
) -> rusqlite::Result<Vec<EngineFigures>> {
    let engines = ranked(connection, Grouping::Engine, since)?;
    Ok(engines.into_iter().map(|(Group(engine, _), figures)| EngineFigures { engine, figures }).collect())
}

pub(super) fn agents(connection: &Connection, since: Option<UtcDay>) -> rusqlite::Result<Vec<AgentFigures>> {
    let agents = ranked(connection, Grouping::Agent, since)?;
    let named = |(Group(agent, _), figures)| {
        let agent = Some(agent).filter(|agent: &String| !agent.is_empty());
        AgentFigures { agent, figures }
    };
    Ok(agents.into_iter().map(named).collect())
}

pub(super) fn keys(connection: &Connection, since: Option<UtcDay>) -> rusqlite::Result<Vec<KeyFigures>> {
    let keys = ranked(connection, Grouping::Key, since)?;
    let named = |(Group(key, _), figures)| {
        let key = Some(key).filter(|key: &String| !key.is_empty());
        KeyFigures { key, figures }
    };
    Ok(keys.into_iter().map(named).collect())
}

pub(super) fn per_day(
    connection: &Connection,
    days: u32,
    now: SystemTime,
) -> rusqlite::Result<Vec<DayFigures>> {
    let today = UtcDay::of(now);
    let first = today.minus(days.saturating_sub(1));
    let mut found = groups(connection, Grouping::Day, Some(first))?;
    let of_day = |ago| {
        let day = today.minus(ago);
        let figures = found.remove(&Group(day.days().to_string(), String::new())).unwrap_or_default();
        DayFigures { day, figures }
    };
    Ok((0..days).rev().map(of_day).collect())
}

fn ranked(
    connection: &Connection,
    grouping: Grouping,
    since: Option<UtcDay>,
) -> rusqlite::Result<Vec<(Group, CallFigures)>> {
    // Sorted by name before, which decides between equals.
    let mut ranked: Vec<_> = groups(connection, grouping, since)?.into_iter().collect();
    ranked.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.calls));
    Ok(ranked)
}

pub(super) fn first_moment(connection: &Connection) -> rusqlite::Result<Option<Moment>> {
    let first =
        connection.query_row("SELECT min(first_started) FROM telemetry_page", [], |row| row.get(0))?;
    Ok(Option::<i64>::map(first, Moment::from_microseconds))
}

fn groups(
    connection: &Connection,
    grouping: Grouping,
    since: Option<UtcDay>,
) -> rusqlite::Result<BTreeMap<Group, CallFigures>> {
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
    let mut groups = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let group = Group::read(row)?;
        let count = |column: usize| row.get::<_, i64>(column).map(i64::unsigned_abs);
        let (calls, failures, cancelled) = (count(2)?, count(3)?, count(4)?);
        let times = TimingSums {
            durations: durations.remove(&group).unwrap_or_default(),
            latency_us: row.get(9)?,
            completed: calls - failures - cancelled,
            first_token_us: row.get(10)?,
            streamed: count(11)?,
        };
        let CallTimings { latency, first_token } = times.timings();
        let figures = CallFigures {
            calls,
            failures,
            cancelled,
            estimated: count(5)?,
            prompt_tokens: count(6)?,
            completion_tokens: count(7)?,
            cached_tokens: count(8)?,
            latency,
            first_token,
            cost: dollars(count(12)?, count(13)?),
            unpriced: count(14)?,
            energy: energy(row.get(15)?, count(16)?),
            measured: count(16)?,
        };
        groups.insert(group, figures);
    }
    Ok(groups)
}

/// An amount from millionths of a dollar and the remainder.
pub(super) fn dollars(micro: u64, pico: u64) -> Dollars {
    Dollars::from_pico(u128::from(micro) * 1_000_000 + u128::from(pico))
}

/// The energy of `measured` calls, if any.
pub(super) fn energy(microjoules: f64, measured: u64) -> Option<Energy> {
    (measured > 0).then(|| Energy::from_microjoules(microjoules as u64))
}
