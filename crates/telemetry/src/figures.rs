//! The sums in a report.

use hob_core::{Moment, UtcDay};
use serde::Serialize;

use crate::call_record::as_joules_if_known;
use crate::inference::Energy;
use crate::savings::Dollars;
use crate::timings::LatencySummary;

/// Sums of calls. A failed call counts as a call and a failure, with its energy; a broken cloud stream also with its tokens and
/// their price.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct CallFigures {
    pub calls: u64,
    pub failures: u64,
    pub cancelled: u64,
    /// Calls whose tokens Hob counted because the engine did not.
    pub estimated: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The part of `prompt_tokens` from a cache.
    pub cached_tokens: u64,
    /// Of completed calls.
    pub latency: Option<LatencySummary>,
    /// Of completed streams.
    pub first_token: Option<LatencySummary>,
    /// The price of cloud calls, if known.
    pub cost: Dollars,
    /// Cloud calls without a known price.
    pub unpriced: u64,
    /// The energy of the measured calls, if any.
    #[serde(rename = "energy_joules", serialize_with = "as_joules_if_known")]
    pub energy: Option<Energy>,
    /// The number of measured calls.
    pub measured: u64,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallOverview {
    /// The first recorded call.
    pub recorded_since: Option<Moment>,
    pub figures: CallFigures,
}

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
pub struct KeyFigures {
    /// `None` for calls without a named key.
    pub key: Option<String>,
    /// The day of its last call.
    pub last_day: Option<UtcDay>,
    pub figures: CallFigures,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DayFigures {
    pub day: UtcDay,
    pub figures: CallFigures,
}
