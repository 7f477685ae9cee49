//! A stream on its way from a host: begun once its first piece is there, and counted as the host's work until it ends.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures::{Stream, StreamExt};
use hob_core::{Delta, DeltaStream, Engine, EngineError, GenerateRequest, GenerationStream, Warning};
use tokio::time::Instant;

use super::failure_class::{Asked, verdict};
use super::host_table::Place;

/// A stream whose first piece is there.
pub(super) struct Begun {
    pub(super) warnings: Vec<Warning>,
    pub(super) first: Delta,
    pub(super) deltas: DeltaStream,
}

impl Begun {
    /// Asks, and waits for the first piece.
    pub(super) async fn with(host: &dyn Engine, request: &GenerateRequest) -> Result<Self, EngineError> {
        let GenerationStream { warnings, mut deltas } = host.stream(request).await?;
        match deltas.next().await {
            Some(first) => Ok(Begun { warnings, first: first?, deltas }),
            None => Err(EngineError::Interrupted {
                engine: host.key().to_owned(),
                reason: "it ended before it began".to_owned(),
            }),
        }
    }
}

/// The rest of it. Holds the request's place on the host, and tells the host's breaker how the answer ends.
pub(super) struct Escorted {
    first: Option<Delta>,
    deltas: DeltaStream,
    /// `None` once the answer is complete or broken.
    place: Option<Place>,
}

impl Escorted {
    pub(super) fn new(first: Delta, deltas: DeltaStream, place: Place) -> Self {
        Escorted { first: Some(first), deltas, place: Some(place) }
    }
}

impl Stream for Escorted {
    type Item = Result<Delta, EngineError>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = self.get_mut();
        let next = match this.first.take() {
            Some(first) => Some(Ok(first)),
            None => ready!(this.deltas.as_mut().poll_next(context)),
        };
        match &next {
            Some(Ok(Delta::Done { .. })) => {
                if let Some(mut place) = this.place.take() {
                    place.succeeded();
                }
            }
            Some(Ok(_)) => {}
            Some(Err(error)) => {
                if let Some(mut place) = this.place.take() {
                    place.failed(verdict(error, Asked::Stream).harm, Instant::now());
                }
            }
            None => this.place = None,
        }
        Poll::Ready(next)
    }
}
