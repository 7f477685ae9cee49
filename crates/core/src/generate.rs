//! A request for an answer, and the answer.

use std::borrow::Cow;
use std::num::NonZeroU32;
use std::time::Duration;

use serde_json::{Map, Value};
use thiserror::Error;

use crate::answer_order::{LaterThought, Stretch};
use crate::finish_reason::FinishReason;
use crate::message::{Message, ToolCall};
use crate::reasoning::SealedReasoning;

/// A value outside what the contract allows.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum InvalidValue {
    #[error("temperature must be between 0.0 and 2.0, got {0}")]
    Temperature(f64),
    #[error("max_tokens must be at least 1, got {0}")]
    MaxTokens(i64),
}

/// Whether the answer is complete or a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyMode {
    Complete,
    Streamed,
}

/// Sampling temperature, 0.0 to 2.0.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Temperature(f64);

impl Temperature {
    pub fn new(value: f64) -> Result<Self, InvalidValue> {
        if (0.0..=2.0).contains(&value) {
            Ok(Temperature(value))
        } else {
            Err(InvalidValue::Temperature(value))
        }
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

impl Default for Temperature {
    fn default() -> Self {
        Temperature(0.7)
    }
}

/// The most tokens an answer may have; never zero.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MaxTokens(NonZeroU32);

impl MaxTokens {
    pub fn new(value: i64) -> Result<Self, InvalidValue> {
        u32::try_from(value)
            .ok()
            .and_then(NonZeroU32::new)
            .map(MaxTokens)
            .ok_or(InvalidValue::MaxTokens(value))
    }

    pub fn get(self) -> u32 {
        self.0.get()
    }
}

impl Default for MaxTokens {
    fn default() -> Self {
        MaxTokens(NonZeroU32::MIN.saturating_add(1023))
    }
}

/// A tool the model may call.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolDefinition {
    pub name: String,
    pub description: Option<String>,
    /// JSON Schema of the arguments; `None` for a tool without any.
    pub parameters: Option<Value>,
    /// Whether the arguments must follow the schema to the letter.
    pub strict: Option<bool>,
}

/// Whether, and which, tool must be called.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ToolChoice {
    Auto,
    None,
    Required,
    Function(String),
}

/// A schema the answer has to follow.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonSchema {
    pub name: String,
    pub description: Option<String>,
    pub schema: Value,
    pub strict: Option<bool>,
}

/// The form the answer has to take.
#[derive(Debug, Clone, PartialEq, Default)]
pub enum ResponseFormat {
    #[default]
    Text,
    JsonObject,
    JsonSchema(JsonSchema),
}

/// How tokens are chosen, beyond temperature. `None` and empty leave the engine's own default.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Sampling {
    pub top_p: Option<f64>,
    pub stop: Vec<String>,
    pub seed: Option<i64>,
    pub presence_penalty: Option<f64>,
    pub frequency_penalty: Option<f64>,
    /// How many answers to the same question.
    pub n: Option<NonZeroU32>,
    /// Whether to report the probability of each token.
    pub logprobs: bool,
    /// How many alternatives to report for each token.
    pub top_logprobs: Option<u32>,
}

/// The defaults for fields that a caller omits. `None` leaves the value to the engine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct AnswerDefaults {
    pub temperature: Option<Temperature>,
    pub max_tokens: Option<MaxTokens>,
}

impl Default for AnswerDefaults {
    fn default() -> Self {
        AnswerDefaults { temperature: Some(Temperature::default()), max_tokens: Some(MaxTokens::default()) }
    }
}

/// Everything an engine needs to answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct GenerateRequest {
    pub model: String,
    pub messages: Vec<Message>,
    /// As the caller gave it. [`Self::temperature`] has the default.
    pub temperature: Option<Temperature>,
    /// As the caller gave it. [`Self::max_tokens`] has the default.
    pub max_tokens: Option<MaxTokens>,
    /// The defaults if the caller gave neither, as the owner configured them. For a request without a limit, `max_tokens` is
    /// `None` here too.
    pub defaults: AnswerDefaults,
    pub sampling: Sampling,
    pub tools: Vec<ToolDefinition>,
    pub tool_choice: Option<ToolChoice>,
    pub parallel_tool_calls: Option<bool>,
    pub response_format: ResponseFormat,
    /// Fields of the caller's request that we give no meaning to. An engine of the same wire format passes them on; any
    /// other must refuse them by name, so that nothing is dropped silently.
    pub extra: Map<String, Value>,
    /// Optional preferences under their usual names (`top_k`, `num_ctx`, `reasoning_effort`). An engine that does not support one
    /// ignores it with a warning and never refuses it.
    pub hints: Map<String, Value>,
    /// The request in the format of Anthropic's API, if it came in that format. Only an engine with that API reads it; the other
    /// fields contain the same for all engines.
    pub anthropic: Map<String, Value>,
    /// Whether the limit may be lowered to what the engine supports.
    pub is_max_tokens_soft: bool,
}

impl GenerateRequest {
    /// The caller's, or else the default; `None` leaves it to the engine.
    pub fn temperature(&self) -> Option<f64> {
        self.temperature.or(self.defaults.temperature).map(Temperature::get)
    }

    /// The caller's, or else the default; `None` leaves it to the engine.
    pub fn max_tokens(&self) -> Option<u32> {
        self.max_tokens.or(self.defaults.max_tokens).map(MaxTokens::get)
    }

    /// How many answers are asked for.
    pub fn answers(&self) -> u32 {
        self.sampling.n.map_or(1, NonZeroU32::get)
    }
}

/// Whether a field describes the caller and does not affect the answer. Engines without such a field may ignore it.
pub fn is_annotation(field: &str) -> bool {
    matches!(
        field,
        "user"
            | "metadata"
            | "store"
            | "service_tier"
            | "safety_identifier"
            | "prompt_cache_key"
            | "prompt_cache_retention"
    )
}

/// Whether the chat-completions API documents a request field of this name. Such a field affects only the answer. It
pub fn is_documented_field(field: &str) -> bool {
    is_annotation(field)
        || matches!(
            field,
            "audio"
                | "function_call"
                | "functions"
                | "logit_bias"
                | "modalities"
                | "prediction"
                | "reasoning_effort"
                | "verbosity"
                | "web_search_options"
        )
}

/// The same for a field of a message. Clients also send back what a model thought, as they got it.
pub fn is_documented_message_field(field: &str) -> bool {
    matches!(
        field,
        "annotations"
            | "audio"
            | "function_call"
            | "reasoning"
            | "reasoning_content"
            | "refusal"
            | "thinking_blocks"
    )
}

/// The most tokens of a call that are believed. No call has so many, and those of millions of calls can be added up.
const MOST_TOKENS: u64 = 1 << 40;

/// Tokens read and written, and what the engine reports about them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    /// The part of the prompt that came from a cache, if the engine reports it.
    pub cached_tokens: Option<u64>,
    /// The part of the answer that the model thought; `None` if the engine does not report it.
    pub reasoning_tokens: Option<u64>,
    /// How long the model took to load before it answered; `None` if the engine does not report it.
    pub load_time: Option<Duration>,
}

impl Usage {
    /// The sum of both, as far as it is known.
    pub fn sum(one: Option<Self>, other: Option<Self>) -> Option<Self> {
        let (Some(one), Some(other)) = (one, other) else { return one.or(other) };
        let known = |one: Option<u64>, other: Option<u64>| match (one, other) {
            (Some(one), Some(other)) => Some(one.saturating_add(other)),
            (one, other) => one.or(other),
        };
        Some(Usage {
            prompt_tokens: one.prompt_tokens.saturating_add(other.prompt_tokens),
            completion_tokens: one.completion_tokens.saturating_add(other.completion_tokens),
            cached_tokens: known(one.cached_tokens, other.cached_tokens),
            reasoning_tokens: known(one.reasoning_tokens, other.reasoning_tokens),
            // A model that was loaded for one was loaded for the other.
            load_time: one.load_time.max(other.load_time),
        })
    }

    /// The same with counts that can be added up, also those of an engine that counts nonsense.
    pub fn plausible(self) -> Self {
        let most = |tokens: u64| tokens.min(MOST_TOKENS);
        Usage {
            prompt_tokens: most(self.prompt_tokens),
            completion_tokens: most(self.completion_tokens),
            cached_tokens: self.cached_tokens.map(most),
            reasoning_tokens: self.reasoning_tokens.map(most),
            load_time: self.load_time,
        }
    }

    pub fn total_tokens(&self) -> u64 {
        self.prompt_tokens.saturating_add(self.completion_tokens)
    }
}

/// What the caller should know about how the answer was made. Always reported, never an error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerWarning {
    /// The engine refused the tools and answered without them.
    ToolsDropped,
    /// The conversation was too long for the model, and results of tools were removed from it.
    ContextCompacted,
    /// The model repeated the same tool calls, so the run ended early.
    LoopStopped,
    /// The default model was not available, and `[intelligence] fallback_model` answered.
    FallbackModel,
    /// No local engine could answer, and the cloud did, as the owner allows.
    CloudFallback,
    /// A number that was asked for is an estimate, because the engine cannot count.
    Estimated,
    /// The engine compares no texts, and their vectors were compared instead.
    RerankedByEmbeddings,
    /// The answer ends after this many tokens at the latest, which is less than the caller allows.
    LengthLimited(u32),
    /// The request waited for its turn: its place in the queue when it came, and the expected wait then.
    Queued { position: usize, seconds: u64 },
    /// The caller asked for its documents, and none are indexed.
    NothingIndexed,
    /// A field of the request that has no effect on this answer, by its name.
    Ignored(String),
}

impl AnswerWarning {
    /// As clients read it, such as `ignored=store`.
    pub fn text(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            AnswerWarning::ToolsDropped => "tools-dropped",
            AnswerWarning::ContextCompacted => "context-compacted",
            AnswerWarning::LoopStopped => "loop-stopped",
            AnswerWarning::FallbackModel => "fallback-model",
            AnswerWarning::CloudFallback => "cloud-fallback",
            AnswerWarning::Estimated => "estimated",
            AnswerWarning::RerankedByEmbeddings => "reranked-by-embeddings",
            AnswerWarning::NothingIndexed => "nothing-indexed",
            AnswerWarning::LengthLimited(tokens) => return Cow::Owned(format!("max-tokens={tokens}")),
            AnswerWarning::Queued { position, seconds } => {
                return Cow::Owned(format!("position={position}, seconds={seconds}"));
            }
            AnswerWarning::Ignored(field) => return Cow::Owned(format!("ignored={field}")),
        })
    }
}

/// One finished answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Answer {
    pub content: String,
    /// The model's reasoning, if the engine returns it separately.
    pub reasoning: Option<String>,
    /// The parts of it that the provider requires back unchanged, including encrypted ones.
    pub sealed_reasoning: Vec<SealedReasoning>,
    /// Where the model thought again after it had begun its answer. Mostly empty: a model thinks first.
    pub later_thoughts: Vec<LaterThought>,
    pub tool_calls: Vec<ToolCall>,
    pub finish_reason: FinishReason,
    /// Token probabilities in the chat-completions form, when they were asked for.
    pub logprobs: Option<Value>,
}

impl Answer {
    /// Reasoning follows what the answer has now.
    pub fn begin_thought(&mut self) {
        let mut places = std::mem::take(&mut self.later_thoughts);
        self.undivided().note_thought(&mut places);
        self.later_thoughts = places;
    }

    /// Reasoning and text in the order in which the model wrote them.
    pub fn stretches(&self) -> Vec<Stretch<'_>> {
        let all = self.undivided();
        all.divided(&self.later_thoughts).unwrap_or_else(|| vec![all])
    }

    fn undivided(&self) -> Stretch<'_> {
        Stretch {
            reasoning: self.reasoning.as_deref().unwrap_or_default(),
            sealed: &self.sealed_reasoning,
            text: &self.content,
        }
    }
}

/// What an engine gives back.
#[derive(Debug, Clone, PartialEq)]
pub struct Generation {
    /// The model that answered.
    pub model: String,
    pub answer: Answer,
    /// The further answers when more than one was asked for (`n`).
    pub alternatives: Vec<Answer>,
    /// `None` when the engine does not count.
    pub usage: Option<Usage>,
    pub warnings: Vec<AnswerWarning>,
}

impl Generation {
    /// All answers in order.
    pub fn answers(&self) -> impl Iterator<Item = &Answer> {
        std::iter::once(&self.answer).chain(&self.alternatives)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn temperature_stays_between_zero_and_two() {
        assert_eq!(Temperature::new(0.0).map(Temperature::get), Ok(0.0));
        assert_eq!(Temperature::new(2.0).map(Temperature::get), Ok(2.0));
        assert_eq!(Temperature::new(2.1), Err(InvalidValue::Temperature(2.1)));
        assert_eq!(Temperature::new(-0.1), Err(InvalidValue::Temperature(-0.1)));
        assert!(Temperature::new(f64::NAN).is_err());
    }

    #[test]
    fn max_tokens_is_never_zero_and_fits() {
        assert_eq!(MaxTokens::new(1).map(MaxTokens::get), Ok(1));
        assert_eq!(MaxTokens::new(0), Err(InvalidValue::MaxTokens(0)));
        assert_eq!(MaxTokens::new(-5), Err(InvalidValue::MaxTokens(-5)));
        assert_eq!(MaxTokens::new(1 << 40), Err(InvalidValue::MaxTokens(1 << 40)));
    }

    #[test]
    fn what_the_caller_leaves_out_has_the_documented_default() {
        let request = GenerateRequest::default();
        assert_eq!(
            (request.temperature(), request.max_tokens(), request.answers()),
            (Some(0.7), Some(1024), 1)
        );
    }

    #[test]
    fn defaults_that_are_turned_off_leave_it_to_the_engine() {
        let defaults = AnswerDefaults { temperature: None, max_tokens: None };
        let request = GenerateRequest { defaults, ..GenerateRequest::default() };
        assert_eq!((request.temperature(), request.max_tokens()), (None, None));
        let request = GenerateRequest { temperature: Temperature::new(0.1).ok(), ..request };
        assert_eq!((request.temperature(), request.max_tokens()), (Some(0.1), None));
    }

    #[test]
    fn usage_is_summed_and_unknown_without_any_count() {
        let usage = |prompt_tokens, cached_tokens, reasoning_tokens| Usage {
            prompt_tokens,
            completion_tokens: 1,
            cached_tokens,
            reasoning_tokens,
            load_time: None,
        };
        assert_eq!(Usage::sum(None, None), None);
        let one = usage(2, None, Some(1));
        assert_eq!(Usage::sum(None, Some(one)), Some(one));
        let both = Usage {
            prompt_tokens: 5,
            completion_tokens: 2,
            cached_tokens: Some(4),
            reasoning_tokens: Some(2),
            load_time: None,
        };
        assert_eq!(Usage::sum(Some(one), Some(usage(3, Some(4), Some(1)))), Some(both));
    }

    #[test]
    fn an_engine_that_counts_nonsense_does_not_stop_an_answer() {
        let usage = Usage {
            prompt_tokens: u64::MAX,
            completion_tokens: 1,
            cached_tokens: None,
            reasoning_tokens: None,
            load_time: None,
        };
        assert_eq!(usage.total_tokens(), u64::MAX);
        assert_eq!(usage.plausible().prompt_tokens, MOST_TOKENS);
        assert_eq!(usage.plausible().completion_tokens, 1);
    }
}
