//! The body of `POST /api/chat`, borrowed from [`GenerateRequest`] where possible.

use std::borrow::Cow;

use hob_core::{
    AnswerWarning, CalledTools, Content, ContentPart, GenerateRequest, Message, REASONING_EFFORT, ReplyMode,
    ResponseFormat, Role, ToolCall, ToolChoice, ignored_fields,
};
use serde::Serialize;
use serde_json::{Map, Value, json};

use super::forced_tool_call::ForcedCall;
use super::options::{FullContext, OWN_FIELDS, OWN_OPTIONS, options};
use crate::multiple_choices::MAX_ANSWERS;
use crate::openai_compat::request::tool;
use crate::wire::unsupported_field::UnsupportedField;

/// How to write one request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct OllamaBodyOptions {
    pub reply_mode: ReplyMode,
    pub thinking: Thinking,
    /// The index among several answers.
    pub answer: u32,
}

/// How to write the caller's `reasoning_effort` as `think`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Thinking {
    /// As a level, for newer versions.
    Level,
    /// As true or false, for older versions.
    Switch,
    /// Not at all, for models without reasoning.
    LeftOut,
}

impl Thinking {
    /// How to retry after Ollama rejected the request; `None` when `think` was not the reason.
    pub fn after_refusal(self, message: &str) -> Option<Self> {
        match self {
            Thinking::Level | Thinking::Switch if message.contains("does not support thinking") => {
                Some(Thinking::LeftOut)
            }
            // Versions without levels report a wrong type of the field.
            Thinking::Level if message.contains("think") => Some(Thinking::Switch),
            _ => None,
        }
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
    #[serde(flatten)]
    full_context: FullContext<'a>,
    #[serde(skip_serializing_if = "Option::is_none")]
    keep_alive: Option<&'a Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think: Option<Cow<'a, Value>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    logprobs: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    top_logprobs: Option<u32>,
}

#[derive(Debug, Serialize)]
#[serde(untagged)]
enum Format<'a> {
    Word(&'static str),
    Schema(Cow<'a, Value>),
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

impl WireMessage<'_> {
    /// A message without content.
    fn from_role(role: &'static str) -> Self {
        WireMessage {
            role,
            content: Cow::Borrowed(""),
            thinking: None,
            images: Vec::new(),
            tool_calls: Vec::new(),
            tool_name: None,
        }
    }
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
    pub fn of(request: &'a GenerateRequest, form: OllamaBodyOptions) -> Result<Self, UnsupportedField> {
        let own = |name: &str| request.extra.get(name).filter(|value| !value.is_null());
        let forced = ForcedCall::demanded(request)?;
        let mut messages = history(&request.messages)?;
        if let Some(forced) = forced {
            instruct(&mut messages, &forced.instruction());
        }
        Ok(Body {
            model: &request.model,
            messages,
            tools: if forced.is_some() { Vec::new() } else { tools(request) },
            format: match (forced, &request.response_format) {
                // A forced call is the whole answer.
                (Some(forced), _) => Some(Format::Schema(forced.schema())),
                (None, ResponseFormat::Text) => None,
                (None, ResponseFormat::JsonObject) => Some(Format::Word("json")),
                (None, ResponseFormat::JsonSchema(schema)) => {
                    Some(Format::Schema(Cow::Borrowed(&schema.schema)))
                }
            },
            stream: form.reply_mode == ReplyMode::Streamed,
            options: options(request, form.answer)?,
            full_context: FullContext::of(&request.extra),
            keep_alive: own("keep_alive"),
            think: match own("think") {
                Some(own) => Some(Cow::Borrowed(own)),
                None => think(request, form.thinking)?.map(Cow::Owned),
            },
            logprobs: request.sampling.logprobs.then_some(true),
            top_logprobs: request.sampling.top_logprobs,
        })
    }
}

/// Fails for what Ollama cannot do, and returns the fields that have no effect on the answer.
pub fn check(request: &GenerateRequest) -> Result<Vec<AnswerWarning>, UnsupportedField> {
    if request.answers() > MAX_ANSWERS {
        let hint = format!("the limit for Ollama is {MAX_ANSWERS} answers");
        return Err(UnsupportedField::because("n", hint));
    }
    let own: Vec<&str> = OWN_FIELDS.into_iter().chain(OWN_OPTIONS).collect();
    ignored_fields(request, &own).map_err(UnsupportedField::new)
}

/// Whether the caller set a reasoning effort that becomes `think`.
pub fn asks_for_effort(request: &GenerateRequest) -> bool {
    let is_given = |name: &str| request.extra.get(name).is_some_and(|value| !value.is_null());
    is_given(REASONING_EFFORT) && !is_given("think")
}

fn think(request: &GenerateRequest, thinking: Thinking) -> Result<Option<Value>, UnsupportedField> {
    let Some(effort) = request.extra.get(REASONING_EFFORT).filter(|value| !value.is_null()) else {
        return Ok(None);
    };
    let level = match effort.as_str() {
        Some("none") => return Ok(Some(json!(false))),
        Some("minimal" | "low") => "low",
        Some("medium") => "medium",
        Some("high" | "xhigh" | "max") => "high",
        _ => {
            let hint = "Ollama accepts 'none', 'low', 'medium' and 'high'";
            return Err(UnsupportedField::because(REASONING_EFFORT, hint));
        }
    };
    Ok(match thinking {
        Thinking::Level => Some(json!(level)),
        Thinking::Switch => Some(json!(true)),
        Thinking::LeftOut => None,
    })
}

/// The tools that the model may call.
fn tools(request: &GenerateRequest) -> Vec<Value> {
    match request.tool_choice {
        Some(ToolChoice::None) => Vec::new(),
        _ => request.tools.iter().map(tool).collect(),
    }
}

/// Appends to the system message. Many templates support only one, at the start.
fn instruct(messages: &mut Vec<WireMessage<'_>>, instruction: &str) {
    match messages.first_mut() {
        Some(first) if first.role == Role::System.as_str() => {
            let content = first.content.to_mut();
            content.push_str("\n\n");
            content.push_str(instruction);
        }
        _ => {
            let role = Role::System.as_str();
            messages.insert(
                0,
                WireMessage { content: Cow::Owned(instruction.to_owned()), ..WireMessage::from_role(role) },
            );
        }
    }
}

fn history(messages: &[Message]) -> Result<Vec<WireMessage<'_>>, UnsupportedField> {
    let mut called = CalledTools::default();
    let mut history = Vec::with_capacity(messages.len());
    for (index, next) in messages.iter().enumerate() {
        history.push(message(next, index, &called)?);
        called.add(next);
    }
    Ok(history)
}

/// The message at `index`. Ollama's messages have no author's name, so it is not sent.
fn message<'a>(
    message: &'a Message,
    index: usize,
    called: &CalledTools<'a>,
) -> Result<WireMessage<'a>, UnsupportedField> {
    let tool_name = match (message.role, &message.tool_call_id) {
        (Role::Tool, Some(id)) => called.name(id).or(message.name.as_deref()),
        (Role::Tool, None) => message.name.as_deref(),
        _ => None,
    };
    Ok(WireMessage {
        role: message.role.as_str(),
        content: message.content.text(),
        thinking: thinking(message),
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

/// The assistant's reasoning, under any of its names.
fn thinking(message: &Message) -> Option<&str> {
    ["thinking", "reasoning", "reasoning_content"]
        .iter()
        .filter_map(|name| message.extra.get(*name)?.as_str())
        .find(|text| !text.is_empty())
}

fn images(content: &Content, index: usize) -> Result<Vec<&str>, UnsupportedField> {
    let Content::Parts(parts) = content else {
        return Ok(Vec::new());
    };
    let mut images = Vec::new();
    for (position, part) in parts.iter().enumerate() {
        let image = match part {
            ContentPart::Text(_) => continue,
            ContentPart::Image(image) => image,
            ContentPart::Other(other) => {
                let kind = other.get("type").and_then(Value::as_str).unwrap_or("type");
                return Err(UnsupportedField::because(
                    format!("messages[{index}].content[{position}].{kind}"),
                    "Ollama accepts text and images",
                ));
            }
        };
        let (_, payload) = image.inline().ok_or_else(|| {
            UnsupportedField::because(
                format!("messages[{index}].content[{position}].image_url"),
                "Ollama does not fetch images; send a base64 data: URL",
            )
        })?;
        images.push(payload);
    }
    Ok(images)
}

/// A call of the history. Ollama requires an object where callers have the text that the model wrote.
fn history_call(call: &ToolCall, index: usize, position: usize) -> Result<WireCall<'_>, UnsupportedField> {
    let arguments = if call.arguments.trim().is_empty() {
        Map::new()
    } else {
        serde_json::from_str(&call.arguments).map_err(|error| {
            let field = format!("messages[{index}].tool_calls[{position}].function.arguments");
            let hint = format!("Ollama requires a JSON object here ({error})");
            UnsupportedField::because(field, hint)
        })?
    };
    Ok(WireCall { function: WireFunction { name: &call.name, arguments } })
}

#[cfg(test)]
#[path = "request_tests.rs"]
mod tests;
