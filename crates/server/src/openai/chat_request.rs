//! The body of `POST /v1/chat/completions`: as typed → as resolved.

use std::num::NonZeroU32;

use hob_core::request_budget::{self, ANSWERS, MESSAGES, TOP_LOGPROBS};
use hob_core::{
    AgentPreference, AnswerWarning, GenerateRequest, MaxTokens, OverBudget, ResponseFormat, Sampling,
    Temperature, ToolChoice, ToolDefinition,
};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::chat_response::CallForm;
use super::ignored_fields::IgnoredFields;
use super::message::{LastCalls, WireMessage};
use super::required_model;
use super::tools::{
    ToolSource, WireFormat, WireFunction, WireTool, allowed_tools, legacy_choice, tool_choice,
};
use crate::error::{ApiError, ApiResult};
use crate::json::{over_budget, read};
use crate::whole_number::WholeNumber;

/// Whether the answer is one body or a stream.
#[derive(Debug, PartialEq)]
pub(crate) enum ResponseMode {
    Whole,
    Streamed { include_usage: bool },
}

/// A valid request.
#[derive(Debug, PartialEq)]
pub(crate) struct ChatRequest {
    pub(crate) request: GenerateRequest,
    pub(crate) mode: ResponseMode,
    pub(crate) agent: AgentPreference,
    /// The form of calls in the answer, which is the form in the request.
    pub(crate) calls: CallForm,
    /// The collections that the caller names; `None` without documents, and an empty list for all.
    pub(crate) documents: Option<Vec<String>>,
    /// Whether the answer has the calls of tools.
    pub(crate) steps: bool,
    /// The tools that the agent may use; `None` for all that the caller may use.
    pub(crate) agent_tools: Option<Vec<String>>,
    /// Fields of the request that have no effect.
    pub(crate) warnings: Vec<AnswerWarning>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireRequest {
    model: Option<String>,
    messages: Option<Vec<WireMessage>>,
    temperature: Option<f64>,
    max_tokens: Option<WholeNumber>,
    /// The newer name of `max_tokens`.
    max_completion_tokens: Option<WholeNumber>,
    stream: Option<bool>,
    stream_options: Option<StreamOptions>,
    tools: Option<Vec<WireTool>>,
    tool_choice: Option<Value>,
    /// The older names of `tools` and `tool_choice`.
    functions: Option<Vec<WireFunction>>,
    function_call: Option<Value>,
    parallel_tool_calls: Option<bool>,
    response_format: Option<WireFormat>,
    stop: Option<Stop>,
    seed: Option<WholeNumber>,
    top_p: Option<f64>,
    n: Option<WholeNumber>,
    presence_penalty: Option<f64>,
    frequency_penalty: Option<f64>,
    logprobs: Option<bool>,
    top_logprobs: Option<WholeNumber>,
    /// Hob's own field: the agent that answers this request, also as a stream.
    agent: Option<String>,
    /// Hob's own field: passages of the memory, of these collections or of all that the caller may read.
    documents: Option<WantedDocuments>,
    /// Hob's own field: the calls of tools that an agent makes are part of the answer.
    steps: Option<bool>,
    /// Hob's own field: the tools that the agent may use.
    agent_tools: Option<Vec<String>>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct StreamOptions {
    pub(super) include_usage: Option<bool>,
    #[serde(flatten)]
    pub(super) rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected true, false or an array of collections")]
enum WantedDocuments {
    Switch(bool),
    Collections(Vec<String>),
}

impl WantedDocuments {
    fn into_names(self) -> Option<Vec<String>> {
        match self {
            WantedDocuments::Switch(is_on) => is_on.then(Vec::new),
            WantedDocuments::Collections(names) => Some(names),
        }
    }
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of strings")]
pub(super) enum Stop {
    One(String),
    Several(Vec<String>),
}

impl Stop {
    pub(super) fn into_list(self) -> Vec<String> {
        match self {
            Stop::One(stop) => vec![stop],
            Stop::Several(stops) => stops,
        }
    }
}

impl ChatRequest {
    /// Parses a body. The error names the field.
    pub(crate) fn parse(body: &[u8]) -> ApiResult<Self> {
        let chat = read::<WireRequest>(body)?.resolve()?;
        request_budget::check_request(&chat.request)
            .map_err(|over| over_budget(as_written(over, chat.calls)))?;
        Ok(chat)
    }
}

/// Names a field of a tool in the form of the request.
fn as_written(over: OverBudget, calls: CallForm) -> OverBudget {
    match over.field.strip_prefix("tools") {
        Some(rest) if calls == CallForm::Function => {
            OverBudget { field: format!("functions{}", rest.replace(".function", "")), ..over }
        }
        _ => over,
    }
}

/// The tools of a request, and the choice among them.
struct Callable {
    tools: Vec<ToolDefinition>,
    choice: Option<ToolChoice>,
    form: CallForm,
}

impl WireRequest {
    fn resolve(mut self) -> ApiResult<ChatRequest> {
        let mut ignored = IgnoredFields::default();
        let model = required_model(self.model.take())?;
        let wire_messages =
            self.messages.take().ok_or_else(|| ApiError::invalid("messages", "'messages' is required"))?;
        if wire_messages.is_empty() {
            return Err(ApiError::invalid("messages", "'messages' must not be empty"));
        }
        if wire_messages.len() > MESSAGES {
            let over = OverBudget::too_many("messages", wire_messages.len(), "messages", MESSAGES);
            return Err(over_budget(over));
        }
        let mut messages = Vec::with_capacity(wire_messages.len());
        let mut calls = LastCalls::default();
        for (index, message) in wire_messages.into_iter().enumerate() {
            let message = message.resolve(index, &messages, &mut calls, &mut ignored)?;
            messages.push(message);
        }
        let agent = AgentPreference::of_field(self.agent.take());
        let Callable { tools, choice: tool_choice, form: calls } = self.callable(&agent, &mut ignored)?;
        let temperature = self.temperature.map(Temperature::new).transpose();
        let temperature = temperature.map_err(|error| ApiError::invalid("temperature", error.to_string()))?;
        let lengths = 1..=i64::from(u32::MAX);
        let newer = whole_within("max_completion_tokens", self.max_completion_tokens, lengths.clone())?;
        let older = whole_within("max_tokens", self.max_tokens, lengths)?;
        if newer.is_some() && older.is_some() && newer != older {
            ignored.note("max_tokens");
        }
        let (length_field, length) = match newer {
            Some(_) => ("max_completion_tokens", newer),
            None => ("max_tokens", older),
        };
        let max_tokens = length.map(MaxTokens::new).transpose();
        let max_tokens = max_tokens.map_err(|error| ApiError::invalid(length_field, error.to_string()))?;
        let sampling = self.sampling()?;
        let response_format = match self.response_format {
            None => ResponseFormat::Text,
            Some(format) => format.resolve(&mut ignored)?,
        };
        let mut include_usage = false;
        if let Some(options) = &self.stream_options {
            include_usage = options.include_usage.unwrap_or(false);
            ignored.note_all("stream_options", &options.rest);
        }
        let mode = if self.stream.unwrap_or(false) {
            ResponseMode::Streamed { include_usage }
        } else {
            ResponseMode::Whole
        };
        let documents = self.documents.and_then(WantedDocuments::into_names);
        let steps = self.steps.unwrap_or(false);
        let agent_tools = self.agent_tools;
        let mut extra = self.extra;
        extra.retain(|field, value| !means_nothing(field, value));
        let request = GenerateRequest {
            model,
            messages,
            temperature,
            max_tokens,
            sampling,
            tools,
            tool_choice,
            parallel_tool_calls: self.parallel_tool_calls,
            response_format,
            extra,
            ..GenerateRequest::default()
        };
        let warnings = ignored.into_warnings();
        Ok(ChatRequest { request, mode, agent, calls, documents, steps, agent_tools, warnings })
    }

    /// Reads `tools`, or the older `functions`.
    fn callable(&mut self, agent: &AgentPreference, ignored: &mut IgnoredFields) -> ApiResult<Callable> {
        let mut tools = Vec::new();
        for (index, tool) in self.tools.take().into_iter().flatten().enumerate() {
            tools.push(tool.resolve(index, ignored)?);
        }
        let functions = self.functions.take().filter(|functions| !functions.is_empty());
        let function_call = self.function_call.take().filter(|choice| !choice.is_null());
        let form = match functions.is_some() || (function_call.is_some() && tools.is_empty()) {
            true => CallForm::Function,
            false => CallForm::Tools,
        };
        if functions.is_some() && !tools.is_empty() {
            let message = "'functions' is the older name of 'tools'; send one of them";
            return Err(ApiError::invalid("functions", message));
        }
        for (index, function) in functions.into_iter().flatten().enumerate() {
            tools.push(function.resolve_legacy(index, ignored)?);
        }
        let choice = match (&self.tool_choice, &function_call) {
            (None | Some(Value::Null), None) => None,
            (None | Some(Value::Null), Some(choice)) => Some(legacy_choice(choice, &tools)?),
            (Some(choice), function_call) => {
                if function_call.is_some() {
                    ignored.note("function_call");
                }
                Some(match allowed_tools(choice)? {
                    Some(allowed) => allowed.choose(&mut tools)?,
                    None => tool_choice(choice, ToolSource::of(agent, &tools))?,
                })
            }
        };
        Ok(Callable { tools, choice, form })
    }

    fn sampling(&mut self) -> ApiResult<Sampling> {
        let n = whole_within("n", self.n, 1..=ANSWERS as i64)?;
        let top_logprobs = whole_within("top_logprobs", self.top_logprobs, 0..=TOP_LOGPROBS as i64)?;
        Ok(Sampling {
            top_p: within("top_p", self.top_p, 0.0..=1.0)?,
            stop: self.stop.take().map(Stop::into_list).unwrap_or_default(),
            seed: self.seed.map(|seed| seed.0),
            presence_penalty: within("presence_penalty", self.presence_penalty, -2.0..=2.0)?,
            frequency_penalty: within("frequency_penalty", self.frequency_penalty, -2.0..=2.0)?,
            n: n.and_then(|n| NonZeroU32::new(u32::try_from(n).ok()?)),
            logprobs: self.logprobs.unwrap_or(false),
            top_logprobs: top_logprobs.and_then(|count| u32::try_from(count).ok()),
        })
    }
}

/// Whether a field has its default meaning, so that no engine needs to support it.
pub(super) fn means_nothing(field: &str, value: &Value) -> bool {
    match (field, value) {
        (_, Value::Null) => true,
        ("logit_bias", Value::Object(biases)) => biases.is_empty(),
        ("modalities", Value::Array(kinds)) => kinds.iter().all(|kind| kind == "text"),
        _ => false,
    }
}

/// The same for a whole number.
pub(crate) fn whole_within(
    field: &str,
    value: Option<WholeNumber>,
    range: std::ops::RangeInclusive<i64>,
) -> ApiResult<Option<i64>> {
    within(field, value.map(|whole| whole.0), range)
}

/// The value, if it is in this range.
pub(crate) fn within<T: PartialOrd + std::fmt::Display>(
    field: &str,
    value: Option<T>,
    range: std::ops::RangeInclusive<T>,
) -> ApiResult<Option<T>> {
    match value {
        Some(value) if !range.contains(&value) => {
            let (least, most) = (range.start(), range.end());
            Err(ApiError::invalid(field, format!("{field} must be between {least} and {most}, got {value}")))
        }
        value => Ok(value),
    }
}

#[cfg(test)]
#[path = "chat_request_tests.rs"]
mod tests;
