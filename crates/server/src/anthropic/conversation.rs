//! A conversation as clients of Anthropic's API write it, as the messages that every engine gets.
//!
//! Most chat templates know one system message, at the start, and turns that alternate. So later system messages become part of
//! the user's turn, and consecutive messages of one role become one. The results of tools, which are part of the user's turn here,
//! are messages of their own, directly after the calls.

use std::collections::HashSet;
use std::fmt;

use hob_core::request_budget::{MESSAGE_TOOL_CALLS, MESSAGES};
use hob_core::{Content, Message, OverBudget, REASONING_CONTENT, Role, SealedReasoning, ToolCall};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::blocks::{Said, WireBlock, WireContent, note_rest, unknown_kind};
use super::thinking;
use crate::error::{ApiError, ApiResult};
use crate::json::over_budget;
use crate::merged_messages;
use crate::openai::content::split_result;
use crate::openai::ignored_fields::IgnoredFields;

/// Claude Code's first system block, which is for Anthropic's accounting. It changes between versions and requests, and a prompt that
/// begins differently cannot be reused from a cache.
const BILLING_HEADER: &str = "x-anthropic-billing-header:";

/// A message before it is checked.
#[derive(Debug, Deserialize)]
#[serde(expecting = "an object")]
pub(super) struct WireMessage {
    role: Option<String>,
    content: Option<WireContent>,
    #[serde(flatten)]
    rest: Map<String, Value>,
}

/// The conversation as resolved.
#[derive(Debug, Default)]
pub(super) struct Conversation {
    pub(super) messages: Vec<Message>,
    /// The index of the caller's message that each came from; `None` for `system`.
    origins: Vec<Option<usize>>,
    /// The tools that a tool search found.
    pub(super) found_tools: HashSet<String>,
}

impl Conversation {
    pub(super) fn read(
        system: Option<WireContent>,
        messages: Vec<WireMessage>,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<Self> {
        if messages.is_empty() {
            return Err(ApiError::invalid("messages", "messages: at least one message is required"));
        }
        if messages.len() > MESSAGES {
            return Err(over_budget(OverBudget::too_many("messages", messages.len(), "messages", MESSAGES)));
        }
        let mut conversation = Conversation::default();
        if let Some(system) = system {
            let mut texts = system.into_texts(&"system", ignored)?;
            if texts.first().is_some_and(|text| text.starts_with(BILLING_HEADER)) {
                texts.remove(0);
                ignored.note("system[].x-anthropic-billing-header");
            }
            conversation.instruct(texts);
        }
        for (index, message) in messages.into_iter().enumerate() {
            conversation.add(index, message, ignored)?;
        }
        Ok(conversation)
    }

    /// The caller's name for a field of `messages[…]`, as it stood in the request.
    pub(super) fn as_written(&self, field: &str) -> Option<String> {
        let (index, rest) = field.strip_prefix("messages[")?.split_once(']')?;
        let origin = self.origins.get(index.parse::<usize>().ok()?)?;
        Some(match origin {
            None => "system".to_owned(),
            // A part has another index there, and a call is a block.
            Some(origin) if rest.starts_with(".content") || rest.starts_with(".tool_calls") => {
                format!("messages[{origin}].content")
            }
            Some(origin) => format!("messages[{origin}]{rest}"),
        })
    }

    fn add(&mut self, index: usize, message: WireMessage, ignored: &mut IgnoredFields) -> ApiResult<()> {
        let path = format_args!("messages[{index}]");
        let Some(role) = message.role.as_deref() else {
            return Err(ApiError::invalid(
                format!("{path}.role"),
                format!("{path}.role: a message needs a role"),
            ));
        };
        let Some(content) = message.content else {
            let field = format!("{path}.content");
            return Err(ApiError::invalid(field.as_str(), format!("{field}: a message needs content")));
        };
        note_rest(ignored, "messages[]", &message.rest);
        let within = format_args!("{path}.content");
        match role {
            "user" => self.user(index, content.into_blocks(), &within, ignored),
            "assistant" => self.assistant(index, content.into_blocks(), &within, ignored),
            "system" => {
                let texts = content.into_texts(&within, ignored)?;
                if self.messages.iter().all(|message| message.role == Role::System) {
                    self.instruct(texts);
                } else if !texts.is_empty() {
                    let mut said = Said::default();
                    said.text(format!("<system>\n{}\n</system>", texts.join("\n")));
                    self.push(Some(index), Message::new(Role::User, said.into_content()));
                }
                Ok(())
            }
            other => {
                let message =
                    format!("{path}.role: '{other}' is not a role. Roles are user, assistant and system");
                Err(ApiError::invalid(format!("{path}.role"), message))
            }
        }
    }

    /// Adds to the system message at the start.
    fn instruct(&mut self, texts: Vec<String>) {
        let text = texts.join("\n");
        if text.is_empty() {
            return;
        }
        match self.messages.first_mut() {
            Some(Message { content: Content::Text(first), .. }) => {
                first.push('\n');
                first.push_str(&text);
            }
            _ => self.push(None, Message::new(Role::System, text)),
        }
    }

    fn user(
        &mut self,
        index: usize,
        blocks: Vec<WireBlock>,
        path: &dyn fmt::Display,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<()> {
        let mut said = Said::default();
        for (position, block) in blocks.into_iter().enumerate() {
            let path = format_args!("{path}[{position}]");
            if block.kind == "tool_result" {
                self.tool_result(index, block, &path, &mut said, ignored)?;
            } else {
                block.say(&path, &mut said, ignored)?;
            }
        }
        let only_results = self.origins.last() == Some(&Some(index));
        if !said.parts.is_empty() || !only_results {
            self.push(Some(index), Message::new(Role::User, said.into_content()));
        }
        Ok(())
    }

    /// A result is a message of its own. Few engines accept images there, so these go to the user's turn after it.
    fn tool_result(
        &mut self,
        index: usize,
        mut block: WireBlock,
        path: &dyn fmt::Display,
        said: &mut Said,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<()> {
        let Some(id) = block.tool_use_id.take() else { return Err(block.missing(path, "tool_use_id")) };
        self.find_tools(&block);
        let is_error = block.is_error == Some(true);
        let result = block.into_result(path, ignored)?;
        let name = || self.called_tool(&id).unwrap_or("the tool").to_owned();
        let (texts, attachments) = split_result(result.parts, &id, name);
        said.parts.extend(attachments);
        let text = Content::Parts(texts).text().into_owned();
        let text = if is_error { as_error(text) } else { text };
        self.push(Some(index), Message::tool_result(id, text));
        Ok(())
    }

    /// The tool that the last message with calls called by this id.
    fn called_tool(&self, id: &str) -> Option<&str> {
        let calls = &self.messages.iter().rev().find(|message| !message.tool_calls.is_empty())?.tool_calls;
        // A message with more calls is refused at the end.
        let call = calls.iter().take(MESSAGE_TOOL_CALLS).find(|call| call.id == id)?;
        Some(&call.name)
    }

    fn find_tools(&mut self, result: &WireBlock) {
        let blocks = result.content.as_ref().and_then(Value::as_array).into_iter().flatten();
        let names = blocks.filter_map(|block| block["tool_name"].as_str());
        self.found_tools.extend(names.map(str::to_owned));
    }

    fn assistant(
        &mut self,
        index: usize,
        blocks: Vec<WireBlock>,
        path: &dyn fmt::Display,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<()> {
        let mut said = Said::default();
        let mut reasoning: Vec<String> = Vec::new();
        let mut sealed = Vec::new();
        let mut tool_calls = Vec::new();
        for (position, mut block) in blocks.into_iter().enumerate() {
            let path = format_args!("{path}[{position}]");
            match block.kind.as_str() {
                "text" => block.say(&path, &mut said, ignored)?,
                "thinking" => {
                    let thinking = block.thinking.take().ok_or_else(|| block.missing(&path, "thinking"))?;
                    let signature = block.signature.take().unwrap_or_default();
                    if thinking::is_foreign(&signature) {
                        let text = thinking.clone();
                        sealed.push(SealedReasoning::Signed { text, signature: signature.clone() });
                    }
                    reasoning.push(thinking::recalled(thinking, Some(&signature)));
                }
                "redacted_thinking" => {
                    let data = block.data.take().ok_or_else(|| block.missing(&path, "data"))?;
                    sealed.push(SealedReasoning::Redacted { data });
                }
                "tool_use" => tool_calls.push(called(block, &path, ignored)?),
                // A summary of what was said before.
                "compaction" => {
                    if let Some(Value::String(summary)) = block.content {
                        said.text(summary);
                    }
                }
                _ if block.is_of_server() => {
                    ignored.note(&format!("messages[].content[].{}", block.kind));
                }
                kind => {
                    let known = "Known here are 'text', 'thinking', 'redacted_thinking' and 'tool_use'";
                    return Err(unknown_kind(&path, kind, known));
                }
            }
        }
        reasoning.retain(|text| !text.is_empty());
        let content = if said.parts.is_empty() { Content::Empty } else { said.into_content() };
        let mut message = Message { tool_calls, ..Message::new(Role::Assistant, content) };
        if !reasoning.is_empty() {
            message.extra.insert(REASONING_CONTENT.to_owned(), Value::String(reasoning.join("\n")));
        }
        SealedReasoning::add_to(&mut message.extra, &sealed);
        self.push(Some(index), message);
        Ok(())
    }

    /// Adds a message, or adds it to the last one, if that has the same role.
    fn push(&mut self, origin: Option<usize>, message: Message) {
        match self.messages.last_mut() {
            Some(last) if last.role == message.role && last.role == Role::User => {
                merged_messages::append(&mut last.content, message.content, "\n");
            }
            // Calls come last in a turn, so what follows them is another one.
            Some(last)
                if last.role == message.role
                    && last.role == Role::Assistant
                    && last.tool_calls.is_empty() =>
            {
                merged_messages::append(&mut last.content, message.content, "\n");
                last.tool_calls = message.tool_calls;
                merged_messages::append_fields(&mut last.extra, message.extra);
            }
            _ => {
                self.messages.push(message);
                self.origins.push(origin);
            }
        }
    }
}

/// A result that is an error. No other format has a mark for it, so the text says it.
fn as_error(text: String) -> String {
    let says_so = text.get(..5).is_some_and(|head| head.eq_ignore_ascii_case("error"))
        || text.starts_with("<tool_use_error>");
    match says_so {
        true => text,
        false if text.is_empty() => "Error".to_owned(),
        false => format!("Error: {text}"),
    }
}

fn called(mut block: WireBlock, path: &dyn fmt::Display, ignored: &mut IgnoredFields) -> ApiResult<ToolCall> {
    note_rest(ignored, "messages[].content[]", &block.rest);
    let Some(id) = block.id.take() else { return Err(block.missing(path, "id")) };
    let Some(name) = block.name.take() else { return Err(block.missing(path, "name")) };
    let arguments = match block.input {
        None | Some(Value::Null) => "{}".to_owned(),
        Some(input @ Value::Object(_)) => input.to_string(),
        Some(_) => {
            let field = format!("{path}.input");
            return Err(ApiError::invalid(field.as_str(), format!("{field}: expected an object")));
        }
    };
    Ok(ToolCall { id, name, arguments })
}
