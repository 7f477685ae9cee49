//! An item of a response while it is written, with the events about it.
//!
//! The constant part of the events of a piece is rendered once for an item. The text of a piece is escaped once, into the event; the
//! text of the item is put together from what was escaped.

use hob_core::{SealedReasoning, TextDelta};

use super::custom_tools;
use super::encrypted_reasoning::{sealed_block, sealed_text};
use super::numbered_events::{EventNumbers, push_event_head, push_item_head};
use super::output::{
    CalledTool, ItemBody, ItemStatus, ItemType, OutputItem, push_logprobs, push_text_part, push_typed_text,
};
use crate::json::push_json;

/// What follows the text in an event with a piece of it, up to the event's number.
const AFTER_PIECE: &[u8] = b",\"sequence_number\":";
const AFTER_TEXT: &[u8] = b",\"logprobs\":[],\"sequence_number\":";

/// The first capacity of a text.
const TEXT_BYTES: usize = 256;

/// An item that is being written.
pub(super) struct OpenItem {
    id: String,
    kind: OpenKind,
    /// Its place among the items of the response.
    index: usize,
    /// The beginning of an event with a piece of it, up to the piece.
    delta_head: Vec<u8>,
    /// A JSON string without its quotes.
    text: Vec<u8>,
    /// The same as it is, where it is needed.
    raw: String,
    /// Elements of an array.
    logprobs: Vec<u8>,
}

pub(super) enum OpenKind {
    Message,
    /// `summarizes` says that its text is a summary.
    Reasoning {
        summarizes: bool,
    },
    Call {
        index: u32,
        id: String,
        namespace: Option<String>,
        name: String,
        is_custom: bool,
    },
}

impl OpenKind {
    pub(super) fn item_type(&self) -> ItemType {
        match self {
            OpenKind::Message => ItemType::Message,
            OpenKind::Reasoning { .. } => ItemType::Reasoning,
            OpenKind::Call { is_custom: false, .. } => ItemType::FunctionCall,
            OpenKind::Call { is_custom: true, .. } => ItemType::CustomCall,
        }
    }

    fn names(&self) -> EventNames {
        match self {
            OpenKind::Message => EventNames::TEXT,
            OpenKind::Reasoning { summarizes: false } => EventNames::REASONING,
            OpenKind::Reasoning { summarizes: true } => EventNames::SUMMARY,
            OpenKind::Call { is_custom: false, .. } => EventNames::FUNCTION_CALL,
            OpenKind::Call { is_custom: true, .. } => EventNames::CUSTOM_CALL,
        }
    }
}

/// The events about an item between its first and its last one. Calls have no parts.
#[derive(Clone, Copy)]
struct EventNames {
    delta: &'static str,
    done: &'static str,
    part_added: &'static str,
    part_done: &'static str,
    /// The field with the place of the part in the item.
    position: &'static str,
}

impl EventNames {
    const TEXT: Self = EventNames {
        delta: "response.output_text.delta",
        done: "response.output_text.done",
        part_added: "response.content_part.added",
        part_done: "response.content_part.done",
        position: ",\"content_index\":0",
    };
    const REASONING: Self = EventNames {
        delta: "response.reasoning_text.delta",
        done: "response.reasoning_text.done",
        ..Self::TEXT
    };
    const SUMMARY: Self = EventNames {
        delta: "response.reasoning_summary_text.delta",
        done: "response.reasoning_summary_text.done",
        part_added: "response.reasoning_summary_part.added",
        part_done: "response.reasoning_summary_part.done",
        position: ",\"summary_index\":0",
    };
    const FUNCTION_CALL: Self = EventNames {
        delta: "response.function_call_arguments.delta",
        done: "response.function_call_arguments.done",
        part_added: "",
        part_done: "",
        position: "",
    };
    const CUSTOM_CALL: Self = EventNames {
        delta: "response.custom_tool_call_input.delta",
        done: "response.custom_tool_call_input.done",
        ..Self::FUNCTION_CALL
    };
}

impl OpenItem {
    /// An item that begins at this place among the items of its response. `suffix` is what their ids share.
    pub(super) fn new(kind: OpenKind, suffix: &str, index: usize) -> Self {
        let id = kind.item_type().id(suffix, index);
        let mut item = OpenItem {
            id,
            kind,
            index,
            delta_head: Vec::new(),
            text: Vec::with_capacity(TEXT_BYTES),
            raw: String::new(),
            logprobs: Vec::new(),
        };
        let names = item.kind.names();
        let mut head = Vec::with_capacity(192);
        item.push_head(names.delta, &mut head);
        head.extend_from_slice(names.position.as_bytes());
        head.extend_from_slice(b",\"delta\":");
        item.delta_head = head;
        item
    }

    pub(super) fn kind(&self) -> &OpenKind {
        &self.kind
    }

    /// The event that it has begun.
    pub(super) fn push_added(&self, numbers: &mut EventNumbers, out: &mut Vec<u8>) {
        push_item_head("response.output_item.added", self.index, out);
        self.body(None).push(out, &self.id, ItemStatus::InProgress);
        numbers.end(out);
    }

    /// The event that its part has begun.
    pub(super) fn push_part_added(&self, numbers: &mut EventNumbers, out: &mut Vec<u8>) {
        self.push_part(self.kind.names().part_added, numbers, out);
    }

    /// The event with a piece of its text.
    pub(super) fn push_piece(&mut self, text: &str, numbers: &mut EventNumbers, out: &mut Vec<u8>) {
        self.push_delta(text, out);
        out.extend_from_slice(AFTER_PIECE);
        numbers.end_after_label(out);
    }

    /// The event with a piece of what the model thinks. It can be sealed later, so it is also kept as it is.
    pub(super) fn push_thought(&mut self, text: &str, numbers: &mut EventNumbers, out: &mut Vec<u8>) {
        self.raw.push_str(text);
        self.push_piece(text, numbers, out);
    }

    /// The event with a piece of a message.
    pub(super) fn push_text(&mut self, piece: &TextDelta, numbers: &mut EventNumbers, out: &mut Vec<u8>) {
        self.push_delta(&piece.text, out);
        let Some(logprobs) = &piece.logprobs else {
            out.extend_from_slice(AFTER_TEXT);
            return numbers.end_after_label(out);
        };
        let mut tokens = Vec::new();
        push_logprobs(&mut tokens, logprobs);
        out.extend_from_slice(b",\"logprobs\":[");
        out.extend_from_slice(&tokens);
        out.push(b']');
        numbers.end(out);
        if !self.logprobs.is_empty() && !tokens.is_empty() {
            self.logprobs.push(b',');
        }
        self.logprobs.extend_from_slice(&tokens);
    }

    /// Takes a piece of the arguments of a custom call. The text is inside of JSON until that is complete.
    pub(super) fn hold(&mut self, arguments: &str) {
        self.raw.push_str(arguments);
    }

    /// What the model thought until now, and takes it.
    pub(super) fn take_thought(&mut self) -> String {
        std::mem::take(&mut self.raw)
    }

    /// `encrypted_content` of reasoning that a provider sealed, or that the caller stores itself.
    fn seal(&self, block: Option<&SealedReasoning>, seals: bool) -> Option<String> {
        match (&self.kind, block) {
            (OpenKind::Reasoning { .. }, Some(block)) => Some(sealed_block(block)),
            (OpenKind::Reasoning { .. }, None) if seals => Some(sealed_text(&self.raw)),
            _ => None,
        }
    }

    /// The events that it has ended.
    pub(super) fn end(
        mut self,
        ending: ItemEnding<'_>,
        numbers: &mut EventNumbers,
        out: &mut Vec<u8>,
    ) -> OutputItem {
        if matches!(self.kind, OpenKind::Call { is_custom: true, .. }) {
            let input = custom_tools::input(&self.raw);
            self.push_piece(&input, numbers, out);
        }
        let names = self.kind.names();
        match &self.kind {
            // What only its provider can read has no text.
            OpenKind::Reasoning { .. } if self.text.is_empty() => {}
            OpenKind::Message | OpenKind::Reasoning { .. } => {
                self.push_done(names, b",\"text\":\"", out);
                if matches!(self.kind, OpenKind::Message) {
                    out.extend_from_slice(b",\"logprobs\":[");
                    out.extend_from_slice(&self.logprobs);
                    out.push(b']');
                }
                numbers.end(out);
                self.push_part(names.part_done, numbers, out);
            }
            OpenKind::Call { is_custom: false, name, .. } => {
                self.push_head(names.done, out);
                out.extend_from_slice(b",\"name\":");
                push_json(out, name);
                out.extend_from_slice(b",\"arguments\":\"");
                out.extend_from_slice(&self.text);
                out.push(b'"');
                numbers.end(out);
            }
            OpenKind::Call { is_custom: true, .. } => {
                self.push_done(names, b",\"input\":\"", out);
                numbers.end(out);
            }
        }
        let seal = self.seal(ending.block, ending.seals_reasoning);
        let mut json = Vec::with_capacity(192 + self.text.len() + self.logprobs.len());
        self.body(seal.as_deref()).push(&mut json, &self.id, ending.status);
        push_item_head("response.output_item.done", self.index, out);
        out.extend_from_slice(&json);
        numbers.end(out);
        OutputItem { id: self.id, json }
    }

    fn body<'a>(&'a self, sealed: Option<&'a str>) -> ItemBody<'a> {
        let text = self.text.as_slice();
        match &self.kind {
            OpenKind::Message => ItemBody::Message { text, logprobs: &self.logprobs },
            OpenKind::Reasoning { summarizes } => {
                ItemBody::Reasoning { text, sealed, summarizes: *summarizes }
            }
            OpenKind::Call { id, namespace, name, is_custom: false, .. } => {
                let tool = CalledTool { namespace: namespace.as_deref(), name };
                ItemBody::FunctionCall { call: id, tool, arguments: text }
            }
            OpenKind::Call { id, namespace, name, is_custom: true, .. } => {
                let tool = CalledTool { namespace: namespace.as_deref(), name };
                ItemBody::CustomCall { call: id, tool, input: text }
            }
        }
    }

    /// Begins an event about the item.
    fn push_head(&self, event: &str, out: &mut Vec<u8>) {
        push_event_head(event, out);
        out.extend_from_slice(b",\"item_id\":");
        push_json(out, &self.id);
        out.extend_from_slice(b",\"output_index\":");
        out.extend_from_slice(itoa::Buffer::new().format(self.index).as_bytes());
    }

    /// Begins an event with a piece of text, which it also adds to the text of the item.
    fn push_delta(&mut self, text: &str, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.delta_head);
        let start = out.len();
        push_json(out, text);
        let escaped = out.get(start + 1..out.len().saturating_sub(1)).unwrap_or_default();
        self.text.extend_from_slice(escaped);
    }

    /// Begins the event that the text is complete. `field` is its name, up to the text.
    fn push_done(&self, names: EventNames, field: &[u8], out: &mut Vec<u8>) {
        self.push_head(names.done, out);
        out.extend_from_slice(names.position.as_bytes());
        out.extend_from_slice(field);
        out.extend_from_slice(&self.text);
        out.push(b'"');
    }

    /// An event with the part of the item.
    fn push_part(&self, event: &str, numbers: &mut EventNumbers, out: &mut Vec<u8>) {
        self.push_head(event, out);
        out.extend_from_slice(self.kind.names().position.as_bytes());
        out.extend_from_slice(b",\"part\":");
        match &self.kind {
            OpenKind::Reasoning { summarizes: true } => push_typed_text(out, "summary_text", &self.text),
            OpenKind::Reasoning { summarizes: false } => push_typed_text(out, "reasoning_text", &self.text),
            _ => push_text_part(out, &self.text, &self.logprobs),
        }
        numbers.end(out);
    }
}

/// How an item ends.
pub(super) struct ItemEnding<'a> {
    pub(super) status: ItemStatus,
    /// The block of reasoning that its provider sealed.
    pub(super) block: Option<&'a SealedReasoning>,
    /// Whether the caller stores reasoning itself.
    pub(super) seals_reasoning: bool,
}
