//! The body of `POST /v1/responses`: as typed → as resolved.

use hob_core::budget::{self, MESSAGES, TOP_LOGPROBS};
use hob_core::{
    AgentPreference, AnswerDefaults, AnswerWarning, GenerateRequest, MaxTokens, OverBudget, ReplyMode,
    Sampling, Temperature,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::echo::Echo;
use super::metadata::check_metadata;
use super::output::OutputForm;
use super::text_format::WireText;
use super::tools::OfferedTools;
use super::transcript::Transcript;
use crate::error::ApiError;
use crate::json::{over_budget, read};
use crate::openai::chat_request::{whole_within, within};
use crate::openai::ignored_fields::IgnoredFields;
use crate::openai::required_model;
use crate::whole_number::WholeNumber;

/// Fields that ask for nothing that this server does. The answer names them.
const WITHOUT_EFFECT: [&str; 8] = [
    "access_programs",
    "client_metadata",
    "context_management",
    "image",
    "max_tool_calls",
    "moderation",
    "prompt_cache_options",
    "stream_options",
];

/// Fields of chat completions. An engine of that format would take them as part of its own request.
const OF_CHAT_COMPLETIONS: [&str; 18] = [
    "audio",
    "frequency_penalty",
    "function_call",
    "functions",
    "logit_bias",
    "logprobs",
    "max_completion_tokens",
    "max_tokens",
    "messages",
    "modalities",
    "n",
    "prediction",
    "presence_penalty",
    "reasoning_effort",
    "response_format",
    "seed",
    "stop",
    "verbosity",
];

/// Where the conversation before the input is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Continues {
    Nothing,
    Response(String),
    Conversation(String),
}

/// What happens to a conversation that is too long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Truncation {
    /// Its oldest part is left out.
    Auto,
    /// It is an error.
    Disabled,
}

/// A valid request, still without the conversation that it continues.
#[derive(Debug)]
pub(crate) struct CreateRequest {
    /// Has no messages and no tools yet.
    request: GenerateRequest,
    instructions: Option<String>,
    tools: Vec<Value>,
    tool_choice: Value,
    pub(super) input: Vec<Value>,
    pub(super) continues: Continues,
    pub(super) options: ResponseOptions,
    form: OutputForm,
    echo: Echo,
    ignored: IgnoredFields,
}

/// How a response is made and what happens to it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct ResponseOptions {
    pub(super) mode: ReplyMode,
    pub(super) agent: AgentPreference,
    pub(super) store: bool,
    pub(super) background: bool,
    pub(super) truncation: Truncation,
}

/// A request that can be asked.
pub(super) struct ReadyRequest {
    pub(super) request: GenerateRequest,
    /// The items of the input, with their ids, for the store.
    pub(super) input: Vec<Value>,
    pub(super) continues: Continues,
    pub(super) options: ResponseOptions,
    pub(super) form: OutputForm,
    pub(super) echo: Echo,
    pub(super) warnings: Vec<AnswerWarning>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireRequest {
    #[serde(default)]
    model: Option<String>,
    #[serde(default)]
    input: Option<WireInput>,
    #[serde(default)]
    instructions: Option<String>,
    #[serde(default)]
    tools: Option<Vec<Value>>,
    #[serde(default)]
    tool_choice: Value,
    #[serde(default)]
    parallel_tool_calls: Option<bool>,
    #[serde(default)]
    text: Option<WireText>,
    #[serde(default)]
    reasoning: Option<WireReasoning>,
    #[serde(default)]
    include: Option<Vec<String>>,
    #[serde(default)]
    max_output_tokens: Option<WholeNumber>,
    #[serde(default)]
    truncation: Option<String>,
    #[serde(default)]
    metadata: Option<Map<String, Value>>,
    #[serde(default)]
    store: Option<bool>,
    #[serde(default)]
    previous_response_id: Option<String>,
    #[serde(default)]
    conversation: Option<WireConversation>,
    #[serde(default)]
    background: Option<bool>,
    #[serde(default)]
    stream: Option<bool>,
    #[serde(default)]
    temperature: Option<f64>,
    #[serde(default)]
    top_p: Option<f64>,
    #[serde(default)]
    top_logprobs: Option<WholeNumber>,
    #[serde(default)]
    prompt: Value,
    /// Hob's own field: the agent that answers this request, also as a stream.
    #[serde(default)]
    agent: Option<String>,
    /// What the engine does if it can.
    #[serde(skip)]
    hints: Map<String, Value>,
    #[serde(flatten)]
    extra: Map<String, Value>,
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a string or an array of items")]
enum WireInput {
    Text(String),
    Items(Vec<Value>),
}

#[derive(Deserialize)]
#[serde(untagged, expecting = "expected the id of a conversation, or an object with an 'id'")]
enum WireConversation {
    Id(String),
    Object { id: String },
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct WireReasoning {
    #[serde(default)]
    effort: Option<String>,
    #[serde(default)]
    summary: Option<String>,
    /// The older name of `summary`.
    #[serde(default)]
    generate_summary: Option<String>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

impl CreateRequest {
    /// Parses a body. The error names the field.
    pub(super) fn parse(body: &[u8]) -> Result<Self, ApiError> {
        read::<WireRequest>(body)?.resolve()
    }

    /// Whether stored items are needed.
    pub(super) fn needs_store(&self) -> bool {
        let is_reference = |item: &Value| item["type"] == "item_reference";
        self.continues != Continues::Nothing || self.input.iter().any(is_reference)
    }

    /// The request with the items that come before its input. `input` are its own items, with references resolved.
    pub(super) fn complete(self, before: &[Value], input: Vec<Value>) -> Result<ReadyRequest, ApiError> {
        let CreateRequest { mut request, instructions, tools, tool_choice, continues, options, .. } = self;
        let (mut form, mut ignored) = (self.form, self.ignored);
        let items = before.len() + input.len();
        if items > MESSAGES {
            return Err(over_budget(OverBudget::too_many("input", items, "items", MESSAGES)));
        }
        let mut transcript = Transcript::new(instructions.as_deref());
        // Read once already, so nothing in it is news.
        let mut told = IgnoredFields::default();
        for (index, item) in before.iter().enumerate() {
            transcript.push(&format!("the stored item {index}"), item, &mut told)?;
        }
        for (index, item) in input.iter().enumerate() {
            transcript.push(&format!("input[{index}]"), item, &mut ignored)?;
        }
        let mut offered = OfferedTools::default();
        offered.add_all("tools", &tools, &mut ignored)?;
        offered.add_all("additional_tools", &transcript.tools, &mut ignored)?;
        let is_agents = matches!(options.agent, AgentPreference::Named(_)) && offered.definitions.is_empty();
        request.tool_choice = offered.choose(&tool_choice, is_agents)?;
        request.tools = offered.definitions;
        request.messages = transcript.finish();
        form.custom = offered.custom;
        budget::check_request(&request).map_err(|over| over_budget(as_written(over)))?;
        let warnings = ignored.into_warnings();
        Ok(ReadyRequest { request, input, continues, options, form, echo: self.echo, warnings })
    }
}

/// Names a field as this API does.
fn as_written(over: OverBudget) -> OverBudget {
    let field = match over.field.split_once('[') {
        Some(("messages", _)) => "input".to_owned(),
        Some(("tools", _)) => over.field.replace(".function", ""),
        _ => match over.field.strip_prefix("response_format.json_schema") {
            Some(rest) => format!("text.format{rest}"),
            None if over.field == "messages" => "input".to_owned(),
            None => over.field,
        },
    };
    OverBudget { field, ..over }
}

impl WireRequest {
    fn resolve(mut self) -> Result<CreateRequest, ApiError> {
        let mut ignored = IgnoredFields::default();
        let model = required_model(self.model.take())?;
        if !self.prompt.is_null() {
            let message = "this server has no prompt templates; send 'instructions' and 'input'";
            return Err(ApiError::invalid("prompt", message));
        }
        let input = self.input_items()?;
        let continues = self.continues()?;
        if input.is_empty() && continues == Continues::Nothing {
            return Err(ApiError::invalid("input", "'input' must not be empty"));
        }
        let options = self.options()?;
        check_metadata(self.metadata.as_ref())?;
        let temperature = self.temperature.map(Temperature::new).transpose();
        let temperature = temperature.map_err(|error| ApiError::invalid("temperature", error.to_string()))?;
        let length = whole_within("max_output_tokens", self.max_output_tokens, 1..=i64::from(u32::MAX))?;
        let max_tokens = length.map(MaxTokens::new).transpose();
        let max_tokens =
            max_tokens.map_err(|error| ApiError::invalid("max_output_tokens", error.to_string()))?;
        let top_p = within("top_p", self.top_p, 0.0..=1.0)?;
        let top_logprobs = whole_within("top_logprobs", self.top_logprobs, 0..=TOP_LOGPROBS as i64)?;
        let mut form = OutputForm::default();
        let mut logprobs = top_logprobs.is_some_and(|count| count > 0);
        for wanted in self.include.iter().flatten() {
            match wanted.as_str() {
                "reasoning.encrypted_content" => form.seals_reasoning = true,
                "message.output_text.logprobs" => logprobs = true,
                // Stored items have it anyway.
                "message.input_image.image_url" => {}
                other => ignored.note(&format!("include[]={other}")),
            }
        }
        let mut extra = self.passed_on(&mut ignored)?;
        let reasoning = self.reasoning(&mut form, &mut ignored)?;
        let text = self.text.take().map(|text| text.resolve(&mut ignored)).transpose()?.unwrap_or_default();
        if let Some(verbosity) = &text.verbosity {
            extra.insert("verbosity".to_owned(), json!(verbosity));
        }
        let echo = Echo {
            background: options.background,
            conversation: match &continues {
                Continues::Conversation(id) => Some(json!({ "id": id })),
                Continues::Nothing | Continues::Response(_) => None,
            },
            instructions: self.instructions.clone(),
            max_output_tokens: length,
            metadata: self.metadata.take().unwrap_or_default(),
            parallel_tool_calls: self.parallel_tool_calls.unwrap_or(true),
            previous_response_id: match &continues {
                Continues::Response(id) => Some(id.clone()),
                Continues::Nothing | Continues::Conversation(_) => None,
            },
            prompt_cache_key: extra.get("prompt_cache_key").cloned(),
            reasoning,
            safety_identifier: extra.get("safety_identifier").cloned(),
            service_tier: extra.get("service_tier").cloned(),
            store: options.store,
            temperature: self.temperature,
            text: text.echo,
            tool_choice: match &self.tool_choice {
                Value::Null => json!("auto"),
                choice => choice.clone(),
            },
            tools: self.tools.clone().unwrap_or_default(),
            top_logprobs: top_logprobs.unwrap_or(0),
            top_p: self.top_p,
            truncation: options.truncation.as_str(),
            user: extra.get("user").cloned(),
        };
        let sampling = Sampling {
            top_p,
            logprobs,
            top_logprobs: top_logprobs.and_then(|count| u32::try_from(count).ok()).filter(|_| logprobs),
            ..Sampling::default()
        };
        let request = GenerateRequest {
            model,
            temperature,
            max_tokens,
            // Without a limit the model decides where the answer ends, as the API documents.
            defaults: AnswerDefaults { max_tokens: None, ..AnswerDefaults::default() },
            sampling,
            parallel_tool_calls: self.parallel_tool_calls,
            response_format: text.format,
            extra,
            hints: self.hints,
            ..GenerateRequest::default()
        };
        Ok(CreateRequest {
            request,
            instructions: self.instructions.filter(|text| !text.is_empty()),
            tools: self.tools.unwrap_or_default(),
            tool_choice: self.tool_choice,
            input,
            continues,
            options,
            form,
            echo,
            ignored,
        })
    }

    fn input_items(&mut self) -> Result<Vec<Value>, ApiError> {
        match self.input.take() {
            Some(WireInput::Text(text)) => Ok(vec![json!({
                "type": "message",
                "role": "user",
                "content": [{ "type": "input_text", "text": text }],
            })]),
            Some(WireInput::Items(items)) => Ok(items),
            None if self.extra.contains_key("messages") => {
                let message = "'input' is required. 'messages' belongs to /v1/chat/completions";
                Err(ApiError::invalid("input", message))
            }
            None => Err(ApiError::invalid("input", "'input' is required")),
        }
    }

    fn continues(&mut self) -> Result<Continues, ApiError> {
        let previous = self.previous_response_id.take();
        match (previous, self.conversation.take()) {
            (None, None) => Ok(Continues::Nothing),
            (Some(id), None) => Ok(Continues::Response(id)),
            (None, Some(WireConversation::Id(id) | WireConversation::Object { id })) => {
                Ok(Continues::Conversation(id))
            }
            (Some(_), Some(_)) => {
                let message = "a request continues a response or a conversation, not both";
                Err(ApiError::invalid("previous_response_id", message))
            }
        }
    }

    fn options(&self) -> Result<ResponseOptions, ApiError> {
        let truncation = match self.truncation.as_deref() {
            None | Some("disabled") => Truncation::Disabled,
            Some("auto") => Truncation::Auto,
            Some(other) => {
                let message = format!("'{other}' is not a truncation. Truncations are auto and disabled");
                return Err(ApiError::invalid("truncation", message));
            }
        };
        let (store, background) = (self.store.unwrap_or(true), self.background.unwrap_or(false));
        if background && !store {
            let message = "a response in the background is stored; send 'store': true, or leave it out";
            return Err(ApiError::invalid("background", message));
        }
        let agent = match self.agent.as_deref() {
            None => AgentPreference::Configured,
            Some("" | "none") => AgentPreference::None,
            Some(name) => AgentPreference::Named(name.to_owned()),
        };
        let mode = if self.stream.unwrap_or(false) { ReplyMode::Streamed } else { ReplyMode::Complete };
        Ok(ResponseOptions { mode, agent, store, background, truncation })
    }

    /// The fields that an engine gets as they are.
    fn passed_on(&mut self, ignored: &mut IgnoredFields) -> Result<Map<String, Value>, ApiError> {
        let mut extra = std::mem::take(&mut self.extra);
        extra.retain(|field, value| {
            let is_ours =
                WITHOUT_EFFECT.contains(&field.as_str()) || OF_CHAT_COMPLETIONS.contains(&field.as_str());
            if is_ours && !means_nothing(field, value) {
                ignored.note(field);
            }
            !is_ours && !value.is_null()
        });
        Ok(extra)
    }

    fn reasoning(&mut self, form: &mut OutputForm, ignored: &mut IgnoredFields) -> Result<Value, ApiError> {
        let Some(WireReasoning { effort, summary, generate_summary, rest }) = self.reasoning.take() else {
            return Ok(json!({ "effort": null, "summary": null }));
        };
        let (field, summary) = match summary {
            Some(summary) => ("reasoning.summary", Some(summary)),
            None => ("reasoning.generate_summary", generate_summary),
        };
        match summary.as_deref() {
            None => {}
            Some("auto" | "concise" | "detailed") => form.summarizes_reasoning = true,
            Some(other) => {
                let message = format!("'{other}' is not a summary. Summaries are auto, concise and detailed");
                return Err(ApiError::invalid(field, message));
            }
        }
        ignored.note_all("reasoning", &rest);
        if let Some(effort) = &effort {
            // A hint: a model that does not think answers all the same.
            self.hints.insert("reasoning_effort".to_owned(), json!(effort));
        }
        Ok(json!({ "effort": effort, "summary": summary }))
    }
}

impl Truncation {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Truncation::Auto => "auto",
            Truncation::Disabled => "disabled",
        }
    }
}

/// Whether a field without effect asks for what is done anyway.
fn means_nothing(field: &str, value: &Value) -> bool {
    match (field, value) {
        (_, Value::Null) => true,
        // Nothing is added to the events to hide their sizes.
        ("stream_options", Value::Object(options)) => {
            options.iter().all(|(name, value)| name == "include_obfuscation" && *value != true)
        }
        _ => false,
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
