//! The stream: named events over blocks of content, with `message_stop` at the end.

use std::borrow::Cow;
use std::collections::{HashMap, VecDeque};

use hob_core::{Delta, ReasoningSeal, ToolCallDelta, Usage};
use serde::Deserialize;
use serde_json::{Map, Value};

use super::answer::{WireUsage, finish_reason};
use crate::wire::error_response::specific_code;
use crate::wire::frames::Framing;
use crate::wire::sse::SseEvent;
use crate::wire::stream_decoder::{DecodeError, Decoder};

/// The kinds of events that this decoder reads.
const KINDS: [&str; 7] = [
    "message_start",
    "content_block_start",
    "content_block_delta",
    "content_block_stop",
    "message_delta",
    "message_stop",
    "error",
];

/// Any event. Each kind uses a few of the fields.
#[derive(Deserialize)]
struct WireEvent<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    /// The index of the block of content.
    #[serde(default)]
    index: u64,
    #[serde(borrow)]
    content_block: Option<Block<'a>>,
    #[serde(borrow)]
    delta: Option<Piece<'a>>,
    message: Option<Opening>,
    usage: Option<WireUsage>,
    #[serde(borrow)]
    error: Option<ErrorEvent<'a>>,
}

#[derive(Deserialize)]
struct Opening {
    usage: Option<WireUsage>,
}

#[derive(Deserialize)]
struct Block<'a> {
    #[serde(borrow, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    id: String,
    #[serde(default)]
    name: String,
    input: Option<Map<String, Value>>,
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    /// Reasoning that Anthropic hides.
    data: Option<String>,
}

/// A fragment of a block, or of the message itself.
#[derive(Deserialize)]
struct Piece<'a> {
    #[serde(borrow)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow)]
    thinking: Option<Cow<'a, str>>,
    signature: Option<String>,
    #[serde(borrow)]
    partial_json: Option<Cow<'a, str>>,
    #[serde(borrow)]
    stop_reason: Option<Cow<'a, str>>,
    stop_sequence: Option<String>,
}

#[derive(Deserialize)]
struct ErrorEvent<'a> {
    #[serde(borrow, default, rename = "type")]
    kind: Cow<'a, str>,
    #[serde(default)]
    message: String,
}

/// A tool call whose block is still open.
#[derive(Debug)]
struct OpenCall {
    /// Its index among the calls. The index of its block also counts text and reasoning.
    index: u32,
    has_arguments: bool,
}

/// Decodes one stream.
#[derive(Debug, Default)]
pub(super) struct AnthropicDecoder {
    open_calls: HashMap<u64, OpenCall>,
    calls: u32,
    usage: Option<WireUsage>,
    finished: bool,
}

impl AnthropicDecoder {
    fn count(&mut self, usage: Option<WireUsage>) {
        if let Some(later) = usage {
            self.usage = Some(self.usage.unwrap_or_default().updated(later));
        }
    }

    fn open(&mut self, index: u64, block: Block<'_>, deltas: &mut VecDeque<Delta>) {
        if block.kind == "redacted_thinking" {
            seal(block.data.map(ReasoningSeal::Redacted), deltas);
            return;
        }
        if block.kind != "tool_use" {
            say(block.text, deltas);
            think(block.thinking, deltas);
            return;
        }
        let input = block.input.filter(|input| !input.is_empty());
        let call = OpenCall { index: self.calls, has_arguments: input.is_some() };
        self.calls = self.calls.saturating_add(1);
        deltas.push_back(Delta::ToolCall(ToolCallDelta {
            choice: 0,
            index: call.index,
            id: Some(block.id),
            name: Some(block.name),
            arguments: input.map(|input| Value::Object(input).to_string()).unwrap_or_default(),
        }));
        self.open_calls.insert(index, call);
    }

    fn piece(&mut self, index: u64, piece: Piece<'_>, deltas: &mut VecDeque<Delta>) {
        say(piece.text, deltas);
        think(piece.thinking, deltas);
        let signature = piece.signature.filter(|signature| !signature.is_empty());
        seal(signature.map(ReasoningSeal::Signature), deltas);
        let fragment = piece.partial_json.filter(|json| !json.is_empty());
        // Blocks of tools that run on Anthropic's servers have arguments too. They are not the caller's tools.
        if let (Some(fragment), Some(call)) = (fragment, self.open_calls.get_mut(&index)) {
            call.has_arguments = true;
            deltas.push_back(arguments(call.index, fragment.into_owned()));
        }
    }

    fn close(&mut self, index: u64, deltas: &mut VecDeque<Delta>) {
        if let Some(call) = self.open_calls.remove(&index)
            && !call.has_arguments
        {
            // A call without arguments has no fragments, but callers expect its arguments to be JSON.
            deltas.push_back(arguments(call.index, "{}".to_owned()));
        }
    }
}

fn say(text: Option<Cow<'_, str>>, deltas: &mut VecDeque<Delta>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        deltas.push_back(Delta::text(text));
    }
}

fn think(text: Option<Cow<'_, str>>, deltas: &mut VecDeque<Delta>) {
    if let Some(text) = text.filter(|text| !text.is_empty()) {
        deltas.push_back(Delta::Reasoning { choice: 0, text: text.into_owned() });
    }
}

fn seal(seal: Option<ReasoningSeal>, deltas: &mut VecDeque<Delta>) {
    if let Some(seal) = seal {
        deltas.push_back(Delta::ReasoningSeal { choice: 0, seal });
    }
}

fn arguments(index: u32, fragment: String) -> Delta {
    Delta::ToolCall(ToolCallDelta { index, arguments: fragment, ..ToolCallDelta::default() })
}

/// Whether this is an event of an unknown kind, whose fields can be anything.
fn is_unknown(data: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Kind {
        #[serde(rename = "type")]
        kind: String,
    }
    serde_json::from_slice::<Kind>(data).is_ok_and(|Kind { kind }| !KINDS.contains(&kind.as_str()))
}

/// The HTTP status that this kind of error has outside a stream.
fn status(kind: &str) -> Option<u16> {
    Some(match kind {
        "invalid_request_error" => 400,
        "authentication_error" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" => 404,
        "request_too_large" => 413,
        "rate_limit_error" => 429,
        "api_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => return None,
    })
}

impl Decoder for AnthropicDecoder {
    const FRAMING: Framing = Framing::Blocks;

    fn frame(&mut self, frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        let Some(event) = SseEvent::read(frame) else {
            return DecodeError::in_place_of_event(frame);
        };
        let event = match serde_json::from_slice::<WireEvent<'_>>(&event.data) {
            Ok(event) => event,
            Err(_) if is_unknown(&event.data) => return Ok(()),
            Err(error) => {
                return Err(DecodeError::unreadable(
                    &event.data,
                    format!("invalid event in the stream ({error})"),
                ));
            }
        };
        match event.kind.as_ref() {
            "message_start" => self.count(event.message.and_then(|message| message.usage)),
            "content_block_start" => {
                if let Some(block) = event.content_block {
                    self.open(event.index, block, deltas);
                }
            }
            "content_block_delta" => {
                if let Some(piece) = event.delta {
                    self.piece(event.index, piece, deltas);
                }
            }
            "content_block_stop" => self.close(event.index, deltas),
            "message_delta" => {
                self.count(event.usage);
                if let Some(Piece { stop_reason: Some(reason), stop_sequence, .. }) = event.delta {
                    self.finished = true;
                    let reason = finish_reason(&reason, stop_sequence);
                    deltas.push_back(Delta::Finish { choice: 0, reason });
                }
            }
            "message_stop" if self.finished => {
                deltas.push_back(Delta::Done { usage: self.usage.map(Usage::from) })
            }
            "message_stop" => return Err(DecodeError::Incomplete),
            "error" => {
                let error = event
                    .error
                    .ok_or_else(|| DecodeError::Malformed("an error event has no error".to_owned()))?;
                return Err(DecodeError::Reported {
                    status: status(&error.kind),
                    code: specific_code(&error.kind),
                    message: error.message,
                });
            }
            // `ping`, and kinds that Anthropic adds later.
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError> {
        Err(DecodeError::Incomplete)
    }
}

#[cfg(test)]
#[path = "events_tests.rs"]
mod tests;
