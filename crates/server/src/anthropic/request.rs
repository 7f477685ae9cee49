//! The body of `POST /v1/messages` and of `POST /v1/messages/count_tokens`: as typed → as resolved.

use hob_core::request_budget;
use hob_core::{
    AgentPreference, AnswerWarning, GenerateRequest, MaxTokens, OverBudget, REASONING_EFFORT, ResponseFormat,
    Sampling, Temperature, Unplaced, unplaced_field,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::blocks::WireContent;
use super::conversation::{Conversation, WireMessage};
use super::thinking::{ThinkingDisplay, ThinkingWish, WireThinking};
use super::tools::{WireFormat, WireTool, WireToolChoice, tools};
use crate::error::{ApiError, ApiResult};
use crate::json::{over_budget, read};
use crate::openai::chat_request::within;
use crate::openai::ignored_fields::IgnoredFields;
use crate::openai::required_model;
use crate::whole_number::WholeNumber;

/// A valid request.
#[derive(Debug, PartialEq)]
pub(crate) struct MessagesRequest {
    pub(crate) request: GenerateRequest,
    pub(crate) is_streamed: bool,
    pub(crate) agent: AgentPreference,
    pub(crate) display: ThinkingDisplay,
    /// Fields of the request that have no effect.
    pub(crate) warnings: Vec<AnswerWarning>,
}

/// Whether an answer is wanted, or only the number of tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Answer,
    Count,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireRequest {
    model: Option<String>,
    messages: Option<Vec<WireMessage>>,
    max_tokens: Option<WholeNumber>,
    system: Option<WireContent>,
    stream: Option<bool>,
    temperature: Option<f64>,
    top_p: Option<f64>,
    top_k: Option<WholeNumber>,
    stop_sequences: Option<Vec<String>>,
    tools: Option<Vec<WireTool>>,
    tool_choice: Option<WireToolChoice>,
    thinking: Option<WireThinking>,
    output_config: Option<OutputConfig>,
    /// The older place of `output_config.format`.
    output_format: Option<WireFormat>,
    metadata: Option<Metadata>,
    /// Hob's own field: the agent that answers this request.
    agent: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct OutputConfig {
    effort: Option<String>,
    format: Option<WireFormat>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// Describes the caller to the provider, and does not affect the answer.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Metadata {
    user_id: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl MessagesRequest {
    /// Parses a request for an answer. The error names the field.
    pub(crate) fn parse(body: &[u8]) -> ApiResult<Self> {
        read::<WireRequest>(body)?.resolve(Purpose::Answer)
    }

    /// Parses a request for the number of tokens, which needs no limit of an answer.
    pub(crate) fn parse_count(body: &[u8]) -> ApiResult<Self> {
        read::<WireRequest>(body)?.resolve(Purpose::Count)
    }
}

impl WireRequest {
    fn resolve(mut self, purpose: Purpose) -> ApiResult<MessagesRequest> {
        let mut ignored = IgnoredFields::default();
        let model = required_model(self.model.take())?;
        let max_tokens = self.max_tokens(purpose)?;
        let Some(messages) = self.messages.take() else {
            return Err(ApiError::invalid("messages", "messages: this field is required"));
        };
        let conversation = Conversation::read(self.system.take(), messages, &mut ignored)?;
        let agent = AgentPreference::of_field(self.agent.take());
        let tools = tools(self.tools.take().unwrap_or_default(), &conversation.found_tools, &mut ignored)?;
        let (tool_choice, parallel_tool_calls) = match self.tool_choice.take() {
            None => (None, None),
            Some(choice) => {
                let (choice, parallel) = choice.resolve(&tools, &agent, &mut ignored)?;
                (Some(choice), parallel)
            }
        };
        let (effort, response_format) = self.output(&mut ignored)?;
        let ThinkingWish { effort, display, fields: mut anthropic } =
            ThinkingWish::read(self.thinking.take(), effort, &mut ignored)?;
        let sampling = self.sampling()?;
        // Clients send these to every model, so an engine that cannot follow them does not refuse.
        let mut hints = Map::new();
        if let Some(effort) = effort {
            hints.insert(REASONING_EFFORT.to_owned(), Value::String(effort));
        }
        if let Some(WholeNumber(top_k)) = self.top_k {
            if top_k < 0 {
                return Err(ApiError::invalid("top_k", format!("top_k: it must be 0 or more, got {top_k}")));
            }
            hints.insert("top_k".to_owned(), Value::from(top_k));
        }
        if let Some(Metadata { user_id, rest }) = &self.metadata {
            ignored.note_all("metadata", rest);
            anthropic
                .extend(user_id.as_ref().map(|user| ("metadata".to_owned(), json!({ "user_id": user }))));
        }
        if let Some(tier) = self.rest.get("service_tier").filter(|tier| tier.is_string()) {
            anthropic.insert("service_tier".to_owned(), tier.clone());
        }
        let extra = self.place_rest(&mut ignored);
        let request = GenerateRequest {
            model,
            temperature: within("temperature", self.temperature, 0.0..=1.0)?
                .and_then(|temperature| Temperature::new(temperature).ok()),
            max_tokens,
            sampling,
            tools,
            tool_choice,
            parallel_tool_calls,
            response_format,
            extra,
            hints,
            anthropic,
            // One limit is sent to every model, also to those whose context is smaller.
            is_max_tokens_soft: true,
            ..GenerateRequest::default()
        };
        let mut request = within_budget(request, conversation)?;
        request.continue_last_message();
        Ok(MessagesRequest {
            request,
            is_streamed: self.stream.unwrap_or(false),
            agent,
            display,
            warnings: ignored.into_warnings(),
        })
    }

    fn max_tokens(&self, purpose: Purpose) -> ApiResult<Option<MaxTokens>> {
        let Some(WholeNumber(most)) = self.max_tokens else {
            return match purpose {
                Purpose::Answer => Err(ApiError::invalid("max_tokens", "max_tokens: this field is required")),
                Purpose::Count => Ok(None),
            };
        };
        let invalid = |_| {
            let message = format!("max_tokens: it must be between 1 and {}, got {most}", u32::MAX);
            ApiError::invalid("max_tokens", message)
        };
        MaxTokens::new(most).map(Some).map_err(invalid)
    }

    /// What `output_config` and the older `output_format` say.
    fn output(&mut self, ignored: &mut IgnoredFields) -> ApiResult<(Option<String>, ResponseFormat)> {
        let (effort, format) = match self.output_config.take() {
            None => (None, None),
            Some(OutputConfig { effort, format, rest }) => {
                ignored.note_all("output_config", &rest);
                (effort, format)
            }
        };
        let format = match (format, self.output_format.take()) {
            (Some(format), _) => format.resolve("output_config.format", ignored)?,
            (None, Some(format)) => format.resolve("output_format", ignored)?,
            (None, None) => ResponseFormat::Text,
        };
        Ok((effort, format))
    }

    fn sampling(&mut self) -> ApiResult<Sampling> {
        Ok(Sampling {
            top_p: within("top_p", self.top_p, 0.0..=1.0)?,
            stop: self.stop_sequences.take().unwrap_or_default(),
            ..Sampling::default()
        })
    }

    /// Fields that some engine knows pass to it. The others have no effect.
    fn place_rest(&mut self, ignored: &mut IgnoredFields) -> Map<String, Value> {
        let mut extra = Map::new();
        for (field, value) in std::mem::take(&mut self.rest) {
            let is_engines = unplaced_field(&field, &value) == Unplaced::Unsupported && field != "container";
            if is_engines {
                extra.insert(field, value);
            } else {
                note_field(ignored, field, value);
            }
        }
        extra
    }
}

fn note_field(ignored: &mut IgnoredFields, field: String, value: Value) {
    // Which capacity of Anthropic's servers is used; no other engine has that choice.
    let asks_nothing = match field.as_str() {
        "service_tier" => value == "auto" || value == "standard_only",
        "mcp_servers" | "betas" => value.as_array().is_some_and(Vec::is_empty),
        _ => false,
    };
    if !asks_nothing && !value.is_null() {
        ignored.note(&field);
    }
}

/// Checks the limits. An error names the field as the caller wrote it.
fn within_budget(request: GenerateRequest, mut conversation: Conversation) -> ApiResult<GenerateRequest> {
    let messages = std::mem::take(&mut conversation.messages);
    let request = GenerateRequest { messages, ..request };
    match request_budget::check_request(&request) {
        Ok(()) => Ok(request),
        Err(over) => {
            let field = conversation.as_written(&over.field).unwrap_or_else(|| as_written(&over.field));
            Err(over_budget(OverBudget { field, ..over }))
        }
    }
}

/// The name that a field of chat completions has here.
fn as_written(field: &str) -> String {
    if let Some(rest) = field.strip_prefix("tools") {
        return format!(
            "tools{}",
            rest.replace(".function.parameters", ".input_schema").replace(".function", "")
        );
    }
    if let Some(rest) = field.strip_prefix("response_format.json_schema") {
        return format!("output_config.format{rest}");
    }
    match field.strip_prefix("stop") {
        Some(rest) => format!("stop_sequences{rest}"),
        None => field.to_owned(),
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
