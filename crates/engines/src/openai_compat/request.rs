//! The request body, serialized from [`GenerateRequest`] without a copy of the conversation.

use std::borrow::Cow;

use hob_core::{
    Content, ContentPart, GenerateRequest, JsonSchema, Message, REASONING_CONTENT, ReplyMode, ResponseFormat,
    Role, THINKING_BLOCKS, ToolCall, ToolChoice, ToolDefinition, call_id, is_reasoning_field, tool_arguments,
};
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// Whether the request contains the caller's tools.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolsField {
    Offered,
    Withheld,
}

/// The service's name for the limit of an answer's length. OpenAI renamed it, and newer models reject the old name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LengthField {
    MaxTokens,
    MaxCompletionTokens,
}

/// How to write one request.
#[derive(Debug, Clone, Copy)]
pub struct ChatBodyOptions {
    pub reply_mode: ReplyMode,
    pub tools: ToolsField,
    pub length_field: LengthField,
    pub reasoning: ReasoningFields,
}

/// Which reasoning of earlier answers the messages contain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReasoningFields {
    /// Also that which a provider signed: a LiteLLM proxy passes it on to Anthropic.
    All,
    /// Only text, which servers of models on one's own hardware give to the template of the model.
    Text,
    /// None. OpenAI refuses unknown fields of a message, and another model's thoughts are not for it.
    LeftOut,
    /// A text in every message of the assistant, under the one name that DeepSeek and Kimi demand.
    Demanded,
}

/// The longest id of a call that OpenAI accepts. Those of vLLM can have 46 characters.
const LONGEST_CALL_ID: usize = 40;

impl ReasoningFields {
    /// Whether a message contains the field `name`.
    fn contain(self, name: &str) -> bool {
        match self {
            ReasoningFields::All => true,
            ReasoningFields::Text => name != THINKING_BLOCKS,
            ReasoningFields::LeftOut | ReasoningFields::Demanded => !is_reasoning_field(name),
        }
    }

    /// The id of a call, with the provider's signature only where this may reach that provider.
    fn call_id(self, id: &str) -> Cow<'_, str> {
        match self {
            ReasoningFields::All => Cow::Borrowed(id),
            ReasoningFields::Text => Cow::Borrowed(call_id::plain(id)),
            ReasoningFields::LeftOut | ReasoningFields::Demanded => {
                call_id::accepted(id, |id| id.len() <= LONGEST_CALL_ID)
            }
        }
    }
}

/// What the model thought before its message. Providers that demand it take an empty text for a missing one.
fn demanded(message: &Message) -> &str {
    let text = |name: &&str| message.extra.get(*name)?.as_str();
    let names = [REASONING_CONTENT, "reasoning", "thinking"];
    names.iter().filter_map(text).find(|text| !text.is_empty()).unwrap_or(" ")
}

/// The bytes of a body beside the text of its messages, and those of a message beside its text: more than most have.
const BODY_BYTES: usize = 512;
const MESSAGE_BYTES: usize = 64;

/// The request's body.
pub fn body(request: &GenerateRequest, options: ChatBodyOptions) -> Result<Vec<u8>, serde_json::Error> {
    let said: u64 = request.messages.iter().map(|message| message.content.text_bytes()).sum();
    let said = usize::try_from(said).unwrap_or_default();
    // Allocated once; a growing buffer is copied several times.
    let mut json = Vec::with_capacity(BODY_BYTES + MESSAGE_BYTES * request.messages.len() + said);
    serde_json::to_writer(&mut json, &Body { request, options })?;
    Ok(json)
}

/// `stream_options`: a stream ends with its usage.
#[derive(Serialize)]
struct IncludeUsage {
    include_usage: bool,
}

struct Body<'a> {
    request: &'a GenerateRequest,
    options: ChatBodyOptions,
}

impl Serialize for Body<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Body { request, options } = self;
        let sampling = &request.sampling;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("model", &request.model)?;
        map.serialize_entry("messages", &Messages(&request.messages, options.reasoning))?;
        match options.length_field {
            LengthField::MaxTokens => {
                entry(&mut map, "temperature", request.temperature().as_ref())?;
                entry(&mut map, "max_tokens", request.max_tokens().as_ref())?;
            }
            // Newer models reject every temperature but their own, so only a temperature that the caller set is sent.
            LengthField::MaxCompletionTokens => {
                if let Some(temperature) = request.temperature {
                    map.serialize_entry("temperature", &temperature.get())?;
                }
                entry(&mut map, "max_completion_tokens", request.max_tokens().as_ref())?;
            }
        }
        map.serialize_entry("stream", &(options.reply_mode == ReplyMode::Streamed))?;
        if options.reply_mode == ReplyMode::Streamed {
            map.serialize_entry("stream_options", &IncludeUsage { include_usage: true })?;
        }
        entry(&mut map, "top_p", sampling.top_p.as_ref())?;
        entry(&mut map, "stop", (!sampling.stop.is_empty()).then_some(&sampling.stop))?;
        entry(&mut map, "seed", sampling.seed.as_ref())?;
        entry(&mut map, "presence_penalty", sampling.presence_penalty.as_ref())?;
        entry(&mut map, "frequency_penalty", sampling.frequency_penalty.as_ref())?;
        entry(&mut map, "n", sampling.n.as_ref())?;
        entry(&mut map, "logprobs", sampling.logprobs.then_some(&true))?;
        entry(&mut map, "top_logprobs", sampling.top_logprobs.as_ref())?;
        match &request.response_format {
            ResponseFormat::Text => {}
            ResponseFormat::JsonObject => {
                map.serialize_entry("response_format", &json!({ "type": "json_object" }))?
            }
            ResponseFormat::JsonSchema(schema) => {
                map.serialize_entry("response_format", &schema_format(schema))?
            }
        }
        if options.tools == ToolsField::Offered && !request.tools.is_empty() {
            map.serialize_entry("tools", &request.tools.iter().map(tool).collect::<Vec<_>>())?;
            if let Some(choice) = &request.tool_choice {
                map.serialize_entry("tool_choice", &tool_choice(choice))?;
            }
            entry(&mut map, "parallel_tool_calls", request.parallel_tool_calls.as_ref())?;
        }
        for (name, value) in &request.extra {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

pub(super) fn entry<M: SerializeMap, T: Serialize>(
    map: &mut M,
    name: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    match value {
        Some(value) => map.serialize_entry(name, value),
        None => Ok(()),
    }
}

pub(super) fn with_present<const N: usize>(fields: [(&str, Option<Value>); N]) -> Map<String, Value> {
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

/// `response_format` with a schema.
pub(super) fn schema_format(schema: &JsonSchema) -> Value {
    json!({ "type": "json_schema", "json_schema": with_present([
        ("name", Some(json!(schema.name))),
        ("description", schema.description.as_ref().map(|text| json!(text))),
        ("schema", Some(schema.schema.clone())),
        ("strict", schema.strict.map(|strict| json!(strict))),
    ]) })
}

/// A tool definition in this format, which other formats use too.
pub(crate) fn tool(definition: &ToolDefinition) -> Value {
    let function = with_present([
        ("name", Some(json!(definition.name))),
        ("description", definition.description.as_ref().map(|text| json!(text))),
        ("parameters", definition.parameters.clone()),
        ("strict", definition.strict.map(|strict| json!(strict))),
    ]);
    json!({ "type": "function", "function": function })
}

fn tool_choice(choice: &ToolChoice) -> Value {
    match choice {
        ToolChoice::Auto => json!("auto"),
        ToolChoice::None => json!("none"),
        ToolChoice::Required => json!("required"),
        ToolChoice::Function(name) => json!({ "type": "function", "function": { "name": name } }),
    }
}

struct Messages<'a>(&'a [Message], ReasoningFields);

impl Serialize for Messages<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.0.iter().map(|message| WireMessage(message, self.1)))
    }
}

struct WireMessage<'a>(&'a Message, ReasoningFields);

impl Serialize for WireMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let message = self.0;
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("role", message.role.as_str())?;
        match &message.content {
            // Only an assistant's message may have no content, and only null is accepted by every engine.
            Content::Empty if message.role == Role::Assistant && !message.tool_calls.is_empty() => {
                map.serialize_entry("content", &())?;
            }
            Content::Empty => map.serialize_entry("content", "")?,
            Content::Text(text) => map.serialize_entry("content", text)?,
            Content::Parts(parts) => map.serialize_entry("content", &Parts(parts))?,
        }
        entry(&mut map, "name", message.name.as_ref())?;
        if !message.tool_calls.is_empty() {
            map.serialize_entry(
                "tool_calls",
                &message.tool_calls.iter().map(|call| history_call(call, self.1)).collect::<Vec<_>>(),
            )?;
        }
        let answered = message.tool_call_id.as_deref().map(|id| self.1.call_id(id));
        entry(&mut map, "tool_call_id", answered.as_ref())?;
        if message.role == Role::Assistant && self.1 == ReasoningFields::Demanded {
            map.serialize_entry(REASONING_CONTENT, demanded(message))?;
        }
        for (name, value) in message.extra.iter().filter(|(name, _)| self.1.contain(name)) {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

fn history_call(call: &ToolCall, reasoning: ReasoningFields) -> Value {
    let id = reasoning.call_id(&call.id);
    // Several servers parse them, and refuse an empty text.
    let arguments = if call.arguments.trim().is_empty() { tool_arguments::NONE } else { &call.arguments };
    json!({ "id": id, "type": "function", "function": { "name": call.name, "arguments": arguments } })
}

struct Parts<'a>(&'a [ContentPart]);

impl Serialize for Parts<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut sequence = serializer.serialize_seq(Some(self.0.len()))?;
        for part in self.0 {
            match part {
                ContentPart::Text(text) => {
                    sequence.serialize_element(&json!({ "type": "text", "text": text }))?
                }
                ContentPart::Image(image) => {
                    let url = with_present([
                        ("url", Some(json!(image.url))),
                        ("detail", image.detail.as_ref().map(|detail| json!(detail))),
                    ]);
                    sequence.serialize_element(&json!({ "type": "image_url", "image_url": url }))?;
                }
                ContentPart::Other(part) => sequence.serialize_element(part)?,
            }
        }
        sequence.end()
    }
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
