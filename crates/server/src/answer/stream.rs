//! The HTTP body of a streamed answer. [`StreamEncoder`] is the wire format; the body around it is the same for every API.
//! Pieces that are ready together are sent in one write. While the engine is silent, the client gets signs that the connection is open.

use std::cell::Cell;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures::future::BoxFuture;
use hob_app::AnswerStream;
use hob_core::{AgentStep, AnswerSource, CallerRole, Delta, DeltaStream, EngineError, LogScope};
use http_body::{Body, Frame};

use super::keep_alive::Silence;
use crate::connection::ConnectionState;
use crate::error::{ApiError, ApiResult};
use crate::json::push_json;
use crate::limits::body_limit::BodyPermit;
use crate::limits::concurrency_limit::ConcurrencyPermit;
use crate::pages::changes::CallEndNotice;
use crate::poll_gate::PollGate;

/// A frame of this size is sent even if more is ready.
const MAX_FRAME_BYTES: usize = 32 << 10;

/// A buffer of at most this size is kept for the next frame.
const MAX_KEPT_BYTES: usize = 2 * MAX_FRAME_BYTES;

thread_local! {
    /// The buffer that all streams of a thread render their frames into, one at a time. It is mostly in the processor's cache, and a stream
    /// that waits holds none.
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Writes the pieces of one answer in a wire format.
pub(crate) trait StreamEncoder: Send + Unpin + 'static {
    const CONTENT_TYPE: &'static str = "text/event-stream";

    /// The model that answers. Until this is called, nothing is pushed.
    fn answered_by(&mut self, model: &str);

    /// The passages of the memory that the model got.
    fn take_sources(&mut self, _sources: Vec<AnswerSource>) {}

    /// Appends what `delta` adds to the stream. [`Delta::Done`] is the last one.
    fn push(&mut self, delta: &Delta, out: &mut Vec<u8>);

    /// Appends the error of a broken stream, which is the last thing in it. The stream must not look complete.
    fn fail(&mut self, error: &ApiError, out: &mut Vec<u8>);

    /// Whether an error before the first piece is sent in the stream, and not as a status: clients read it only there.
    fn sends_in_stream(&self, _error: &ApiError) -> bool {
        false
    }

    /// Appends something that clients ignore. It may come at any time, also before the first piece.
    fn keep_alive(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b": keep-alive\n\n");
    }

    /// Whether the stream is over, because the encoder itself found an error and wrote it.
    fn has_failed(&self) -> bool {
        false
    }
}

/// Appends a step of an agent as a comment: clients ignore it, and people can read it.
pub(crate) fn push_step(step: &AgentStep, out: &mut Vec<u8>) {
    out.extend_from_slice(b": hob ");
    out.extend_from_slice(step.name.as_bytes());
    out.push(b' ');
    push_json(out, &step.data);
    out.extend_from_slice(b"\n\n");
}

/// An answer that was asked for and has not begun.
pub(crate) type PendingAnswer = BoxFuture<'static, ApiResult<AnswerStream>>;

/// Where the pieces come from.
enum Source {
    /// The head of the response is sent, and the first piece is not there yet.
    Pending(PendingAnswer),
    Deltas(DeltaStream),
}

/// What a source has next.
enum Next {
    Answer(ApiResult<AnswerStream>),
    Delta(Option<Result<Delta, EngineError>>),
    /// Nothing, for too long.
    Silence,
}

impl Source {
    fn poll_next(&mut self, silence: &mut Silence, context: &mut Context<'_>) -> Poll<Next> {
        let next = match self {
            Source::Pending(answer) => answer.as_mut().poll(context).map(Next::Answer),
            Source::Deltas(deltas) => deltas.as_mut().poll_next(context).map(Next::Delta),
        };
        if next.is_pending() {
            return silence.poll_too_long(context).map(|()| Next::Silence);
        }
        next
    }
}

/// The HTTP body of a streamed answer. Dropping it, as after a hang-up, cancels the engine's work.
pub(crate) struct AnswerBody<E> {
    source: Source,
    gate: PollGate,
    encoder: E,
    /// Rendered bytes that are not sent yet.
    out: Vec<u8>,
    over: bool,
    silence: Silence,
    client: StreamClient,
    /// For log lines of the stream.
    log_scope: LogScope,
}

/// The client that reads a stream.
pub(crate) struct StreamClient {
    pub(crate) role: CallerRole,
    /// Knows when the connection is cut.
    pub(crate) connection: Arc<ConnectionState>,
    /// The permits of the request: an agent can use its contents until its last turn. And what happens at its end.
    pub(crate) held: (ConcurrencyPermit, BodyPermit, Option<CallEndNotice>),
    /// The permit of large stored data that the request continues.
    pub(crate) stored: BodyPermit,
}

impl StreamClient {
    /// Releases the memory of the request's body, whose contents are not in use any more. The slot is kept.
    pub(crate) fn release_body(&mut self) {
        drop(mem::take(&mut self.held.1));
    }
}

impl<E: StreamEncoder> AnswerBody<E> {
    pub(crate) fn new(deltas: DeltaStream, encoder: E, client: StreamClient) -> Self {
        Self::of(Source::Deltas(deltas), encoder, client)
    }

    /// The body of an answer that has not begun. It begins with something that clients ignore: some wait for the first byte.
    pub(crate) fn pending(answer: PendingAnswer, encoder: E, client: StreamClient) -> Self {
        let mut body = Self::of(Source::Pending(answer), encoder, client);
        body.encoder.keep_alive(&mut body.out);
        body
    }

    /// The body of an answer that failed before its first piece.
    pub(crate) fn failed(error: ApiError, encoder: E, client: StreamClient) -> Self {
        Self::of(Source::Pending(Box::pin(std::future::ready(Err(error)))), encoder, client)
    }

    fn of(source: Source, encoder: E, client: StreamClient) -> Self {
        AnswerBody {
            source,
            gate: PollGate::new(),
            encoder,
            out: Vec::new(),
            over: false,
            silence: Silence::default(),
            client,
            log_scope: LogScope::current(),
        }
    }

    /// The wire format, for what it knows of the answer.
    pub(crate) fn encoder(&mut self) -> &mut E {
        &mut self.encoder
    }

    /// Takes an answer whose first piece is there. The head is sent, so what it would have said becomes comments.
    fn begin(&mut self, answer: ApiResult<AnswerStream>) {
        match answer {
            Ok(AnswerStream { model, warnings, sources, deltas, .. }) => {
                self.encoder.answered_by(&model);
                self.encoder.take_sources(sources);
                for warning in &warnings {
                    let step = Delta::Step(Box::new(AgentStep::warning(warning)));
                    self.encoder.push(&step, &mut self.out);
                }
                self.source = Source::Deltas(deltas);
            }
            Err(error) => {
                tracing::warn!(
                    error = error.message(),
                    "a request failed after the head of its response; the caller gets the error"
                );
                self.end_with(&error.for_caller(self.client.role));
            }
        }
    }

    fn take(&mut self, next: Option<Result<Delta, EngineError>>) {
        match next {
            Some(Ok(delta)) => {
                self.encoder.push(&delta, &mut self.out);
                self.over = matches!(delta, Delta::Done { .. }) || self.encoder.has_failed();
            }
            Some(Err(error)) => self.break_off(error),
            None => self.break_off(EngineError::Interrupted {
                engine: "the engine".to_owned(),
                reason: "it ended without a finish".to_owned(),
            }),
        }
    }

    fn break_off(&mut self, error: EngineError) {
        tracing::warn!(%error, "a stream broke off; the caller gets the error");
        self.end_with(&ApiError::from(error).for_caller(self.client.role));
    }

    fn end_with(&mut self, error: &ApiError) {
        self.encoder.fail(error, &mut self.out);
        self.over = true;
    }

    /// Renders what is ready. Pending if that was all, and ready if the frame is full or the stream is over.
    fn fill(&mut self, context: &mut Context<'_>) -> Poll<()> {
        while !self.over && self.out.len() < MAX_FRAME_BYTES {
            match ready!(self.source.poll_next(&mut self.silence, context)) {
                Next::Answer(answer) => self.begin(answer),
                Next::Delta(next) => self.take(next),
                Next::Silence if self.out.is_empty() => self.encoder.keep_alive(&mut self.out),
                Next::Silence => {}
            }
        }
        Poll::Ready(())
    }

    /// The bytes that are ready; `None` at the end.
    fn next_frame(&mut self, context: &mut Context<'_>) -> Poll<Option<Bytes>> {
        if self.out.capacity() == 0 {
            self.out = BUFFER.take();
        }
        if !self.over && self.client.connection.is_cut() {
            self.end_with(&ApiError::shutting_down());
        }
        if let Some(waker) = self.gate.enter(context)
            && self.fill(&mut Context::from_waker(&waker)).is_ready()
        {
            self.gate.open();
        }
        if self.out.is_empty() && !self.over {
            BUFFER.set(mem::take(&mut self.out));
            return Poll::Pending;
        }
        let mut rendered = mem::take(&mut self.out);
        if rendered.is_empty() {
            BUFFER.set(rendered);
            return Poll::Ready(None);
        }
        self.silence.end();
        if rendered.capacity() > MAX_KEPT_BYTES {
            return Poll::Ready(Some(Bytes::from(rendered)));
        }
        // A copy of the right size costs less than a new buffer that grows.
        let frame = Bytes::copy_from_slice(&rendered);
        rendered.clear();
        BUFFER.set(rendered);
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
        // hyper polls three times for each piece.
        let can_be_cut = !this.over && this.client.connection.is_cut();
        if this.out.is_empty() && !this.over && !can_be_cut && !this.gate.is_open(context) {
            return Poll::Pending;
        }
        // Moved out and back, because its work changes the rest of this.
        let mut log_scope = mem::take(&mut this.log_scope);
        let frame = log_scope.run(|| this.next_frame(context));
        this.log_scope = log_scope;
        frame.map(|frame| frame.map(|bytes| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.over && self.out.is_empty()
    }
}

#[cfg(test)]
#[path = "stream_tests.rs"]
mod tests;
