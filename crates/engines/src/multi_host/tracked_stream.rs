//! A stream on its way from a host: begun once its first piece is there, and counted as the host's work until it ends.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{Stream, StreamExt};
use hob_core::{Delta, DeltaStream, Engine, EngineError, GenerateRequest, GenerationStream, Warning};
use tokio::time::Instant;

use super::failure_class::{RequestKind, classify};
use super::host_table::HostSlot;

/// A stream whose first piece is there.
pub(super) struct StartedStream {
    pub(super) warnings: Vec<Warning>,
    pub(super) first: Delta,
    pub(super) deltas: DeltaStream,
}

impl StartedStream {
    /// Asks, and waits for the first piece.
    pub(super) async fn with(host: &dyn Engine, request: &GenerateRequest) -> Result<Self, EngineError> {
        let GenerationStream { warnings, mut deltas } = host.stream(request).await?;
        match deltas.next().await {
            Some(first) => Ok(StartedStream { warnings, first: first?, deltas }),
            None => Err(EngineError::Interrupted {
                engine: host.key().to_owned(),
                reason: "it ended before it began".to_owned(),
            }),
        }
    }
}

/// The rest of it. Holds the request's place on the host, and tells the host's breaker how the answer ends.
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
