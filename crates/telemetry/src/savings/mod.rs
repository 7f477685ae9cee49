//! What local answers would have cost in the cloud, and what the cloud did cost. Plain arithmetic: knows no database.

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

/// Prices are for so many tokens.
const MILLION: u64 = 1_000_000;

/// So many models are told of one by one; all of them are in the totals.
const MOST_MODELS: usize = 100;

/// What was answered, as far as savings depend on it.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ServedTotals {
    /// When the first call was made.
    pub since: Option<Moment>,
    /// What local engines answered. Failed calls and those of `bench` are not in it: in the cloud they would not have been made.
    pub models: Vec<ServedModel>,
    /// How long that took in the last 30 days.
    pub timings: CallTimings,
    /// When it was, over the last 30 days and a little more, oldest first.
    pub quarters: Vec<Quarter>,
    /// What calls to the cloud cost, as far as their price is known.
    pub cloud_cost: Dollars,
    /// What calls used of this machine's energy, as far as it was measured.
    pub energy: Option<MeasuredEnergy>,
    /// The last calls, newest first.
    pub recent: Vec<CallRecord>,
}

/// What some calls used, by the count of the machine's own meters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MeasuredEnergy {
    pub energy: Energy,
    /// How many calls were measured.
    pub calls: u64,
}

/// What one model on one local engine answered.
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

/// What was saved: most of the body of `GET /v1/savings`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Savings {
    /// Calls that local engines answered, as are all the totals.
    pub total_calls: u64,
    pub total_prompt_tokens: u64,
    pub total_completion_tokens: u64,
    pub total_tokens: u64,
    /// What was spent all the same: on calls to the cloud.
    pub local_cost: Dollars,
    /// When the first call was made; null when there was none.
    pub since: Option<Moment>,
    pub prices_as_of: &'static str,
    pub per_provider: Vec<ProviderSavings>,
    pub per_model: Vec<ModelSavings>,
    /// Told apart from the sums: not everybody who may see those may see these.
    #[serde(skip)]
    pub recent: Vec<RecentCall>,
    /// How long local answers took in the last 30 days, from the question to the last word.
    pub latency: Option<LatencySummary>,
    /// The same until the first word, of those that were streamed.
    pub first_token: Option<LatencySummary>,
    pub over_time: OverTime,
    /// Told together with the meters, which the record does not know; `None` when nothing was measured.
    #[serde(skip)]
    pub energy: Option<MeasuredEnergy>,
}

/// What the local answers would have cost at one provider.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProviderSavings {
    pub provider: &'static str,
    pub label: String,
    /// Dollars for a million tokens.
    pub input_price: Dollars,
    pub output_price: Dollars,
    pub input_cost: Dollars,
    pub output_cost: Dollars,
    pub total_cost: Dollars,
}

/// One model's part in the totals.
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

/// A call as it is shown: without the run it belongs to, and without an engine's error. Times are in seconds.
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

/// Compares what was served with the prices of the cloud.
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
        per_model: models.into_iter().take(MOST_MODELS).map(ModelSavings::from).collect(),
        recent: recent.into_iter().map(RecentCall::from).collect(),
        latency: timings.latency,
        first_token: timings.first_token,
        over_time: over_time(&quarters, now, zone),
        energy,
    }
}

/// Engines count tokens, and an engine may count nonsense.
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
