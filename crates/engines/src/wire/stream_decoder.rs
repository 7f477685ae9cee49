//! From an HTTP response to a stream of deltas: read, split into frames, decode. Each provider has its decoder. A stream that ends before
//! its answer is complete ends with an error.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use hob_core::{Delta, DeltaStream, EngineError};

use super::client::Endpoint;
use super::error_response::EngineErrorBody;
use super::frames::{Frames, Framing};
use super::response::Response;

/// A provider's stream format, as a state machine over frames.
pub trait Decoder: Send + Unpin {
    const FRAMING: Framing;

    /// Decodes one frame and appends its deltas.
    fn frame(&mut self, frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError>;

    /// The end of the response. Appends `Done` if the answer is complete without a final frame.
    fn end(&mut self, deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError>;
}

/// Why a frame cannot be decoded.
#[derive(Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// It does not follow the format.
    Malformed(String),
    /// The engine reports an error, with its message, its code, and the HTTP status it stands for.
    Reported { message: String, code: Option<String>, status: Option<u16> },
    /// The answer shows that the engine ignores a field of the request.
    Unsupported { field: &'static str, hint: &'static str },
    /// The answer ended too early.
    Incomplete,
}

impl DecodeError {
    /// An error that the engine reports within an answer or instead of one.
    pub fn reported(error_body: EngineErrorBody) -> Self {
        DecodeError::Reported {
            message: error_body.message.unwrap_or_else(|| "an error without a message".to_owned()),
            code: error_body.code,
            status: error_body.status,
        }
    }

    /// The error for a frame or body that does not parse: the engine's own error if the bytes contain one, else
    /// malformed with `reason`.
    pub fn unreadable(bytes: &[u8], reason: String) -> Self {
        match EngineErrorBody::under_good_status(bytes) {
            Some(error_body) => Self::reported(error_body),
            None => DecodeError::Malformed(reason),
        }
    }

    /// Checks a block that is not an event. Some services answer a streaming request with a plain JSON error and a
    /// success status. Other blocks, such as comments, have no meaning.
    pub fn in_place_of_event(block: &[u8]) -> Result<(), Self> {
        if !block.trim_ascii_start().starts_with(b"{") && !block.trim_ascii_start().starts_with(b"[") {
            return Ok(());
        }
        match EngineErrorBody::under_good_status(block) {
            Some(error_body) => Err(Self::reported(error_body)),
            None => Ok(()),
        }
    }

    /// `started` is whether a part of the answer was already passed on: then a malformed frame interrupts the answer.
    pub fn into_engine_error(self, endpoint: &Endpoint, started: bool) -> EngineError {
        match self {
            DecodeError::Malformed(reason) if started => endpoint.interrupted(reason),
            DecodeError::Malformed(reason) => endpoint.malformed(reason),
            DecodeError::Reported { message, code, status } => EngineError::Refused {
                engine: endpoint.engine().to_owned(),
                status: status.unwrap_or(500),
                message,
                code,
                param: None,
                retry_after: None,
            },
            DecodeError::Unsupported { field, hint } => endpoint.unsupported(field, Some(hint)),
            DecodeError::Incomplete => {
                endpoint.interrupted("the connection closed before the answer was complete")
            }
        }
    }
}

/// The deltas of a response with a success status. The stream ends after `Done` or the first error, whatever the
/// engine still sends.
pub fn deltas<D: Decoder + 'static>(endpoint: &Endpoint, response: Response, decoder: D) -> DeltaStream {
    Box::pin(Deltas {
        endpoint: endpoint.clone(),
        response,
        frames: Frames::new(D::FRAMING),
        decoder,
        ready: VecDeque::new(),
        started: false,
        state: State::Reading,
    })
}

struct Deltas<D> {
    endpoint: Endpoint,
    response: Response,
    frames: Frames,
    decoder: D,
    ready: VecDeque<Delta>,
    /// Whether a delta was passed on.
    started: bool,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Reading,
    /// The response has ended; deltas that are ready can still be taken.
    Draining,
    Over,
}

impl<D: Decoder> Deltas<D> {
    /// Decodes until a delta is ready or no complete frame is left.
    fn decode_frames(&mut self) -> Result<(), DecodeError> {
        while self.ready.is_empty() {
            let Some(frame) = self.frames.next_frame() else {
                return Ok(());
            };
            self.decoder.frame(frame, &mut self.ready)?;
        }
        Ok(())
    }

    fn decode_end(&mut self) -> Result<(), DecodeError> {
        if let Some(rest) = self.frames.rest() {
            // A connection that was cut usually ends within a frame.
            self.decoder.frame(rest, &mut self.ready).map_err(|error| match error {
                DecodeError::Malformed(_) => DecodeError::Incomplete,
                other => other,
            })?;
        }
        if self.ready.iter().any(|delta| matches!(delta, Delta::Done { .. })) {
            return Ok(());
        }
        self.decoder.end(&mut self.ready)
    }

    fn fail(&mut self, error: EngineError) -> Poll<Option<Result<Delta, EngineError>>> {
        self.state = State::Over;
        // Closing stops the engine's work, however long the caller takes to read the error.
        self.response.close();
        Poll::Ready(Some(Err(error)))
    }
}

impl<D: Decoder> Stream for Deltas<D> {
    type Item = Result<Delta, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        loop {
            if this.state == State::Over {
                return Poll::Ready(None);
            }
            if this.state == State::Reading
                && let Err(error) = this.decode_frames()
            {
                let error = error.into_engine_error(&this.endpoint, this.started);
                return this.fail(error);
            }
            if let Some(delta) = this.ready.pop_front() {
                this.started = true;
                if matches!(delta, Delta::Done { .. }) {
                    this.state = State::Over;
                    // The connection can be reused once the body is read to its end, which has usually arrived
                    // already.
                    let _ = this.response.poll_chunk(context);
                }
                return Poll::Ready(Some(Ok(delta)));
            }
            if this.state == State::Draining {
                let error = this.endpoint.interrupted("the connection closed before the answer was complete");
                return this.fail(error);
            }
            match ready!(this.response.poll_read(context, this.frames.buffer())) {
                Some(Ok(())) => {
                    if let Err(error) = this.frames.check_length() {
                        let error = this.endpoint.interrupted(error.to_string());
                        return this.fail(error);
                    }
                }
                Some(Err(broken)) => {
                    let error = this.endpoint.failure(broken);
                    return this.fail(error);
                }
                None => {
                    this.state = State::Draining;
                    if let Err(error) = this.decode_end() {
                        let error = error.into_engine_error(&this.endpoint, this.started);
                        return this.fail(error);
                    }
                }
            }
        }
    }
}
