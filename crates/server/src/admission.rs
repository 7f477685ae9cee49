//! How many requests are worked on at once, and how many may wait for that.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::ApiError;

/// The door to the engine.
pub(crate) struct Admission {
    slots: Arc<Semaphore>,
    waiting: AtomicUsize,
    max_waiting: usize,
    queue_timeout: Duration,
}

/// The right to work on one request; given back when dropped.
pub(crate) struct Admitted(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

/// Counts one waiting request for as long as it waits, also when its caller leaves.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Admission {
    pub(crate) fn new(max_in_flight: usize, max_waiting: usize, queue_timeout: Duration) -> Self {
        let slots = Arc::new(Semaphore::new(max_in_flight.min(Semaphore::MAX_PERMITS)));
        Admission { slots, waiting: AtomicUsize::new(0), max_waiting, queue_timeout }
    }

    /// Waits for a free slot, first come first served.
    pub(crate) async fn enter(&self) -> Result<Admitted, ApiError> {
        if let Ok(permit) = Arc::clone(&self.slots).try_acquire_owned() {
            return Ok(Admitted(permit));
        }
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _counted = Waiting(&self.waiting);
        if waiting >= self.max_waiting {
            return Err(ApiError::too_many());
        }
        match tokio::time::timeout(self.queue_timeout, Arc::clone(&self.slots).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Admitted(permit)),
            Ok(Err(_)) | Err(_) => Err(ApiError::waited_in_vain(self.queue_timeout.as_secs_f32())),
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    fn status(outcome: Result<Admitted, ApiError>) -> Option<StatusCode> {
        outcome.err().map(|error| error.into_response().status())
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_their_turn_and_no_longer_than_told() {
        let admission = Arc::new(Admission::new(1, 1, Duration::from_secs(30)));
        let first = admission.enter().await.unwrap();

        let second = tokio::spawn({
            let admission = Arc::clone(&admission);
            async move { admission.enter().await }
        });
        tokio::task::yield_now().await;
        assert_eq!(status(admission.enter().await), Some(StatusCode::TOO_MANY_REQUESTS));

        drop(first);
        let second = second.await.unwrap().unwrap();
        assert_eq!(status(admission.enter().await), Some(StatusCode::SERVICE_UNAVAILABLE));
        drop(second);
        assert!(admission.enter().await.is_ok());
    }

    #[tokio::test]
    async fn one_who_leaves_the_queue_makes_room() {
        let admission = Admission::new(1, 1, Duration::from_secs(30));
        let _first = admission.enter().await.unwrap();
        for _ in 0..3 {
            assert!(tokio::time::timeout(Duration::ZERO, admission.enter()).await.is_err(), "it waits");
        }
    }
}
