//! What calls add up to in a report. Plain values.

use hob_core::{Moment, UtcDay};
use serde::Serialize;

use crate::call_record::as_joules_if_known;
use crate::inference::Energy;
use crate::savings::Dollars;
use crate::timings::LatencySummary;

/// What calls add up to. A failed call counts as a call and a failure, with the energy it used; a stream of the cloud that broke
/// also with its tokens and their price. It counts in nothing else.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CallFigures {
    pub calls: u64,
    pub failures: u64,
    pub cancelled: u64,
    /// Calls whose tokens Hob counted because the engine did not.
    pub estimated: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The part of `prompt_tokens` that came out of a cache.
    pub cached_tokens: u64,
    /// Of the calls that were completed.
    pub latency: Option<LatencySummary>,
    /// Of the completed calls that were streamed.
    pub first_token: Option<LatencySummary>,
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
pub struct CallOverview {
    /// The first call there is a record of, whatever time the figures are for.
    pub recorded_since: Option<Moment>,
    pub figures: CallFigures,
}

/// One model on one engine.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ModelFigures {
    pub model: String,
    pub engine: String,
    pub figures: CallFigures,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EngineFigures {
    pub engine: String,
    pub figures: CallFigures,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AgentFigures {
    /// `None` for calls that no agent made.
    pub agent: Option<String>,
    pub figures: CallFigures,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DayFigures {
    pub day: UtcDay,
    pub figures: CallFigures,
}
