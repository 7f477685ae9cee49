//! A streamed answer as Anthropic's events: the message, its blocks one after the other, the end.
//!
//! The constant part of a piece is rendered once for a block; for a piece only its text is escaped.

use std::sync::Arc;

use hob_core::{Delta, EngineError, FinishReason, ReasoningSeal, ToolCallDelta, Usage};
use serde::Serialize;

use super::message_body::{Ending, MessageUsage};
use super::thinking::{ThinkingDisplay, signature};
use crate::answer::new_id;
use crate::answer::stream::{StreamEncoder, push_step};
use crate::error::{ApiError, ErrorFormat};
use crate::json::push_json;

const PING: &[u8] = b"event: ping\ndata: {\"type\":\"ping\"}\n\n";

/// A block of reasoning before its first piece.
const EMPTY_THOUGHT: &[u8] = b"{\"type\":\"thinking\",\"thinking\":\"\",\"signature\":\"\"}";

/// The events of one answer.
pub(super) struct MessageEvents {
    id: Arc<str>,
    /// `message_start` and the first `ping`, from when the model is known until they are sent.
    opening: Option<Vec<u8>>,
    display: ThinkingDisplay,
    stops: Vec<String>,
    /// How many blocks there were.
    blocks: u32,
    open: Option<OpenBlock>,
    /// The calls that were begun, by their index in the answer.
    calls: Vec<u32>,
    finish: Option<FinishReason>,
    /// Nothing follows an error.
    is_broken: bool,
}

/// The block that pieces are added to.
struct OpenBlock {
    kind: BlockKind,
    index: u32,
    /// A piece up to its text.
    head: Vec<u8>,
}

#[derive(Debug, PartialEq, Eq)]
enum BlockKind {
    Text,
    /// With the reasoning that is not shown.
    Thinking {
        hidden: String,
    },
    /// Has no pieces.
    Redacted,
    /// The index of the call in the answer.
    Call(u32),
}

impl BlockKind {
    /// Begins a piece of such a block, up to its text.
    fn piece(&self) -> &'static [u8] {
        match self {
            BlockKind::Text => b",\"delta\":{\"type\":\"text_delta\",\"text\":",
            BlockKind::Thinking { .. } => b",\"delta\":{\"type\":\"thinking_delta\",\"thinking\":",
            BlockKind::Redacted => b"",
            BlockKind::Call(_) => b",\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":",
        }
    }
}

#[derive(Serialize)]
struct MessageStart<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    message: EmptyMessage<'a>,
}

/// The message before its first block.
#[derive(Serialize)]
struct EmptyMessage<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    role: &'static str,
    model: &'a str,
    content: [u8; 0],
    stop_reason: Option<&'static str>,
    stop_sequence: Option<&'static str>,
    /// Engines count at the end, so `message_delta` has the counts.
    usage: MessageUsage,
}

#[derive(Serialize)]
struct MessageEnd<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    delta: Ending<'a>,
    usage: MessageUsage,
}

impl MessageEvents {
    pub(super) fn new(id: Arc<str>, display: ThinkingDisplay, stops: Vec<String>) -> Self {
        MessageEvents {
            id,
            opening: None,
            display,
            stops,
            blocks: 0,
            open: None,
            calls: Vec::new(),
            finish: None,
            is_broken: false,
        }
    }

    /// Opens a block, after the one before it is closed. `block` is its JSON.
    fn begin(&mut self, kind: BlockKind, block: &[&[u8]], out: &mut Vec<u8>) {
        self.close(out);
        let index = self.blocks;
        self.blocks += 1;
        let mut number = itoa::Buffer::new();
        let number = number.format(index).as_bytes();
        out.extend_from_slice(
            b"event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":",
        );
        out.extend_from_slice(number);
        out.extend_from_slice(b",\"content_block\":");
        block.iter().for_each(|part| out.extend_from_slice(part));
        out.extend_from_slice(b"}\n\n");
        let mut head = Vec::with_capacity(160);
        head.extend_from_slice(
            b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":",
        );
        head.extend_from_slice(number);
        head.extend_from_slice(kind.piece());
        self.open = Some(OpenBlock { kind, index, head });
    }

    /// Closes the open block.
    fn close(&mut self, out: &mut Vec<u8>) {
        self.close_with(None, out);
    }

    /// The same. A block of reasoning ends with the signature of its provider, or else of Hob.
    fn close_with(&mut self, sealed: Option<&str>, out: &mut Vec<u8>) {
        let Some(OpenBlock { kind, index, .. }) = self.open.take() else { return };
        let mut number = itoa::Buffer::new();
        let number = number.format(index).as_bytes();
        if let BlockKind::Thinking { hidden } = kind {
            out.extend_from_slice(
                b"event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":",
            );
            out.extend_from_slice(number);
            out.extend_from_slice(b",\"delta\":{\"type\":\"signature_delta\",\"signature\":");
            match sealed {
                Some(sealed) => push_json(out, sealed),
                None => push_json(out, &signature(&hidden)),
            }
            out.extend_from_slice(b"}}\n\n");
        }
        out.extend_from_slice(
            b"event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":",
        );
        out.extend_from_slice(number);
        out.extend_from_slice(b"}\n\n");
    }

    /// A piece of the open block.
    fn piece(&self, text: &str, out: &mut Vec<u8>) {
        if let Some(open) = &self.open
            && !text.is_empty()
        {
            out.extend_from_slice(&open.head);
            push_json(out, text);
            out.extend_from_slice(b"}}\n\n");
        }
    }

    fn text(&mut self, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() {
            return;
        }
        if !matches!(&self.open, Some(OpenBlock { kind: BlockKind::Text, .. })) {
            self.begin(BlockKind::Text, &[b"{\"type\":\"text\",\"text\":\"\"}"], out);
        }
        self.piece(text, out);
    }

    fn reasoning(&mut self, text: &str, out: &mut Vec<u8>) {
        if text.is_empty() || self.display == ThinkingDisplay::Absent {
            return;
        }
        if !matches!(&self.open, Some(OpenBlock { kind: BlockKind::Thinking { .. }, .. })) {
            self.begin(BlockKind::Thinking { hidden: String::new() }, &[EMPTY_THOUGHT], out);
        }
        match (&mut self.open, self.display) {
            (Some(OpenBlock { kind: BlockKind::Thinking { hidden }, .. }), ThinkingDisplay::Omitted) => {
                hidden.push_str(text);
            }
            _ => self.piece(text, out),
        }
    }

    /// Ends a block with the seal of its provider.
    fn seal(&mut self, seal: &ReasoningSeal, out: &mut Vec<u8>) {
        if self.display == ThinkingDisplay::Absent {
            return;
        }
        match seal {
            ReasoningSeal::Signature(signature) => {
                if !matches!(&self.open, Some(OpenBlock { kind: BlockKind::Thinking { .. }, .. })) {
                    self.begin(BlockKind::Thinking { hidden: String::new() }, &[EMPTY_THOUGHT], out);
                }
                self.close_with(Some(signature), out);
            }
            ReasoningSeal::Redacted(data) => {
                let mut block = b"{\"type\":\"redacted_thinking\",\"data\":".to_vec();
                push_json(&mut block, data);
                block.push(b'}');
                self.begin(BlockKind::Redacted, &[&block], out);
                self.close(out);
            }
        }
    }

    fn call(&mut self, piece: &ToolCallDelta, out: &mut Vec<u8>) {
        let is_open = matches!(&self.open, Some(OpenBlock { kind: BlockKind::Call(index), .. }) if *index == piece.index);
        if !is_open && self.calls.contains(&piece.index) {
            // A block cannot be opened again, and without this piece the call would be another one.
            let error = EngineError::Malformed {
                engine: "the engine".to_owned(),
                reason: "it mixed the pieces of two tool calls".to_owned(),
            };
            self.fail(&error.into(), out);
            return;
        }
        if !is_open {
            self.calls.push(piece.index);
            let mut block = b"{\"type\":\"tool_use\",\"id\":".to_vec();
            match piece.id.as_deref().filter(|id| !id.is_empty()) {
                Some(id) => push_json(&mut block, id),
                None => push_json(&mut block, &new_id("toolu_")),
            }
            block.extend_from_slice(b",\"name\":");
            push_json(&mut block, piece.name.as_deref().unwrap_or_default());
            block.extend_from_slice(b",\"input\":{}}");
            self.begin(BlockKind::Call(piece.index), &[&block], out);
        }
        self.piece(&piece.arguments, out);
    }

    fn done(&mut self, usage: Option<Usage>, out: &mut Vec<u8>) {
        self.close(out);
        let finish = self.finish.take().unwrap_or(FinishReason::Stop);
        let end = MessageEnd {
            kind: "message_delta",
            delta: Ending::of(&finish, !self.calls.is_empty(), &self.stops),
            usage: usage.map(MessageUsage::from).unwrap_or_default(),
        };
        event(out, "message_delta", &end);
        out.extend_from_slice(b"event: message_stop\ndata: {\"type\":\"message_stop\"}\n\n");
    }
}

/// `message_start` and the first `ping`.
fn opening(id: &str, model: &str) -> Vec<u8> {
    let message = EmptyMessage {
        id,
        kind: "message",
        role: "assistant",
        model,
        content: [],
        stop_reason: None,
        stop_sequence: None,
        usage: MessageUsage::default(),
    };
    let mut opening = Vec::with_capacity(400 + model.len());
    event(&mut opening, "message_start", &MessageStart { kind: "message_start", message });
    opening.extend_from_slice(PING);
    opening
}

fn event(out: &mut Vec<u8>, name: &str, data: &impl Serialize) {
    out.extend_from_slice(b"event: ");
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\ndata: ");
    push_json(out, data);
    out.extend_from_slice(b"\n\n");
}

impl StreamEncoder for MessageEvents {
    fn answered_by(&mut self, model: &str) {
        self.opening = Some(opening(&self.id, model));
    }

    fn keep_alive(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(PING);
    }

    fn has_failed(&self) -> bool {
        self.is_broken
    }

    fn push(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        if self.is_broken {
            return;
        }
        if let Some(opening) = self.opening.take() {
            out.extend_from_slice(&opening);
        }
        match delta {
            Delta::Text(piece) => self.text(&piece.text, out),
            Delta::Reasoning { text, .. } => self.reasoning(text, out),
            Delta::ReasoningSeal { seal, .. } => self.seal(seal, out),
            Delta::ToolCall(piece) => self.call(piece, out),
            Delta::Step(step) => push_step(step, out),
            Delta::Finish { reason, .. } => self.finish = Some(reason.clone()),
            Delta::Done { usage } => self.done(*usage, out),
        }
    }

    /// No `message_stop` follows.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        if self.is_broken {
            return;
        }
        self.is_broken = true;
        out.extend_from_slice(b"event: error\ndata: ");
        out.extend_from_slice(&error.event(ErrorFormat::Anthropic));
        out.extend_from_slice(b"\n\n");
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
