//! Reports from the sums of groups of calls, for all databases. Knows no SQL but the names of columns.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::time::SystemTime;

use hob_core::UtcDay;

use crate::figures::{AgentFigures, CallFigures, DayFigures, EngineFigures, KeyFigures, ModelFigures};
use crate::inference::Energy;
use crate::savings::Dollars;
use crate::timings::{CallTimings, TimingSums};

/// The number of last calls in the savings.
pub(super) const SERVED_RECENT: usize = 10;

/// The days of the chart and the timings in the savings, including today.
pub(super) const SERVED_DAYS: u32 = 30;

#[derive(Clone, Copy)]
pub(super) enum Grouping {
    Together,
    Model,
    Engine,
    Agent,
    Key,
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
            Grouping::Key => "key, ''",
            Grouping::Day => "cast(day AS TEXT), ''",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct Group(pub(super) String, pub(super) String);

pub(super) type Groups = BTreeMap<Group, CallFigures>;

/// The sums of a group, as a database returns them.
pub(super) struct GroupSums {
    pub(super) calls: u64,
    pub(super) failures: u64,
    pub(super) cancelled: u64,
    pub(super) estimated: u64,
    pub(super) prompt_tokens: u64,
    pub(super) completion_tokens: u64,
    pub(super) cached_tokens: u64,
    pub(super) first_tokens: u64,
    pub(super) unpriced: u64,
    pub(super) measured: u64,
    pub(super) cost: Dollars,
    pub(super) energy_uj: f64,
    pub(super) timings: TimingSums,
}

impl GroupSums {
    pub(super) fn figures(self) -> CallFigures {
        let GroupSums { calls, failures, cancelled, mut timings, .. } = self;
        timings.completed = calls.saturating_sub(failures).saturating_sub(cancelled);
        timings.streamed = self.first_tokens;
        let CallTimings { latency, first_token } = timings.timings();
        CallFigures {
            calls,
            failures,
            cancelled,
            estimated: self.estimated,
            prompt_tokens: self.prompt_tokens,
            completion_tokens: self.completion_tokens,
            cached_tokens: self.cached_tokens,
            latency,
            first_token,
            cost: self.cost,
            unpriced: self.unpriced,
            energy: energy(self.energy_uj, self.measured),
            measured: self.measured,
        }
    }
}

pub(super) fn together(groups: Groups) -> CallFigures {
    groups.into_values().next().unwrap_or_default()
}

pub(super) fn top_models(groups: Groups, most: usize) -> Vec<ModelFigures> {
    let named = |(Group(model, engine), figures)| ModelFigures { model, engine, figures };
    ranked(groups).into_iter().take(most).map(named).collect()
}

pub(super) fn engines(groups: Groups) -> Vec<EngineFigures> {
    let named = |(Group(engine, _), figures)| EngineFigures { engine, figures };
    ranked(groups).into_iter().map(named).collect()
}

pub(super) fn agents(groups: Groups) -> Vec<AgentFigures> {
    let named = |(Group(agent, _), figures)| AgentFigures {
        agent: Some(agent).filter(|agent: &String| !agent.is_empty()),
        figures,
    };
    ranked(groups).into_iter().map(named).collect()
}

/// The last day of each key.
pub(super) type LastDays = HashMap<String, UtcDay>;

/// For both databases.
pub(super) const LAST_DAYS: &str =
    "SELECT key, max(day) FROM telemetry_day JOIN telemetry_series ON id = series GROUP BY key";

pub(super) fn keys(groups: Groups, last_days: &LastDays) -> Vec<KeyFigures> {
    let named = |(Group(key, _), figures)| KeyFigures {
        last_day: last_days.get(&key).copied(),
        key: Some(key).filter(|key: &String| !key.is_empty()),
        figures,
    };
    ranked(groups).into_iter().map(named).collect()
}

/// The first day of a report of the last `days` days.
pub(super) fn first_day(days: u32, now: SystemTime) -> UtcDay {
    UtcDay::of(now).minus(days.saturating_sub(1))
}

pub(super) fn per_day(mut groups: Groups, days: u32, now: SystemTime) -> Vec<DayFigures> {
    let today = UtcDay::of(now);
    let of_day = |ago| {
        let day = today.minus(ago);
        let figures = groups.remove(&Group(day.days().to_string(), String::new())).unwrap_or_default();
        DayFigures { day, figures }
    };
    (0..days).rev().map(of_day).collect()
}

/// Most calls first. Groups are sorted by name, which decides between equals.
fn ranked(groups: Groups) -> Vec<(Group, CallFigures)> {
    let mut ranked: Vec<_> = groups.into_iter().collect();
    ranked.sort_by_key(|(_, figures)| Reverse(figures.calls));
    ranked
}

/// The latencies of local answers: in total, and by model and engine.
pub(super) struct ServedTimings {
    pub(super) together: CallTimings,
    pub(super) by_model: HashMap<(String, String), CallTimings>,
}

impl ServedTimings {
    pub(super) fn of(groups: impl IntoIterator<Item = (Group, TimingSums)>) -> Self {
        let mut together = TimingSums::default();
        let mut by_model = HashMap::new();
        for (Group(model, engine), times) in groups {
            together.add(&times);
            by_model.insert((model, engine), times.timings());
        }
        ServedTimings { together: together.timings(), by_model }
    }
}

/// An amount from millionths of a dollar and the remainder.
pub(super) fn dollars(micro: u64, pico: u64) -> Dollars {
    Dollars::from_pico(u128::from(micro) * 1_000_000 + u128::from(pico))
}

/// The energy of `measured` calls, if any.
pub(super) fn energy(microjoules: f64, measured: u64) -> Option<Energy> {
    (measured > 0).then(|| Energy::from_microjoules(microjoules as u64))
}
