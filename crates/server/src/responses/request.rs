//! A request for a response: its body as typed, and what it says before the conversation that it continues is known.

use std::fmt;

use hob_core::request_budget::TOP_LOGPROBS;
use hob_core::{
    AgentPreference, AnswerDefaults, GenerateRequest, MaxTokens, ReplyMode, Sampling, Temperature,
};
use serde::Deserialize;
use serde::de::{Deserializer, SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde_json::{Map, Value, json};

use super::echo::{Echo, EchoedConversation, EchoedFields, EchoedReasoning};
use super::metadata::check_metadata;
use super::output::OutputForm;
use super::text_format::WireText;
use crate::error::{ApiError, ApiResult};
use crate::json::read;
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

impl Continues {
    /// The conversation that it continues.
    pub(super) fn conversation(&self) -> Option<&str> {
        match self {
            Continues::Conversation(id) => Some(id),
            Continues::Nothing | Continues::Response(_) => None,
        }
    }

    /// The response that it continues.
    pub(super) fn response(&self) -> Option<&str> {
        match self {
            Continues::Response(id) => Some(id),
            Continues::Nothing | Continues::Conversation(_) => None,
        }
    }
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
    pub(super) request: GenerateRequest,
    pub(super) instructions: Option<String>,
    pub(super) tools: Vec<Value>,
    pub(super) tool_choice: Value,
    pub(super) input: Vec<Value>,
    pub(super) continues: Continues,
    pub(super) options: ResponseOptions,
    pub(super) form: OutputForm,
    pub(super) echo: EchoedFields,
    pub(super) ignored: IgnoredFields,
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

impl CreateRequest {
    /// Parses a body. The error names the field.
    pub(super) fn parse(body: &[u8]) -> ApiResult<Self> {
        read::<WireRequest>(body)?.resolve()
    }

    /// Whether stored items are needed.
    pub(super) fn needs_store(&self) -> bool {
        let is_reference = |item: &Value| item["type"] == "item_reference";
        self.continues != Continues::Nothing || self.input.iter().any(is_reference)
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

/// The body of `POST /v1/responses` as typed.
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

enum WireInput {
    Text(String),
    Items(Vec<Value>),
}

/// By hand, because the derived form of an enum without tags reads everything twice.
impl<'de> Deserialize<'de> for WireInput {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InputVisitor;

        impl<'de> Visitor<'de> for InputVisitor {
            type Value = WireInput;

            fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
                formatter.write_str("a string or an array of items")
            }

            fn visit_str<E>(self, text: &str) -> Result<WireInput, E> {
                Ok(WireInput::Text(text.to_owned()))
            }

            fn visit_string<E>(self, text: String) -> Result<WireInput, E> {
                Ok(WireInput::Text(text))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<WireInput, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(WireInput::Items)
            }
        }

        deserializer.deserialize_any(InputVisitor)
    }
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

/// What `reasoning` asks for.
#[derive(Default)]
struct ReasoningWish {
    effort: Option<String>,
    summary: Option<String>,
}

impl WireRequest {
    fn resolve(mut self) -> ApiResult<CreateRequest> {
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
            conversation: continues.conversation().map(|id| EchoedConversation { id }),
            instructions: self.instructions.as_deref(),
            max_output_tokens: length,
            metadata: self.metadata.as_ref(),
            parallel_tool_calls: self.parallel_tool_calls.unwrap_or(true),
            previous_response_id: continues.response(),
            prompt_cache_key: extra.get("prompt_cache_key"),
            reasoning: EchoedReasoning {
                effort: reasoning.effort.as_deref(),
                summary: reasoning.summary.as_deref(),
            },
            safety_identifier: extra.get("safety_identifier"),
            service_tier: extra.get("service_tier"),
            temperature: self.temperature,
            text: &text.echo,
            tool_choice: &self.tool_choice,
            tools: self.tools.as_deref().unwrap_or_default(),
            top_logprobs: top_logprobs.unwrap_or(0),
            top_p: self.top_p,
            truncation: options.truncation.as_str(),
            user: extra.get("user"),
        };
        let echo = echo.render();
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

    fn input_items(&mut self) -> ApiResult<Vec<Value>> {
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

    fn continues(&mut self) -> ApiResult<Continues> {
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

    fn options(&self) -> ApiResult<ResponseOptions> {
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
        let agent = AgentPreference::of_field(self.agent.clone());
        let mode = if self.stream.unwrap_or(false) { ReplyMode::Streamed } else { ReplyMode::Complete };
        Ok(ResponseOptions { mode, agent, store, background, truncation })
    }

    /// The fields that an engine gets as they are.
    fn passed_on(&mut self, ignored: &mut IgnoredFields) -> ApiResult<Map<String, Value>> {
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

    /// Reads `reasoning`, and takes it: the effort and the summary that are wanted.
    fn reasoning(&mut self, form: &mut OutputForm, ignored: &mut IgnoredFields) -> ApiResult<ReasoningWish> {
        let Some(WireReasoning { effort, summary, generate_summary, rest }) = self.reasoning.take() else {
            return Ok(ReasoningWish::default());
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
        Ok(ReasoningWish { effort, summary })
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
