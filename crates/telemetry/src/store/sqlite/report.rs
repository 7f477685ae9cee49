//! Sums for reports. They come from the days' sums alone: a million rows cost no more than the days and models they are of.

use std::collections::BTreeMap;
use std::time::SystemTime;

use hob_core::time::{Moment, UtcDay};
use hob_db::DatabaseError;
use rusqlite::Connection;
use serde::Serialize;

use crate::inference::Energy;
use crate::savings::Dollars;
use crate::store::sqlite::timing::{Times, Timing, Timings, durations};
use crate::store::sqlite::{Telemetry, as_joules_if_known};

/// What calls add up to. A failed call counts as a call and a failure, with the energy it used; a stream of the cloud that broke
/// also with its tokens and their price. It counts in nothing else.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Figures {
    pub calls: u64,
    pub failures: u64,
    pub cancelled: u64,
    /// Calls whose tokens we counted because the engine did not.
    pub estimated: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The part of `prompt_tokens` that came out of a cache.
    pub cached_tokens: u64,
    /// Of the calls that were completed.
    pub latency: Option<Timing>,
    /// Of the completed calls that were streamed.
    pub first_token: Option<Timing>,
    /// What calls to the cloud cost, as far as their price is known.
    pub cost: Dollars,
    /// Calls to the cloud whose price is not known.
    pub unpriced: u64,
    /// What the calls that were measured used; `None` when none was.
    #[serde(rename = "energy_joules", serialize_with = "as_joules_if_known")]
    pub energy: Option<Energy>,
    /// How many calls that were.
    pub measured: u64,
}

/// All calls together.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Overview {
    /// The first call there is a record of, whatever time the figures are for.
    pub recorded_since: Option<Moment>,
    pub figures: Figures,
}

/// One model on one engine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFigures {
    pub model: String,
    pub engine: String,
    pub figures: Figures,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineFigures {
    pub engine: String,
    pub figures: Figures,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentFigures {
    /// `None` for calls that no agent made.
    pub agent: Option<String>,
    pub figures: Figures,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DayFigures {
    pub day: UtcDay,
    pub figures: Figures,
}

impl Telemetry {
    /// All calls from the day `since` on; `None` is from the beginning, here and below.
    pub fn overview(&self, since: Option<UtcDay>) -> Result<Overview, DatabaseError> {
        self.database.read(|connection| {
            let figures = groups(connection, Grouping::Together, since)?;
            Ok(Overview {
                recorded_since: first_moment(connection)?,
                figures: figures.into_values().next().unwrap_or_default(),
            })
        })
    }

    /// The models with the most calls, and at most so many.
    pub fn top_models(&self, since: Option<UtcDay>, most: usize) -> Result<Vec<ModelFigures>, DatabaseError> {
        let models = self.ranked(Grouping::Model, since)?;
        let named = |(Group(model, engine), figures)| ModelFigures { model, engine, figures };
        Ok(models.into_iter().take(most).map(named).collect())
    }

    /// The engines, those with the most calls first.
    pub fn engines(&self, since: Option<UtcDay>) -> Result<Vec<EngineFigures>, DatabaseError> {
        let engines = self.ranked(Grouping::Engine, since)?;
        Ok(engines.into_iter().map(|(Group(engine, _), figures)| EngineFigures { engine, figures }).collect())
    }

    /// The agents, those with the most calls first.
    pub fn agents(&self, since: Option<UtcDay>) -> Result<Vec<AgentFigures>, DatabaseError> {
        let agents = self.ranked(Grouping::Agent, since)?;
        let named = |(Group(agent, _), figures)| {
            let agent = Some(agent).filter(|agent: &String| !agent.is_empty());
            AgentFigures { agent, figures }
        };
        Ok(agents.into_iter().map(named).collect())
    }

    /// The last `days` days, today included, oldest first; days without calls too.
    pub fn per_day(&self, days: u32, now: SystemTime) -> Result<Vec<DayFigures>, DatabaseError> {
        let today = UtcDay::of(now);
        let first = today.minus(days.saturating_sub(1));
        let mut found = self.database.read(|connection| groups(connection, Grouping::Day, Some(first)))?;
        let of_day = |ago| {
            let day = today.minus(ago);
            let figures = found.remove(&Group(day.days().to_string(), String::new())).unwrap_or_default();
            DayFigures { day, figures }
        };
        Ok((0..days).rev().map(of_day).collect())
    }

    fn ranked(
        &self,
        grouping: Grouping,
        since: Option<UtcDay>,
    ) -> Result<Vec<(Group, Figures)>, DatabaseError> {
        let groups = self.database.read(|connection| groups(connection, grouping, since))?;
        // They come sorted by name, which therefore decides between equals.
        let mut ranked: Vec<_> = groups.into_iter().collect();
        ranked.sort_by_key(|(_, figures)| std::cmp::Reverse(figures.calls));
        Ok(ranked)
    }
}

pub(super) fn first_moment(connection: &Connection) -> rusqlite::Result<Option<Moment>> {
    let first =
        connection.query_row("SELECT min(first_started) FROM telemetry_page", [], |row| row.get(0))?;
    Ok(Option::<i64>::map(first, Moment::from_microseconds))
}

/// What calls are summed by.
#[derive(Clone, Copy)]
pub(super) enum Grouping {
    Together,
    Model,
    Engine,
    Agent,
    Day,
}

impl Grouping {
    /// The two columns of a [`Group`].
    pub(super) fn columns(self) -> &'static str {
        match self {
            Grouping::Together => "'', ''",
            Grouping::Model => "model, engine",
            Grouping::Engine => "engine, ''",
            Grouping::Agent => "agent, ''",
            Grouping::Day => "cast(day AS TEXT), ''",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Group(pub(super) String, pub(super) String);

impl Group {
    pub(super) fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Self> {
        Ok(Group(row.get(0)?, row.get(1)?))
    }
}

fn groups(
    connection: &Connection,
    grouping: Grouping,
    since: Option<UtcDay>,
) -> rusqlite::Result<BTreeMap<Group, Figures>> {
    let columns = grouping.columns();
    let since = since.map_or(i64::MIN, UtcDay::days);
    let mut durations = durations(connection, columns, "TRUE", since)?;
    // The cost is summed in two parts, as the sum of all days may be larger than what SQLite holds.
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
        let times = Times {
            durations: durations.remove(&group).unwrap_or_default(),
            latency_us: row.get(9)?,
            completed: calls - failures - cancelled,
            first_token_us: row.get(10)?,
            streamed: count(11)?,
        };
        let Timings { latency, first_token } = times.timings();
        let figures = Figures {
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

/// An amount from its whole millionths of a dollar and the sum of what was left over.
pub(super) fn dollars(micro: u64, pico: u64) -> Dollars {
    Dollars::from_pico(u128::from(micro) * 1_000_000 + u128::from(pico))
}

/// A sum of energy from so many calls.
pub(super) fn energy(microjoules: f64, measured: u64) -> Option<Energy> {
    (measured > 0).then(|| Energy::from_microjoules(microjoules as u64))
}
