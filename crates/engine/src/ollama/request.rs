//! The body of `POST /api/chat`, borrowed from our request wherever it can be.

use std::borrow::Cow;

use hob_core::{Content, GenerateRequest, Message, Part, ResponseFormat, Role, ToolCall, ToolChoice};
use serde::Serialize;
use serde_json::{Map, Value};

use super::options::options;
use crate::chat_completions::request::{Delivery, tool};

/// A field of the request that Ollama cannot honour.
#[derive(Debug, PartialEq, Eq)]
pub struct Unsupported {
    pub field: String,
    pub hint: Option<String>,
}

impl Unsupported {
    pub fn new(field: impl Into<String>) -> Self {
        Unsupported { field: field.into(), hint: None }
    }

    pub fn because(self, hint: impl Into<String>) -> Self {
        Unsupported { hint: Some(hint.into()), ..self }
    }
}

#[derive(Debug, Serialize)]
pub struct Body<'a> {
    model: &'a str,
    messages: Vec<WireMessage<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tools: Vec<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format: Option<Format<'a>>,
    stream: bool,
    options: Map<String, Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Format<'a> {
    Word(&'static str),
    Schema(&'a Value),
}

#[derive(Debug, Serialize)]
struct WireMessage<'a> {
    role: &'static str,
    content: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    thinking: Option<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    images: Vec<&'a str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    tool_calls: Vec<WireCall<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
}

#[derive(Debug, Serialize)]
struct WireCall<'a> {
    function: WireFunction<'a>,
}

#[derive(Debug, Serialize)]
struct WireFunction<'a> {
    name: &'a str,
    arguments: Map<String, Value>,
}

impl<'a> Body<'a> {
    pub fn of(request: &'a GenerateRequest, delivery: Delivery) -> Result<Self, Unsupported> {
        if request.answers() > 1 {
            return Err(Unsupported::new("n").because("Ollama gives one answer"));
        }
        let own = |name: &str| request.extra.get(name).filter(|value| !value.is_null());
        Ok(Body {
            model: &request.model,
            messages: (0..request.messages.len())
                .map(|index| message(&request.messages, index))
                .collect::<Result<_, _>>()?,
            tools: tools(request)?,
            format: match &request.response_format {
                ResponseFormat::Text => None,
                ResponseFormat::JsonObject => Some(Format::Word("json")),
                ResponseFormat::JsonSchema(schema) => Some(Format::Schema(&schema.schema)),
            },
            stream: delivery == Delivery::Streamed,
            options: options(request)?,
            keep_alive: own("keep_alive"),
            think: own("think"),
            logprobs: request.sampling.logprobs.then_some(true),
            top_logprobs: request.sampling.top_logprobs,
        })
    }
}

/// The tools on offer. Ollama leaves the choice to the model, always.
fn tools(request: &GenerateRequest) -> Result<Vec<Value>, Unsupported> {
    if request.tools.is_empty() || request.tool_choice == Some(ToolChoice::None) {
        return Ok(Vec::new());
    }
    if matches!(request.tool_choice, Some(ToolChoice::Required | ToolChoice::Function(_))) {
        return Err(Unsupported::new("tool_choice")
            .because("Ollama cannot be made to call a tool; use 'auto' or 'none'"));
    }
    if request.parallel_tool_calls == Some(false) {
        return Err(Unsupported::new("parallel_tool_calls")
            .because("Ollama cannot be kept from calling several tools at once"));
    }
    Ok(request.tools.iter().map(tool).collect())
}

/// The message at `index`. An author's name has no place in Ollama's messages and stays behind, as everywhere but in the
/// chat-completions format.
fn message(history: &[Message], index: usize) -> Result<WireMessage<'_>, Unsupported> {
    let message = &history[index];
    let tool_name = match (message.role, &message.tool_call_id) {
        (Role::Tool, Some(id)) => Message::tool_name(&history[..index], id).or(message.name.as_deref()),
        (Role::Tool, None) => message.name.as_deref(),
        _ => None,
    };
    Ok(WireMessage {
        role: message.role.as_str(),
        content: message.content.text(),
        thinking: thinking(message, index)?,
        images: images(&message.content, index)?,
        tool_calls: message
            .tool_calls
            .iter()
            .enumerate()
            .map(|(position, call)| history_call(call, index, position))
            .collect::<Result<_, _>>()?,
        tool_name,
    })
}

/// What the assistant thought, under any of the names it goes by. Any other field that says something is refused.
fn thinking(message: &Message, index: usize) -> Result<Option<&str>, Unsupported> {
    let mut thinking = None;
    for (name, value) in &message.extra {
        match (name.as_str(), value) {
            ("thinking" | "reasoning" | "reasoning_content", Value::String(text)) => {
                thinking = thinking.or(Some(text.as_str()).filter(|text| !text.is_empty()));
            }
            (_, value) if says_nothing(value) => {}
            _ => return Err(Unsupported::new(format!("messages[{index}].{name}"))),
        }
    }
    Ok(thinking)
}

/// Clients send an answer back as they got it, with all its fields that were empty.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
        Value::Bool(_) | Value::Number(_) => false,
    }
}

fn images(content: &Content, index: usize) -> Result<Vec<&str>, Unsupported> {
    let Content::Parts(parts) = content else {
        return Ok(Vec::new());
    };
    let mut images = Vec::new();
    for (position, part) in parts.iter().enumerate() {
        let image = match part {
            Part::Text(_) => continue,
            Part::Image(image) => image,
            Part::Other(other) => {
                let kind = other.get("type").and_then(Value::as_str).unwrap_or("type");
                return Err(Unsupported::new(format!("messages[{index}].content[{position}].{kind}"))
                    .because("Ollama takes text and pictures"));
            }
        };
        let (_, payload) = image.inline().ok_or_else(|| {
            Unsupported::new(format!("messages[{index}].content[{position}].image_url"))
                .because("Ollama fetches no pictures; send them as data: URLs in base64")
        })?;
        images.push(payload);
    }
    Ok(images)
}

/// A call of the history. Ollama wants an object where callers keep the text that the model wrote.
fn history_call(call: &ToolCall, index: usize, position: usize) -> Result<WireCall<'_>, Unsupported> {
    let arguments = if call.arguments.trim().is_empty() {
        Map::new()
    } else {
        serde_json::from_str(&call.arguments).map_err(|error| {
            let field = format!("messages[{index}].tool_calls[{position}].function.arguments");
            Unsupported::new(field)
                .because(format!("Ollama takes a JSON object there, and this is none ({error})"))
        })?
    };
    Ok(WireCall { function: WireFunction { name: &call.name, arguments } })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
