//! The body of `POST /v1/chat/completions`: as typed → as resolved.

use std::num::NonZeroU32;

use hob_core::{GenerateRequest, MaxTokens, ResponseFormat, Sampling, Temperature};
use hob_system::AgentWish;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::message::WireMessage;
use super::read::{read, required_model};
use super::tools::{Offered, WireFormat, WireTool, tool_choice};
use crate::error::ApiError;

/// How the caller wants the answer.
#[derive(Debug, PartialEq)]
pub(crate) enum Reply {
    Whole,
    Streamed { include_usage: bool },
}

/// A request that makes sense.
#[derive(Debug, PartialEq)]
pub(crate) struct ChatRequest {
    pub(crate) request: GenerateRequest,
    pub(crate) reply: Reply,
    pub(crate) agent: AgentWish,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireRequest {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    messages: Option<Vec<WireMessage>>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    max_tokens: Option<i64>,
    /// The newer name of the same.
    #[serde(default)]
    max_completion_tokens: Option<i64>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    stream_options: Option<StreamOptions>,
    #[serde(default)]
    tools: Option<Vec<WireTool>>,
    #[serde(default)]
    tool_choice: Option<Value>,
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(default)]
    response_format: Option<WireFormat>,
    #[serde(default)]
    stop: Option<Stop>,
    #[serde(default)]
    seed: Option<i64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    n: Option<i64>,
    #[serde(default)]
    presence_penalty: Option<f64>,
    #[serde(default)]
    frequency_penalty: Option<f64>,
    #[serde(default)]
    logprobs: Option<bool>,
    #[serde(default)]
    top_logprobs: Option<i64>,
    /// Our own: which agent answers this request, also as a stream.
    #[serde(default)]
    agent: Option<String>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct StreamOptions {
    #[serde(default)]
    include_usage: Option<bool>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
enum Stop {
    One(String),
    Several(Vec<String>),
}

/// More answers than this to one question is a mistake.
const MAX_ANSWERS: i64 = 128;

const MAX_TOP_LOGPROBS: i64 = 20;

impl ChatRequest {
    /// Reads a body; the error names the field at fault.
    pub(crate) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        read::<WireRequest>(body)?.resolve()
    }
}

impl WireRequest {
    fn resolve(self) -> Result<ChatRequest, ApiError> {
        let model = required_model(self.model)?;
        let wire_messages =
            self.messages.ok_or_else(|| ApiError::invalid("messages", "'messages' is required"))?;
        if wire_messages.is_empty() {
            return Err(ApiError::invalid("messages", "'messages' must not be empty"));
        }
        let mut messages = Vec::with_capacity(wire_messages.len());
        for (index, message) in wire_messages.into_iter().enumerate() {
            messages.push(message.resolve(&format_args!("messages[{index}]"))?);
        }
        let mut tools = Vec::new();
        for (index, tool) in self.tools.into_iter().flatten().enumerate() {
            tools.push(tool.resolve(index)?);
        }
        let agent = match self.agent.as_deref() {
            None => AgentWish::Configured,
            Some("" | "none") => AgentWish::None,
            Some(name) => AgentWish::Named(name.to_owned()),
        };
        let offered = match &agent {
            AgentWish::Named(_) if tools.is_empty() => Offered::ByAgent,
            AgentWish::Named(_) | AgentWish::Configured | AgentWish::None => Offered::Brought(&tools),
        };
        let tool_choice = match &self.tool_choice {
            None | Some(Value::Null) => None,
            Some(choice) => Some(tool_choice(choice, offered)?),
        };
        let temperature = self.temperature.map(Temperature::new).transpose();
        let temperature = temperature.map_err(|error| ApiError::invalid("temperature", error.to_string()))?;
        let (length_field, length) = match self.max_completion_tokens {
            Some(length) => ("max_completion_tokens", Some(length)),
            None => ("max_tokens", self.max_tokens),
        };
        let length = within(length_field, length, 1..=i64::from(u32::MAX))?;
        let max_tokens = length.map(MaxTokens::new).transpose();
        let max_tokens = max_tokens.map_err(|error| ApiError::invalid(length_field, error.to_string()))?;
        let mut extra = self.extra;
        extra.retain(|_, value| !value.is_null());

        let sampling = Sampling {
            top_p: within("top_p", self.top_p, 0.0..=1.0)?,
            stop: match self.stop {
                None => Vec::new(),
                Some(Stop::One(stop)) => vec![stop],
                Some(Stop::Several(stops)) => stops,
            },
            seed: self.seed,
            presence_penalty: within("presence_penalty", self.presence_penalty, -2.0..=2.0)?,
            frequency_penalty: within("frequency_penalty", self.frequency_penalty, -2.0..=2.0)?,
            n: within("n", self.n, 1..=MAX_ANSWERS)?.and_then(|n| NonZeroU32::new(u32::try_from(n).ok()?)),
            logprobs: self.logprobs.unwrap_or(false),
            top_logprobs: within("top_logprobs", self.top_logprobs, 0..=MAX_TOP_LOGPROBS)?
                .and_then(|count| u32::try_from(count).ok()),
        };
        let request = GenerateRequest {
            model,
            messages,
            temperature,
            max_tokens,
            sampling,
            tools,
            tool_choice,
            parallel_tool_calls: self.parallel_tool_calls,
            response_format: self.response_format.map_or(Ok(ResponseFormat::Text), WireFormat::resolve)?,
            extra,
        };
        let include_usage = self.stream_options.and_then(|options| options.include_usage).unwrap_or(false);
        let reply =
            if self.stream.unwrap_or(false) { Reply::Streamed { include_usage } } else { Reply::Whole };
        Ok(ChatRequest { request, reply, agent })
    }
}

fn within<T: PartialOrd + std::fmt::Display>(
    field: &str,
    value: Option<T>,
    range: std::ops::RangeInclusive<T>,
) -> Result<Option<T>, ApiError> {
    match value {
        Some(value) if !range.contains(&value) => {
            let (least, most) = (range.start(), range.end());
            Err(ApiError::invalid(field, format!("{field} must be between {least} and {most}, got {value}")))
        }
        value => Ok(value),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
