//! What local answers would have cost in the cloud, and the price of cloud calls. Pure.

mod dollars;
mod over_time;
mod prices;

use std::time::Duration;

use hob_core::time::{Moment, Zone, as_seconds, as_seconds_if_known};
use serde::Serialize;

pub use dollars::Dollars;
use over_time::over_time;
pub use over_time::{OverTime, Quarter, TimeSlice};
pub use prices::{Price, PricedModel, Prices};

use crate::call_record::{CallOutcome, CallRecord};
use crate::inference::Energy;
use crate::timings::{CallTimings, LatencySummary};

/// Prices are per million tokens.
const MILLION: u64 = 1_000_000;

/// The number of models that are listed; the totals include all.
const MAX_MODELS: usize = 100;

/// The input of the savings.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServedTotals {
    /// The first call.
    pub since: Option<Moment>,
    /// Answers of local engines, without failed calls and benchmarks, which would not have been made in the cloud.
    pub models: Vec<ServedModel>,
    /// Of the last 30 days.
    pub timings: CallTimings,
    /// The last 30 days and a little more, oldest first.
    pub quarters: Vec<Quarter>,
    /// The price of cloud calls, if known.
    pub cloud_cost: Dollars,
    /// The measured energy.
    pub energy: Option<MeasuredEnergy>,
    /// The last calls, newest first.
    pub recent: Vec<CallRecord>,
}

/// The energy of the measured calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredEnergy {
    pub energy: Energy,
    /// The number of measured calls.
    pub calls: u64,
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ServedModel {
    pub model: String,
    pub engine: String,
    pub calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// Of the last 30 days.
    pub timings: CallTimings,
}

/// Most of the body of `GET /v1/savings`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Savings {
    /// Local calls, like all totals.
    pub total_calls: u64,
    pub total_prompt_tokens: u64,
    pub total_completion_tokens: u64,
    pub total_tokens: u64,
    /// The price of cloud calls.
    pub local_cost: Dollars,
    /// The first call, or null.
    pub since: Option<Moment>,
    pub prices_as_of: &'static str,
    pub per_provider: Vec<ProviderSavings>,
    pub per_model: Vec<ModelSavings>,
    /// Separate from the sums, because not every caller may see it.
    #[serde(skip)]
    pub recent: Vec<RecentCall>,
    /// The latency of local answers in the last 30 days, to the end of the answer.
    pub latency: Option<LatencySummary>,
    /// To the first token, of streams.
    pub first_token: Option<LatencySummary>,
    pub over_time: OverTime,
    /// Reported together with the meters; `None` if nothing was measured.
    #[serde(skip)]
    pub energy: Option<MeasuredEnergy>,
}

/// What the local answers would have cost at one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderSavings {
    pub provider: &'static str,
    pub label: String,
    /// Per million tokens.
    pub input_price: Dollars,
    pub output_price: Dollars,
    pub input_cost: Dollars,
    pub output_cost: Dollars,
    pub total_cost: Dollars,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ModelSavings {
    pub model: String,
    pub engine: String,
    pub calls: u64,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
    /// As in [`Savings`].
    pub latency: Option<LatencySummary>,
    pub first_token: Option<LatencySummary>,
}

/// A call for display: without its run and its error. Times are in seconds.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RecentCall {
    pub at: Moment,
    pub engine: String,
    pub model: String,
    pub agent: Option<String>,
    pub source: String,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub total_tokens: u64,
    #[serde(serialize_with = "as_seconds")]
    pub latency: Duration,
    #[serde(serialize_with = "as_seconds_if_known")]
    pub first_token: Option<Duration>,
    pub ending: CallOutcome,
}

/// Compares local answers with cloud prices.
pub fn savings(served: ServedTotals, prices: &Prices, now: Moment, zone: &Zone) -> Savings {
    let ServedTotals { since, models, timings, quarters, cloud_cost, energy, recent } = served;
    let total_prompt_tokens = sum(models.iter().map(|model| model.prompt_tokens));
    let total_completion_tokens = sum(models.iter().map(|model| model.completion_tokens));
    let at = |model: &PricedModel| {
        let input_cost = model.price.of_input(total_prompt_tokens);
        let output_cost = model.price.of_output(total_completion_tokens);
        ProviderSavings {
            provider: model.provider,
            label: model.label.clone(),
            input_price: model.price.of_input(MILLION),
            output_price: model.price.of_output(MILLION),
            input_cost,
            output_cost,
            total_cost: input_cost + output_cost,
        }
    };
    Savings {
        total_calls: sum(models.iter().map(|model| model.calls)),
        total_prompt_tokens,
        total_completion_tokens,
        total_tokens: total_prompt_tokens.saturating_add(total_completion_tokens),
        local_cost: cloud_cost,
        since,
        prices_as_of: prices.as_of(),
        per_provider: prices.models().iter().map(at).collect(),
        per_model: models.into_iter().take(MAX_MODELS).map(ModelSavings::from).collect(),
        recent: recent.into_iter().map(RecentCall::from).collect(),
        latency: timings.latency,
        first_token: timings.first_token,
        over_time: over_time(&quarters, now, zone),
        energy,
    }
}

/// Saturating, because an engine may report anything.
fn sum(numbers: impl Iterator<Item = u64>) -> u64 {
    numbers.fold(0, u64::saturating_add)
}

impl From<ServedModel> for ModelSavings {
    fn from(served: ServedModel) -> Self {
        let ServedModel { model, engine, calls, prompt_tokens, completion_tokens, timings } = served;
        let total_tokens = prompt_tokens.saturating_add(completion_tokens);
        let CallTimings { latency, first_token } = timings;
        ModelSavings {
            model,
            engine,
            calls,
            prompt_tokens,
            completion_tokens,
            total_tokens,
            latency,
            first_token,
        }
    }
}

impl From<CallRecord> for RecentCall {
    fn from(call: CallRecord) -> Self {
        RecentCall {
            at: call.started,
            engine: call.engine,
            model: call.model,
            agent: call.agent,
            source: call.source,
            prompt_tokens: call.prompt_tokens,
            completion_tokens: call.completion_tokens,
            total_tokens: call.prompt_tokens.saturating_add(call.completion_tokens),
            latency: call.latency,
            first_token: call.first_token,
            ending: call.outcome,
        }
    }
}

#[cfg(test)]
#[path = "savings_tests.rs"]
mod tests;
