//! The items of an answer: reasoning, messages and calls. Written once, for the events and for the object.

use hob_core::{Answer, FinishReason, SealedReasoning, Stretch};
use serde_json::Value;

use super::custom_tools;
use super::encrypted_reasoning::{sealed_block, sealed_text};
use super::namespaces::Namespaces;
use crate::json::push_json;

/// How the items of a response are written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct OutputForm {
    /// The caller asked for a summary of the reasoning, which is where its client shows it.
    pub(super) summarizes_reasoning: bool,
    /// The caller stores the reasoning itself, sealed.
    pub(super) seals_reasoning: bool,
    /// The names of custom tools.
    pub(super) custom: Vec<String>,
    /// The tools whose calls have a namespace.
    pub(super) namespaces: Namespaces,
}

/// An item that is complete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OutputItem {
    pub(super) id: String,
    pub(super) json: Vec<u8>,
}

/// What an item is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemType {
    Message,
    Reasoning,
    FunctionCall,
    CustomCall,
}

impl ItemType {
    fn prefix(self) -> &'static str {
        match self {
            ItemType::Message => "msg",
            ItemType::Reasoning => "rs",
            ItemType::FunctionCall => "fc",
            ItemType::CustomCall => "ctc",
        }
    }

    /// The id of an item. It contains the id of its response, so that a stored item is found by its id alone.
    pub(super) fn id(self, suffix: &str, index: usize) -> String {
        format!("{}_{suffix}{index}", self.prefix())
    }
}

/// The id of the response that an item belongs to, if its id has one.
pub(super) fn response_of(item: &str) -> Option<String> {
    let (_, rest) = item.split_once('_')?;
    let suffix = rest.get(..RANDOM_CHARS)?;
    Some(format!("resp_{suffix}"))
}

/// The random characters of an id that `random_id` makes.
const RANDOM_CHARS: usize = 24;

/// Whether an item is being written, or how it ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ItemStatus {
    InProgress,
    Completed,
    Incomplete,
}

impl ItemStatus {
    fn as_str(self) -> &'static str {
        match self {
            ItemStatus::InProgress => "in_progress",
            ItemStatus::Completed => "completed",
            ItemStatus::Incomplete => "incomplete",
        }
    }

    /// The status of the last item of an answer that ended for `reason`.
    pub(super) fn after(reason: Option<&FinishReason>) -> Self {
        match reason {
            Some(FinishReason::Length | FinishReason::ContentFilter) => ItemStatus::Incomplete,
            _ => ItemStatus::Completed,
        }
    }
}

/// The contents of an item. The texts are JSON strings without their quotes.
#[derive(Debug, Clone, Copy)]
pub(super) enum ItemBody<'a> {
    Message { text: &'a [u8], logprobs: &'a [u8] },
    Reasoning { text: &'a [u8], sealed: Option<&'a str>, summarizes: bool },
    FunctionCall { call: &'a str, tool: CalledTool<'a>, arguments: &'a [u8] },
    CustomCall { call: &'a str, tool: CalledTool<'a>, input: &'a [u8] },
}

/// A tool as its caller knows it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CalledTool<'a> {
    pub(super) namespace: Option<&'a str>,
    pub(super) name: &'a str,
}

impl CalledTool<'_> {
    fn push(self, out: &mut Vec<u8>) {
        out.extend_from_slice(b",\"name\":");
        push_json(out, self.name);
        if let Some(namespace) = self.namespace {
            out.extend_from_slice(b",\"namespace\":");
            push_json(out, namespace);
        }
    }
}

impl ItemBody<'_> {
    /// Appends the item. One that has just begun has no content yet.
    pub(super) fn push(&self, out: &mut Vec<u8>, id: &str, status: ItemStatus) {
        out.extend_from_slice(b"{\"id\":");
        push_json(out, id);
        out.extend_from_slice(b",\"status\":\"");
        out.extend_from_slice(status.as_str().as_bytes());
        out.push(b'"');
        let has_begun = status != ItemStatus::InProgress;
        match *self {
            ItemBody::Message { text, logprobs } => {
                out.extend_from_slice(b",\"type\":\"message\",\"role\":\"assistant\",\"content\":[");
                if has_begun {
                    push_text_part(out, text, logprobs);
                }
                out.extend_from_slice(b"]}");
            }
            ItemBody::Reasoning { text, sealed, summarizes } => {
                out.extend_from_slice(b",\"type\":\"reasoning\",\"summary\":[");
                // What only its provider can read has no text.
                let has_text = has_begun && !text.is_empty();
                if has_text && summarizes {
                    push_typed_text(out, "summary_text", text);
                }
                out.push(b']');
                if !summarizes {
                    out.extend_from_slice(b",\"content\":[");
                    if has_text {
                        push_typed_text(out, "reasoning_text", text);
                    }
                    out.push(b']');
                }
                if let Some(sealed) = sealed {
                    out.extend_from_slice(b",\"encrypted_content\":");
                    push_json(out, sealed);
                }
                out.push(b'}');
            }
            ItemBody::FunctionCall { call, tool, arguments } => {
                out.extend_from_slice(b",\"type\":\"function_call\",\"call_id\":");
                push_json(out, call);
                tool.push(out);
                out.extend_from_slice(b",\"arguments\":\"");
                out.extend_from_slice(arguments);
                out.extend_from_slice(b"\"}");
            }
            ItemBody::CustomCall { call, tool, input } => {
                out.extend_from_slice(b",\"type\":\"custom_tool_call\",\"call_id\":");
                push_json(out, call);
                tool.push(out);
                out.extend_from_slice(b",\"input\":\"");
                out.extend_from_slice(input);
                out.extend_from_slice(b"\"}");
            }
        }
    }
}

/// Appends the part of a message. `text` is a JSON string without its quotes, `logprobs` the elements of an array.
pub(super) fn push_text_part(out: &mut Vec<u8>, text: &[u8], logprobs: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"output_text\",\"annotations\":[],\"logprobs\":[");
    out.extend_from_slice(logprobs);
    out.extend_from_slice(b"],\"text\":\"");
    out.extend_from_slice(text);
    out.extend_from_slice(b"\"}");
}

/// Appends a part that has a type and a text.
pub(super) fn push_typed_text(out: &mut Vec<u8>, kind: &str, text: &[u8]) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(kind.as_bytes());
    out.extend_from_slice(b"\",\"text\":\"");
    out.extend_from_slice(text);
    out.extend_from_slice(b"\"}");
}

/// The text as a JSON string without its quotes.
pub(super) fn escaped(text: &str) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 16);
    push_json(&mut out, text);
    out.pop();
    out.drain(..out.len().min(1));
    out
}

/// The tokens of chat-completions log probabilities.
fn tokens_of(logprobs: &Value) -> impl Iterator<Item = &Value> {
    logprobs["content"].as_array().into_iter().flatten()
}

/// Appends the tokens of chat-completions log probabilities as elements of an array.
pub(super) fn push_logprobs(out: &mut Vec<u8>, logprobs: &Value) {
    tokens_of(logprobs).for_each(|token| push_logprob(out, token));
}

fn push_logprob(out: &mut Vec<u8>, token: &Value) {
    if !out.is_empty() {
        out.push(b',');
    }
    push_json(out, token);
}

/// The next tokens, with about so many bytes of text, as elements of an array.
fn logprobs_of<'a>(bytes: usize, tokens: &mut impl Iterator<Item = &'a Value>) -> Vec<u8> {
    let (mut out, mut taken) = (Vec::new(), 0);
    while taken < bytes
        && let Some(token) = tokens.next()
    {
        taken += token["token"].as_str().map_or(0, str::len);
        push_logprob(&mut out, token);
    }
    out
}

/// The items of a whole answer.
#[derive(Debug)]
pub(super) struct OutputItems<'a> {
    suffix: &'a str,
    status: ItemStatus,
    items: Vec<OutputItem>,
}

impl OutputItems<'_> {
    pub(super) fn of(answer: &Answer, suffix: &str, form: &OutputForm) -> Vec<OutputItem> {
        let status = ItemStatus::after(Some(&answer.finish_reason));
        let has_calls = !answer.tool_calls.is_empty();
        let mut built = OutputItems { suffix, status: ItemStatus::Completed, items: Vec::new() };
        let stretches = answer.stretches();
        let mut tokens = answer.logprobs.iter().flat_map(tokens_of);
        for (index, stretch) in stretches.iter().enumerate() {
            let is_last = index + 1 == stretches.len() && !has_calls;
            // Only the last item can be cut off.
            let last = if is_last && stretch.text.is_empty() { status } else { ItemStatus::Completed };
            built.push_reasoning(*stretch, form, last);
            if !stretch.text.is_empty() || (built.items.is_empty() && is_last) {
                built.status = if is_last { status } else { ItemStatus::Completed };
                // A message has its own tokens, and the last one all that are left.
                let bytes = if index + 1 == stretches.len() { usize::MAX } else { stretch.text.len() };
                let logprobs = logprobs_of(bytes, &mut tokens);
                let body = ItemBody::Message { text: &escaped(stretch.text), logprobs: &logprobs };
                built.push(ItemType::Message, body);
            }
        }
        for (index, call) in answer.tool_calls.iter().enumerate() {
            if index + 1 == answer.tool_calls.len() {
                built.status = status;
            }
            let (namespace, name) = form.namespaces.split(&call.name);
            let (id, tool) = (call.id.as_str(), CalledTool { namespace, name });
            if form.custom.contains(&call.name) {
                let input = escaped(&custom_tools::input(&call.arguments));
                built.push(ItemType::CustomCall, ItemBody::CustomCall { call: id, tool, input: &input });
            } else {
                let arguments = escaped(&call.arguments);
                let body = ItemBody::FunctionCall { call: id, tool, arguments: &arguments };
                built.push(ItemType::FunctionCall, body);
            }
        }
        built.items
    }

    /// What the model thought: an item for each block that a provider sealed, and one for the rest. `last` is how the rest ended.
    fn push_reasoning(&mut self, stretch: Stretch<'_>, form: &OutputForm, last: ItemStatus) {
        let mut rest = stretch.reasoning;
        for block in stretch.sealed {
            let text = match block {
                SealedReasoning::Signed { text, .. } => text.as_str(),
                SealedReasoning::Redacted { .. } => "",
            };
            rest = rest.strip_prefix(text).unwrap_or(rest);
            self.push_thought(text, Some(&sealed_block(block)), form);
        }
        if !rest.is_empty() {
            self.status = last;
            self.push_thought(rest, form.seals_reasoning.then(|| sealed_text(rest)).as_deref(), form);
        }
    }

    fn push_thought(&mut self, text: &str, sealed: Option<&str>, form: &OutputForm) {
        let text = escaped(text);
        let body = ItemBody::Reasoning { text: &text, sealed, summarizes: form.summarizes_reasoning };
        self.push(ItemType::Reasoning, body);
    }

    fn push(&mut self, kind: ItemType, body: ItemBody<'_>) {
        let id = kind.id(self.suffix, self.items.len());
        let mut json = Vec::with_capacity(256);
        body.push(&mut json, &id, self.status);
        self.items.push(OutputItem { id, json });
    }
}
