//! The HTTP body of a streamed answer. [`StreamEncoder`] is the wire format; the body around it is the same for every API.
//! Pieces that are ready together are sent in one write.

use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hob_core::{CallerRole, Delta, DeltaStream, EngineError};
use http_body::{Body, Frame};
use tracing::Span;

use crate::connection::ConnectionState;
use crate::error::ApiError;
use crate::limits::body_limit::BodyPermit;
use crate::limits::concurrency_limit::ConcurrencyPermit;
use crate::poll_gate::PollGate;

/// A frame of this size is sent even if more is ready.
const MAX_FRAME_BYTES: usize = 32 << 10;

/// A buffer of at most this size is kept for the next frame. A stream that waits should hold little memory.
const MAX_KEPT_BYTES: usize = 1 << 10;

/// Writes the pieces of one answer in a wire format.
pub(crate) trait StreamEncoder: Send + Unpin + 'static {
    const CONTENT_TYPE: &'static str = "text/event-stream";

    /// Appends what `delta` adds to the stream. [`Delta::Done`] is the last one.
    fn push(&mut self, delta: &Delta, out: &mut Vec<u8>);

    /// Appends the error of a broken stream, which is the last thing in it. The stream must not look complete.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>);
}

/// The HTTP body of a streamed answer. Dropping it, as after a hang-up, cancels the engine's work.
pub(crate) struct AnswerBody<E> {
    deltas: DeltaStream,
    gate: PollGate,
    encoder: E,
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

impl<E: StreamEncoder> AnswerBody<E> {
    pub(crate) fn new(deltas: DeltaStream, encoder: E, client: StreamClient) -> Self {
        AnswerBody {
            deltas,
            gate: PollGate::new(),
            encoder,
            out: Vec::new(),
            over: false,
            client,
            span: Span::current(),
        }
    }

    /// The wire format, for what it knows of the answer.
    pub(crate) fn encoder(&mut self) -> &mut E {
        &mut self.encoder
    }

    fn take(&mut self, next: Option<Result<Delta, EngineError>>) {
        match next {
            Some(Ok(delta)) => {
                self.encoder.push(&delta, &mut self.out);
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
        self.encoder.fail(error, &mut self.out);
        self.over = true;
    }

    /// The bytes that are ready; `None` at the end.
    fn next_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if !self.over && self.client.connection.is_cut() {
            self.end_with(&ApiError::shutting_down());
        }
        while !self.over && self.out.len() < MAX_FRAME_BYTES {
            let deltas = self.deltas.as_mut();
            match self.gate.poll(context, |context| deltas.poll_next(context)) {
                Poll::Ready(next) => self.take(next),
                Poll::Pending if self.out.is_empty() => return Poll::Pending,
                Poll::Pending => break,
            }
        }
        if self.out.is_empty() {
            return Poll::Ready(None);
        }
        if self.out.capacity() > MAX_KEPT_BYTES {
            return Poll::Ready(Some(Bytes::from(mem::take(&mut self.out))));
        }
        // A copy of the right size costs less than a new buffer that grows.
        let frame = Bytes::copy_from_slice(&self.out);
        self.out.clear();
        Poll::Ready(Some(frame))
    }
}

impl<E: StreamEncoder> Body for AnswerBody<E> {
    type Data = Bytes;
    type Error = std::convert::Infallible;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let this = self.get_mut();
        // hyper polls three times for each piece, and entering a span costs more than the question.
        let can_be_cut = !this.over && this.client.connection.is_cut();
        if this.out.is_empty() && !this.over && !can_be_cut && !this.gate.is_open(context) {
            return Poll::Pending;
        }
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
#[path = "stream_tests.rs"]
mod tests;
