//! A streamed answer as server-sent events: role, pieces, finish, usage if requested, `[DONE]`.
//!
//! The constant part of a chunk is rendered once for a stream; for a piece only its text is escaped.

use hob_core::{AnswerSource, Delta, ReasoningSeal, SealedReasoning, TextDelta, ToolCallDelta, Usage};
use serde::Serialize;

use super::chat_extras::ChatExtras;
use super::chat_response::{CallForm, WireUsage};
use super::chunk_head::ChunkHead;
use crate::answer::stream::{StreamEncoder, push_step};
use crate::error::{ApiError, ErrorFormat};
use crate::json::push_json;

/// The sequence of chunks of one answer.
pub(crate) struct ChatChunks {
    head: ChunkHead,
    include_usage: bool,
    calls: CallForm,
    extras: ChatExtras,
    sources: Vec<AnswerSource>,
    /// The answers that have had their role chunk.
    introduced: Vec<u32>,
}

impl ChatChunks {
    pub(crate) fn new(id: &str, created: u64, model: &str, include_usage: bool) -> Self {
        let head = ChunkHead::new("chat.completion.chunk", id, created, model);
        ChatChunks {
            head,
            include_usage,
            calls: CallForm::Tools,
            extras: ChatExtras::default(),
            sources: Vec::new(),
            introduced: Vec::with_capacity(1),
        }
    }

    /// Adds what the caller asked for beyond OpenAI's format.
    pub(crate) fn with_extras(self, extras: ChatExtras) -> Self {
        ChatChunks { extras, ..self }
    }

    /// Sets the form of calls.
    pub(crate) fn with_calls(self, calls: CallForm) -> Self {
        ChatChunks { calls, ..self }
    }

    fn done(&mut self, usage: Option<Usage>, out: &mut Vec<u8>) {
        if self.include_usage || self.extras.sources {
            out.extend_from_slice(self.head.bytes());
            out.push(b']');
            if self.include_usage {
                out.extend_from_slice(b",\"usage\":");
                push_json(out, &usage.map(WireUsage::from).unwrap_or_default());
            }
            if self.extras.sources {
                out.extend_from_slice(b",\"sources\":");
                push_json(out, &self.sources);
            }
            out.extend_from_slice(b"}\n\n");
        }
        out.extend_from_slice(b"data: [DONE]\n\n");
    }

    /// Begins a chunk of one answer, up to the opened delta. The role chunk comes before the first one.
    fn begin(&mut self, choice: u32, out: &mut Vec<u8>) {
        if !self.introduced.contains(&choice) {
            self.introduced.push(choice);
            self.open(choice, out);
            out.extend_from_slice(b"\"role\":\"assistant\"},\"finish_reason\":null}]}\n\n");
        }
        self.open(choice, out);
    }

    fn open(&self, choice: u32, out: &mut Vec<u8>) {
        out.extend_from_slice(self.head.bytes());
        out.extend_from_slice(b"{\"index\":");
        out.extend_from_slice(itoa::Buffer::new().format(choice).as_bytes());
        out.extend_from_slice(b",\"delta\":{");
    }
}

impl StreamEncoder for ChatChunks {
    fn answered_by(&mut self, model: &str) {
        self.head.set_model(model);
    }

    fn take_sources(&mut self, sources: Vec<AnswerSource>) {
        self.sources = sources;
    }

    fn push(&mut self, delta: &Delta, out: &mut Vec<u8>) {
        match delta {
            Delta::Text(TextDelta { choice, text, logprobs }) => {
                self.begin(*choice, out);
                out.extend_from_slice(b"\"content\":");
                push_json(out, text);
                out.extend_from_slice(b"}");
                if let Some(logprobs) = logprobs {
                    out.extend_from_slice(b",\"logprobs\":");
                    push_json(out, logprobs);
                }
                out.extend_from_slice(b",\"finish_reason\":null}]}\n\n");
            }
            Delta::Reasoning { choice, text } => {
                self.begin(*choice, out);
                out.extend_from_slice(b"\"reasoning_content\":");
                push_json(out, text);
                out.extend_from_slice(b"},\"finish_reason\":null}]}\n\n");
            }
            Delta::ReasoningSeal { choice, seal } => {
                let block = match seal {
                    ReasoningSeal::Signature(signature) => {
                        SealedReasoning::Signed { text: String::new(), signature: signature.clone() }
                    }
                    ReasoningSeal::Redacted(data) => SealedReasoning::Redacted { data: data.clone() },
                };
                self.begin(*choice, out);
                out.extend_from_slice(b"\"thinking_blocks\":[");
                push_json(out, &block.to_value());
                out.extend_from_slice(b"]},\"finish_reason\":null}]}\n\n");
            }
            Delta::ToolCall(piece) if self.calls == CallForm::Function => {
                // The older form has one call only.
                if piece.index == 0 {
                    self.begin(piece.choice, out);
                    out.extend_from_slice(b"\"function_call\":");
                    push_json(out, &ToolCallChunk::new(piece).function);
                    out.extend_from_slice(b"},\"finish_reason\":null}]}\n\n");
                }
            }
            Delta::ToolCall(piece) => {
                self.begin(piece.choice, out);
                out.extend_from_slice(b"\"tool_calls\":[");
                push_json(out, &ToolCallChunk::new(piece));
                out.extend_from_slice(b"]},\"finish_reason\":null}]}\n\n");
            }
            Delta::Step(step) => match &step.tool {
                // A delta without content: clients of OpenAI ignore it.
                Some(tool) if self.extras.steps => {
                    self.begin(0, out);
                    out.extend_from_slice(b"},\"finish_reason\":null}],\"step\":");
                    push_json(out, tool);
                    out.extend_from_slice(b"}\n\n");
                }
                _ => push_step(step, out),
            },
            Delta::Finish { choice, reason } => {
                self.begin(*choice, out);
                out.extend_from_slice(b"},\"finish_reason\":");
                push_json(out, self.calls.finish_reason(reason));
                out.extend_from_slice(b"}]}\n\n");
            }
            Delta::Done { usage } => self.done(*usage, out),
        }
    }

    /// No finish chunk and no `[DONE]` follow.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&error.event(ErrorFormat::OpenAi));
        out.extend_from_slice(b"\n\n");
    }
}

#[derive(Serialize)]
struct ToolCallChunk<'a> {
    index: u32,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a str>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    kind: Option<&'static str>,
    function: Function<'a>,
}

#[derive(Serialize)]
struct Function<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<&'a str>,
    arguments: &'a str,
}

impl<'a> ToolCallChunk<'a> {
    fn new(piece: &'a ToolCallDelta) -> Self {
        ToolCallChunk {
            index: piece.index,
            id: piece.id.as_deref(),
            kind: piece.id.is_some().then_some("function"),
            function: Function { name: piece.name.as_deref(), arguments: &piece.arguments },
        }
    }
}

#[cfg(test)]
#[path = "chat_chunks_tests.rs"]
mod tests;
