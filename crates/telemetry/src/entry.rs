//! An inference in the database's terms. What came from outside is brought within bounds here, and nowhere else.

use hob_core::engine::CLOUD;
use hob_core::time::{Moment, microseconds};
use hob_core::{FinishReason, RequestSource};

use crate::call_record::CallOutcome;
use crate::inference::{Inference, InferenceEnd};
use crate::savings::Prices;

/// Bytes kept of a name. Clients choose the model's, and might send a novel.
const LONGEST_NAME: usize = 256;

/// Bytes kept of an engine's error.
const LONGEST_ERROR: usize = 2000;

/// No context is so long. An engine that reports more is mistaken, and must not spoil the sums.
const MOST_TOKENS: i64 = 1_000_000_000;

/// What calls have in common that are summed together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Series<'a> {
    pub(crate) engine: &'a str,
    pub(crate) model: &'a str,
    /// Empty for none.
    pub(crate) agent: &'a str,
    pub(crate) source: &'static str,
}

/// A row to be.
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
}

/// What a call cost.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cost {
    /// It did not go to the cloud, or came to nothing.
    Free,
    /// In millionths of a millionth of a dollar.
    Pico(i64),
    /// It went to a model whose price we do not know.
    Unknown,
}

impl<'a> Entry<'a> {
    pub(crate) fn of(inference: &'a Inference, prices: &Prices) -> Self {
        let (outcome, finish_reason, error) = match &inference.ending {
            InferenceEnd::Complete(reason) => (CallOutcome::Complete, Some(reason.as_str()), None),
            InferenceEnd::Cancelled => (CallOutcome::Cancelled, None, None),
            InferenceEnd::Failed(words) => (CallOutcome::Failed, None, Some(words.as_str())),
        };
        let usage = &inference.usage;
        let mut entry = Entry {
            started: Moment::of(inference.started),
            series: Series {
                engine: cut(&inference.engine, LONGEST_NAME),
                model: cut(&inference.model, LONGEST_NAME),
                agent: cut(inference.agent.as_deref().unwrap_or_default(), LONGEST_NAME),
                source: inference.source.as_str(),
            },
            run: cut(&inference.run, LONGEST_NAME),
            streamed: inference.streamed,
            prompt_tokens: tokens(usage.prompt_tokens),
            completion_tokens: tokens(usage.completion_tokens),
            cached_tokens: usage.cached_tokens.map(tokens),
            estimated: inference.estimated,
            latency_us: microseconds(inference.latency),
            first_token_us: inference.first_token.map(microseconds),
            energy_uj: inference.energy.map(|energy| energy.microjoules().try_into().unwrap_or(i64::MAX)),
            outcome,
            finish_reason: finish_reason.map(|reason| cut(reason, LONGEST_NAME)),
            error: error.map(|words| cut(words, LONGEST_ERROR)),
            cost: Cost::Free,
        };
        entry.cost = entry.price(prices);
        entry
    }

    /// Whether it replaced a call to the cloud. A failed call or a measurement did not.
    pub(crate) fn saves(&self) -> bool {
        let Series { engine, source, .. } = self.series;
        engine != CLOUD && source != RequestSource::Bench.as_str() && self.outcome != CallOutcome::Failed
    }

    /// Whether its tokens count. Those of a call that failed do not, except where they are to be paid for: the cloud charges
    /// for what it wrote before a stream broke, as it does when the caller disconnects.
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

/// Shortens what may be long before it waits in a queue, whose bound would otherwise be one of number only.
pub(crate) fn shorten(inference: &mut Inference) {
    cut_in_place(&mut inference.engine, LONGEST_NAME);
    cut_in_place(&mut inference.model, LONGEST_NAME);
    if let Some(agent) = &mut inference.agent {
        cut_in_place(agent, LONGEST_NAME);
    }
    match &mut inference.ending {
        InferenceEnd::Failed(words) => cut_in_place(words, LONGEST_ERROR),
        InferenceEnd::Complete(FinishReason::Other(reason)) => cut_in_place(reason, LONGEST_NAME),
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
    i64::try_from(count).map_or(MOST_TOKENS, |count| count.min(MOST_TOKENS))
}
