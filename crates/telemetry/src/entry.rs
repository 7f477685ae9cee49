//! An inference as the database stores it. External values are bounded here.

use hob_core::engine::CLOUD;
use hob_core::time::{Moment, microseconds};
use hob_core::{FinishReason, RequestSource};

use crate::call_record::CallOutcome;
use crate::inference::{Inference, InferenceEnd};
use crate::savings::Prices;

/// Bytes of a name that are stored. Clients choose the name of the model.
const MAX_NAME_BYTES: usize = 256;

/// Bytes of an error that are stored.
const MAX_ERROR_BYTES: usize = 2000;

/// No context is this long. An engine that reports more is wrong, and must not falsify the sums.
const MAX_TOKENS: i64 = 1_000_000_000;

/// The common key of calls that are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Series<'a> {
    pub(crate) engine: &'a str,
    pub(crate) model: &'a str,
    /// Empty for none.
    pub(crate) agent: &'a str,
    pub(crate) source: &'static str,
    /// Empty for none.
    pub(crate) key: &'a str,
}

#[derive(Debug)]
pub(crate) struct Entry<'a> {
    pub(crate) started: Moment,
    pub(crate) series: Series<'a>,
    pub(crate) run: &'a str,
    pub(crate) streamed: bool,
    pub(crate) prompt_tokens: i64,
    pub(crate) completion_tokens: i64,
    pub(crate) cached_tokens: Option<i64>,
    pub(crate) estimated: bool,
    pub(crate) latency_us: i64,
    pub(crate) first_token_us: Option<i64>,
    pub(crate) energy_uj: Option<i64>,
    pub(crate) outcome: CallOutcome,
    pub(crate) finish_reason: Option<&'a str>,
    pub(crate) error: Option<&'a str>,
    pub(crate) cost: Cost,
    pub(crate) end_user: Option<&'a str>,
    pub(crate) request_id: Option<&'a str>,
    pub(crate) route: Option<&'static str>,
    pub(crate) host: Option<&'a str>,
    pub(crate) queue_us: Option<i64>,
}

/// The price of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// Not a cloud call, or without result.
    Free,
    /// In 10⁻¹² dollars.
    Pico(i64),
    /// A model without a known price.
    Unknown,
}

impl<'a> Entry<'a> {
    pub(crate) fn of(inference: &'a Inference, prices: &Prices) -> Self {
        let (outcome, finish_reason, error) = match &inference.ending {
            InferenceEnd::Complete(reason) => (CallOutcome::Complete, Some(reason.recorded()), None),
            InferenceEnd::Cancelled => (CallOutcome::Cancelled, None, None),
            InferenceEnd::Failed(words) => (CallOutcome::Failed, None, Some(words.as_str())),
        };
        let usage = &inference.usage;
        let mut entry = Entry {
            started: Moment::of(inference.started),
            series: Series {
                engine: cut(&inference.engine, MAX_NAME_BYTES),
                model: cut(&inference.model, MAX_NAME_BYTES),
                agent: cut(inference.agent.as_deref().unwrap_or_default(), MAX_NAME_BYTES),
                source: inference.source.as_str(),
                key: cut(inference.key.as_deref().unwrap_or_default(), MAX_NAME_BYTES),
            },
            run: cut(&inference.run, MAX_NAME_BYTES),
            streamed: inference.streamed,
            prompt_tokens: tokens(usage.prompt_tokens),
            completion_tokens: tokens(usage.completion_tokens),
            cached_tokens: usage.cached_tokens.map(tokens),
            estimated: inference.estimated,
            latency_us: microseconds(inference.latency),
            first_token_us: inference.first_token.map(microseconds),
            energy_uj: inference.energy.map(|energy| energy.microjoules().try_into().unwrap_or(i64::MAX)),
            outcome,
            finish_reason: finish_reason.map(|reason| cut(reason, MAX_NAME_BYTES)),
            error: error.map(|words| cut(words, MAX_ERROR_BYTES)),
            cost: Cost::Free,
            end_user: inference.end_user.as_deref().map(|user| cut(user, MAX_NAME_BYTES)),
            request_id: inference.details.request_id.as_deref().map(|id| cut(id, MAX_NAME_BYTES)),
            route: inference.details.route,
            host: inference.details.host.as_deref().map(|host| cut(host, MAX_NAME_BYTES)),
            queue_us: inference.details.queued.map(microseconds),
        };
        entry.cost = entry.price(prices);
        entry
    }

    /// Whether it replaced a cloud call. Failed calls and benchmarks did not.
    pub(crate) fn saves(&self) -> bool {
        let Series { engine, source, .. } = self.series;
        engine != CLOUD && source != RequestSource::Bench.as_str() && self.outcome != CallOutcome::Failed
    }

    /// Whether its tokens count. Those of a failed call do not, except if they cost money: the cloud charges for the part before
    /// a stream broke or the caller disconnected.
    pub(crate) fn used_tokens(&self) -> bool {
        let had_begun = self.first_token_us.is_some();
        self.outcome != CallOutcome::Failed || self.series.engine == CLOUD && had_begun
    }

    fn price(&self, prices: &Prices) -> Cost {
        if self.series.engine != CLOUD || !self.used_tokens() {
            return Cost::Free;
        }
        let Some(price) = prices.of(self.series.model) else { return Cost::Unknown };
        let cost = price.of_input(self.prompt_tokens.unsigned_abs())
            + price.of_output(self.completion_tokens.unsigned_abs());
        Cost::Pico(i64::try_from(cost.pico()).unwrap_or(i64::MAX))
    }
}

/// Shortens texts before they wait in the queue, whose limit is a number of records.
pub(crate) fn shorten(inference: &mut Inference) {
    cut_in_place(&mut inference.engine, MAX_NAME_BYTES);
    cut_in_place(&mut inference.model, MAX_NAME_BYTES);
    if let Some(agent) = &mut inference.agent {
        cut_in_place(agent, MAX_NAME_BYTES);
    }
    match &mut inference.ending {
        InferenceEnd::Failed(words) => cut_in_place(words, MAX_ERROR_BYTES),
        InferenceEnd::Complete(FinishReason::Other(reason)) => cut_in_place(reason, MAX_NAME_BYTES),
        InferenceEnd::Complete(_) | InferenceEnd::Cancelled => {}
    }
}

fn cut(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

fn cut_in_place(text: &mut String, longest: usize) {
    if text.len() > longest {
        *text = cut(text, longest).to_owned();
    }
}

fn tokens(count: u64) -> i64 {
    i64::try_from(count).map_or(MAX_TOKENS, |count| count.min(MAX_TOKENS))
}
