//! A stream from a host. It starts with its first delta, and counts as the host's active request until it ends.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{Stream, StreamExt};
use hob_core::{AnswerWarning, Delta, DeltaStream, Engine, EngineError, GenerationStream};
use tokio::time::Instant;

use super::failure_class::{RequestKind, classify};
use super::host_table::HostSlot;

/// A stream with its first delta.
pub(super) struct StartedStream {
    pub(super) warnings: Vec<AnswerWarning>,
    pub(super) first: Delta,
    pub(super) deltas: DeltaStream,
}

impl StartedStream {
    /// Waits for the first delta of a host's stream.
    pub(super) async fn of(host: &dyn Engine, stream: GenerationStream) -> Result<Self, EngineError> {
        let GenerationStream { warnings, mut deltas } = stream;
        match deltas.next().await {
            Some(first) => Ok(StartedStream { warnings, first: first?, deltas }),
            None => Err(EngineError::Interrupted {
                engine: host.key().to_owned(),
                reason: "the stream ended without an answer".to_owned(),
            }),
        }
    }
}

/// The stream as the caller gets it. Holds the slot on the host, and reports to its breaker how the answer ends.
pub(super) struct TrackedStream {
    first: Option<Delta>,
    deltas: DeltaStream,
    /// `None` once the answer is complete or broken.
    slot: Option<HostSlot>,
}

impl TrackedStream {
    pub(super) fn new(first: Delta, deltas: DeltaStream, slot: HostSlot) -> Self {
        TrackedStream { first: Some(first), deltas, slot: Some(slot) }
    }
}

impl Stream for TrackedStream {
    type Item = Result<Delta, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = match this.first.take() {
            Some(first) => Some(Ok(first)),
            None => ready!(this.deltas.as_mut().poll_next(context)),
        };
        match &next {
            Some(Ok(Delta::Done { .. })) => {
                if let Some(mut slot) = this.slot.take() {
                    slot.succeeded();
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                if let Some(mut slot) = this.slot.take() {
                    slot.failed(classify(error, RequestKind::Stream).failure, Instant::now());
                }
            }
            None => this.slot = None,
        }
        Poll::Ready(next)
    }
}
