//! A streamed answer as server-sent events: role, pieces, finish, usage if requested, `[DONE]`.
//!
//! [`ChatChunks`] is the sequence as a pure state machine over bytes; [`ChatStream`] is the HTTP body around it. The constant
//! part of a chunk is rendered once for a stream; for a piece only its text is escaped. Pieces that are ready together are sent
//! in one write.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hob_core::{CallerRole, Delta, DeltaStream, EngineError, TextDelta, ToolCallDelta, Usage};
use http_body::{Body, Frame};
use serde::Serialize;
use tracing::Span;

use super::chat_response::{CallForm, WireUsage};
use crate::connection::ConnectionState;
use crate::error::ApiError;
use crate::json::push_json;
use crate::limits::body_limit::BodyPermit;
use crate::limits::concurrency_limit::ConcurrencyPermit;

/// A frame of this size is sent even if more is ready.
const MAX_FRAME_BYTES: usize = 32 << 10;

/// The sequence of chunks of one answer.
pub(crate) struct ChatChunks {
    /// `data: {…,"choices":[`, the beginning of every chunk.
    head: Vec<u8>,
    include_usage: bool,
    calls: CallForm,
    /// The answers that have had their role chunk.
    introduced: Vec<u32>,
}

impl ChatChunks {
    pub(crate) fn new(id: &str, created: u64, model: &str, include_usage: bool) -> Self {
        let mut head = Vec::with_capacity(160 + model.len());
        head.extend_from_slice(b"data: {\"id\":");
        push_json(&mut head, id);
        head.extend_from_slice(b",\"object\":\"chat.completion.chunk\",\"created\":");
        push_json(&mut head, &created);
        head.extend_from_slice(b",\"model\":");
        push_json(&mut head, model);
        head.extend_from_slice(b",\"choices\":[");
        ChatChunks { head, include_usage, calls: CallForm::Tools, introduced: Vec::with_capacity(1) }
    }

    /// Sets the form of calls.
    pub(crate) fn with_calls(self, calls: CallForm) -> Self {
        ChatChunks { calls, ..self }
    }

    /// Appends what `delta` adds to the stream.
    pub(crate) fn push(&mut self, delta: &Delta, out: &mut Vec<u8>) {
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
            // A comment: clients of the API ignore it, and people can read it.
            Delta::Step(step) => {
                out.extend_from_slice(b": hob ");
                out.extend_from_slice(step.name.as_bytes());
                out.push(b' ');
                push_json(out, &step.data);
                out.extend_from_slice(b"\n\n");
            }
            Delta::Finish { choice, reason } => {
                self.begin(*choice, out);
                out.extend_from_slice(b"},\"finish_reason\":");
                push_json(out, self.calls.finish_reason(reason));
                out.extend_from_slice(b"}]}\n\n");
            }
            Delta::Done { usage } => self.done(*usage, out),
        }
    }

    /// Appends the error of a broken stream. No finish chunk and no `[DONE]` follow, so it does not look complete.
    pub(crate) fn fail(&self, error: &ApiError, out: &mut Vec<u8>) {
        out.extend_from_slice(b"data: ");
        out.extend_from_slice(&error.event());
        out.extend_from_slice(b"\n\n");
    }

    fn done(&mut self, usage: Option<Usage>, out: &mut Vec<u8>) {
        if self.include_usage {
            out.extend_from_slice(&self.head);
            out.extend_from_slice(b"],\"usage\":");
            push_json(out, &usage.map(WireUsage::from).unwrap_or_default());
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
        out.extend_from_slice(&self.head);
        out.extend_from_slice(b"{\"index\":");
        out.extend_from_slice(itoa::Buffer::new().format(choice).as_bytes());
        out.extend_from_slice(b",\"delta\":{");
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

/// The HTTP body of a streamed answer. Dropping it, as after a hang-up, cancels the engine's work.
pub(crate) struct ChatStream {
    deltas: DeltaStream,
    chunks: ChatChunks,
    /// Rendered bytes that are not sent yet.
    out: Vec<u8>,
    over: bool,
    client: StreamClient,
    /// The request's span, for log lines of the stream.
    span: Span,
}

/// The client that reads a stream.
pub(crate) struct StreamClient {
    pub(crate) role: CallerRole,
    /// Knows when the connection is cut.
    pub(crate) connection: Arc<ConnectionState>,
    /// The permits of the request: an agent can use its contents until its last turn.
    #[expect(dead_code, reason = "held for its drop")]
    pub(crate) held: (ConcurrencyPermit, BodyPermit),
}

impl ChatStream {
    pub(crate) fn new(deltas: DeltaStream, chunks: ChatChunks, client: StreamClient) -> Self {
        ChatStream { deltas, chunks, out: Vec::new(), over: false, client, span: Span::current() }
    }

    fn take(&mut self, next: Option<Result<Delta, EngineError>>) {
        match next {
            Some(Ok(delta)) => {
                self.chunks.push(&delta, &mut self.out);
                self.over = matches!(delta, Delta::Done { .. });
            }
            Some(Err(error)) => self.break_off(error),
            None => self.break_off(EngineError::Interrupted {
                engine: "the engine".to_owned(),
                reason: "it ended without a finish".to_owned(),
            }),
        }
    }

    fn break_off(&mut self, error: EngineError) {
        tracing::warn!(%error, "stream broke off");
        self.end_with(&ApiError::from(error).for_caller(self.client.role));
    }

    fn end_with(&mut self, error: &ApiError) {
        self.chunks.fail(error, &mut self.out);
        self.over = true;
    }

    /// The bytes that are ready; `None` at the end.
    fn next_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.over && self.client.connection.is_cut() {
            self.end_with(&ApiError::shutting_down());
        }
        while !self.over && self.out.len() < MAX_FRAME_BYTES {
            match self.deltas.as_mut().poll_next(context) {
                Poll::Ready(next) => self.take(next),
                Poll::Pending if self.out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        if self.out.is_empty() {
            return Poll::Ready(None);
        }
        Poll::Ready(Some(Bytes::from(mem::take(&mut self.out))))
    }
}

impl Body for ChatStream {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        // Moved out and back, because cloning a span costs more than entering it.
        let span = mem::replace(&mut this.span, Span::none());
        let frame = span.in_scope(|| this.next_frame(context));
        this.span = span;
        frame.map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.over && self.out.is_empty()
    }
}

#[cfg(test)]
#[path = "sse_tests.rs"]
mod tests;
