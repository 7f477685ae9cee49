//! The items of a conversation as messages. Reasoning, text and calls of one turn are several items but one message.
//!
//! Most chat templates know one system message, at the start, and turns that alternate. So system messages at the start become one,
//! later ones become part of the user's turn, and messages of the user in a row become one.

use std::collections::HashMap;
use std::fmt;

use hob_core::{Content, ContentPart, Message, Role, SealedReasoning, ToolCall, tool_arguments};
use serde_json::Value;

use super::custom_tools;
use super::input::{Item, ItemCall, ItemKind};
use crate::error::{ApiError, ApiResult};
use crate::merged_messages;
use crate::openai::content::split_result;
use crate::openai::ignored_fields::IgnoredFields;

/// The field of a message with the reasoning.
const REASONING: &str = "reasoning_content";

/// What the answer says if the arguments of a call were mended or replaced.
pub(super) const BROKEN_ARGUMENTS: &str = "input[].arguments";

/// Puts messages together from items.
#[derive(Debug, Default)]
pub(super) struct Transcript {
    messages: Vec<Message>,
    /// Whether the last message is the model's and can have more items.
    is_open: bool,
    /// The names of the calls so far, by their ids.
    calls: HashMap<String, String>,
    /// Images and files of outputs. They follow when all outputs are there, because outputs directly follow their calls.
    attachments: Vec<ContentPart>,
    /// Tools that items bring.
    pub(super) tools: Vec<Value>,
}

impl Transcript {
    pub(super) fn new(instructions: Option<&str>) -> Self {
        let messages = instructions.map(|text| Message::new(Role::System, text)).into_iter().collect();
        Transcript { messages, ..Transcript::default() }
    }

    /// Adds the item at `path`.
    pub(super) fn push(
        &mut self,
        path: fmt::Arguments<'_>,
        item: &Value,
        ignored: &mut IgnoredFields,
    ) -> ApiResult<()> {
        match (Item { path, value: item }).read(ignored)? {
            ItemKind::Message { role: Role::Assistant, content } => self.say(content),
            ItemKind::Message { role, content } => self.add(Message::new(role, content)),
            ItemKind::Reasoning { text, sealed } => self.think(&text, sealed),
            ItemKind::Call(ItemCall { id, name, arguments: written }) => {
                // The output says what was wrong with them, and engines refuse them.
                let arguments = tool_arguments::replayable(&written).unwrap_or(tool_arguments::NONE.into());
                if arguments != written {
                    ignored.note(BROKEN_ARGUMENTS);
                }
                let arguments = arguments.into_owned();
                self.call(ToolCall { id, name, arguments });
            }
            ItemKind::CustomCall(ItemCall { id, name, arguments: input }) => {
                self.call(ToolCall { id, name, arguments: custom_tools::arguments(&input) });
            }
            ItemKind::Output { call, content } => {
                let Some(name) = self.calls.get(&call) else {
                    let message = format!("no call with the id '{call}' comes before this output");
                    return Err(ApiError::invalid(format!("{path}.call_id"), message));
                };
                let (content, attachments) = match content {
                    Content::Parts(parts) => {
                        let (texts, attachments) = split_result(parts, &call, || name.clone());
                        (Content::Text(Content::Parts(texts).text().into_owned()), attachments)
                    }
                    content => (content, Vec::new()),
                };
                self.add(Message::tool_result(call, content));
                self.attachments.extend(attachments);
            }
            ItemKind::Tools(tools) => self.tools.extend(tools),
            ItemKind::Unknown => {}
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Vec<Message> {
        self.close();
        self.attach();
        self.messages
    }

    fn add(&mut self, message: Message) {
        self.close();
        if message.role != Role::Tool {
            self.attach();
        }
        let is_start = self.messages.iter().all(|message| message.role == Role::System);
        let message = match message.role {
            Role::System if !is_start => {
                Message::new(Role::User, format!("<system>\n{}\n</system>", message.content.text()))
            }
            Role::System | Role::User | Role::Assistant | Role::Tool => message,
        };
        match self.messages.last_mut() {
            Some(last) if last.role == message.role && matches!(last.role, Role::System | Role::User) => {
                merged_messages::append(&mut last.content, message.content, "\n\n");
            }
            _ => self.messages.push(message),
        }
    }

    /// Adds what belongs to the outputs before it.
    fn attach(&mut self) {
        if !self.attachments.is_empty() {
            let parts = Content::Parts(std::mem::take(&mut self.attachments));
            self.messages.push(Message::new(Role::User, parts));
        }
    }

    /// Ends the model's message. Reasoning without text or calls is dropped.
    fn close(&mut self) {
        self.is_open = false;
        self.messages.pop_if(|message| {
            message.role == Role::Assistant
                && message.content == Content::Empty
                && message.tool_calls.is_empty()
        });
    }

    /// The model's message that further items belong to, unless `is_complete` says that it takes none.
    fn open(&mut self, is_complete: impl FnOnce(&Message) -> bool) -> Option<&mut Message> {
        if !self.is_open || self.messages.last().is_none_or(is_complete) {
            self.close();
            self.attach();
            self.messages.push(Message::new(Role::Assistant, Content::Empty));
            self.is_open = true;
        }
        self.messages.last_mut()
    }

    fn say(&mut self, content: Content) {
        // Between calls and their outputs there can be no other message.
        let is_complete =
            |message: &Message| message.content != Content::Empty && message.tool_calls.is_empty();
        let Some(message) = self.open(is_complete) else { return };
        merged_messages::append(&mut message.content, content, "\n");
    }

    fn think(&mut self, text: &str, sealed: Option<SealedReasoning>) {
        let is_complete =
            |message: &Message| message.content != Content::Empty && message.tool_calls.is_empty();
        let Some(message) = self.open(is_complete) else { return };
        SealedReasoning::add_to(&mut message.extra, sealed.as_slice());
        if text.is_empty() {
            return;
        }
        match message.extra.entry(REASONING).or_insert_with(|| Value::String(String::new())) {
            Value::String(thought) if thought.is_empty() => thought.push_str(text),
            Value::String(thought) => {
                thought.push('\n');
                thought.push_str(text);
            }
            _ => {}
        }
    }

    fn call(&mut self, call: ToolCall) {
        self.calls.insert(call.id.clone(), call.name.clone());
        if let Some(message) = self.open(|_| false) {
            message.tool_calls.push(call);
        }
    }
}

#[cfg(test)]
#[path = "transcript_tests.rs"]
mod tests;
