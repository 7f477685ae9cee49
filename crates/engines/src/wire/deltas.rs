//! From an HTTP answer to a stream of deltas: read, cut into frames, decode. The decoder is the provider's.

use std::collections::VecDeque;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::Stream;
use hob_core::{Delta, DeltaStream, EngineError};

use super::client::Endpoint;
use super::engine_error::EngineErrorBody;
use super::frames::{Frames, Framing};
use super::response::Response;

/// A provider's stream format, as a state machine over frames.
pub trait Decoder: Send + Unpin {
    const FRAMING: Framing;

    /// Takes one frame and appends what it says.
    fn frame(&mut self, frame: &[u8], deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError>;

    /// The peer closed its answer. Appends `Done` if the answer can count as complete without a word to that effect.
    fn end(&mut self, deltas: &mut VecDeque<Delta>) -> Result<(), DecodeError>;
}

/// Why a frame cannot be taken.
#[derive(Debug, PartialEq, Eq)]
pub enum DecodeError {
    /// It is not what the format promises.
    Malformed(String),
    /// The engine reports trouble, with its message, its code, and the status it would have had.
    Reported { message: String, code: Option<String>, status: Option<u16> },
    /// The answer shows that the engine does not do what a field of the request asks for.
    Unsupported { field: &'static str, hint: &'static str },
    /// The answer ended in its middle.
    Incomplete,
}

impl DecodeError {
    /// The engine's own error, in the middle of an answer or instead of one.
    pub fn reported(error_body: EngineErrorBody) -> Self {
        DecodeError::Reported {
            message: error_body.message.unwrap_or_else(|| "an error without a text".to_owned()),
            code: error_body.code,
            status: error_body.status,
        }
    }

    /// What a frame or a body means that is not of the expected form, which is why for `reason`: the engine's own error, if
    /// it holds one.
    pub fn unreadable(bytes: &[u8], reason: String) -> Self {
        match EngineErrorBody::under_good_status(bytes) {
            Some(error_body) => Self::reported(error_body),
            None => DecodeError::Malformed(reason),
        }
    }

    /// Looks at a block that is no event. Some services answer a request for a stream with a bare JSON error under a good
    /// status; anything else that is no event, such as a comment, says nothing.
    pub fn in_place_of_event(block: &[u8]) -> Result<(), Self> {
        if !block.trim_ascii_start().starts_with(b"{") && !block.trim_ascii_start().starts_with(b"[") {
            return Ok(());
        }
        match EngineErrorBody::under_good_status(block) {
            Some(error_body) => Err(Self::reported(error_body)),
            None => Ok(()),
        }
    }

    /// `started` is whether any of the answer was passed on already: then what cannot be read breaks it off.
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
            DecodeError::Incomplete => endpoint.interrupted("the connection ended before the answer did"),
        }
    }
}

/// The deltas of an accepted answer. The stream ends after `Done` or the first error, whatever the peer still sends.
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
    /// Whether anything was handed out.
    started: bool,
    state: State,
}

#[derive(PartialEq, Eq)]
enum State {
    Reading,
    /// The peer is done; what is ready can still be taken.
    Draining,
    Over,
}

impl<D: Decoder> Deltas<D> {
    /// Decodes until something is ready or the frames run out.
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
            // Half a frame is the usual sight of a connection that was cut.
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
        // The engine need not go on, however long the reader of the error takes.
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
                    // The connection can be used again once the body is read to its end, which mostly is here already.
                    let _ = this.response.poll_chunk(context);
                }
                return Poll::Ready(Some(Ok(delta)));
            }
            if this.state == State::Draining {
                let error = this.endpoint.interrupted("the connection ended before the answer did");
                return this.fail(error);
            }
            match ready!(this.response.poll_chunk(context)) {
                Some(Ok(bytes)) => {
                    if let Err(error) = this.frames.push(&bytes) {
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
