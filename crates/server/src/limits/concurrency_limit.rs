//! Limits the requests that run at once, and those that wait.

use std::sync::Arc;
use std::time::Duration;

use hob_sync::atomic::{AtomicUsize, Ordering};
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::error::{ApiError, ApiResult};

/// The slots for running requests, and the queue before them.
pub(crate) struct ConcurrencyLimit {
    slots: Arc<Semaphore>,
    max_in_flight: usize,
    waiting: AtomicUsize,
    max_waiting: usize,
    queue_timeout: Duration,
}

/// Requests that run and requests that wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub(crate) struct InFlightCounts {
    pub(crate) in_flight: usize,
    pub(crate) queued: usize,
}

/// A slot for one request. Dropping it frees the slot.
pub(crate) struct ConcurrencyPermit(#[expect(dead_code, reason = "held for its drop")] OwnedSemaphorePermit);

/// Counts a waiting request while it waits, also if its caller leaves.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl ConcurrencyLimit {
    pub(crate) fn new(max_in_flight: usize, max_waiting: usize, queue_timeout: Duration) -> Self {
        let max_in_flight = max_in_flight.min(Semaphore::MAX_PERMITS);
        let slots = Arc::new(Semaphore::new(max_in_flight));
        ConcurrencyLimit { slots, max_in_flight, waiting: AtomicUsize::new(0), max_waiting, queue_timeout }
    }

    /// The current counts.
    pub(crate) fn counts(&self) -> InFlightCounts {
        InFlightCounts {
            in_flight: self.max_in_flight.saturating_sub(self.slots.available_permits()),
            queued: self.waiting.load(Ordering::Relaxed),
        }
    }

    /// A slot that is free now.
    pub(crate) fn try_acquire(&self) -> Option<ConcurrencyPermit> {
        Arc::clone(&self.slots).try_acquire_owned().ok().map(ConcurrencyPermit)
    }

    /// Waits for a free slot, first come first served.
    pub(crate) async fn acquire(&self) -> ApiResult<ConcurrencyPermit> {
        if let Some(permit) = self.try_acquire() {
            return Ok(permit);
        }
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _counted = Waiting(&self.waiting);
        if waiting >= self.max_waiting {
            return Err(ApiError::queue_full());
        }
        match tokio::time::timeout(self.queue_timeout, Arc::clone(&self.slots).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(ConcurrencyPermit(permit)),
            Ok(Err(_)) | Err(_) => Err(ApiError::queue_timeout(self.queue_timeout.as_secs_f32())),
        }
    }
}

// Not for `crates/sync/tests/concurrency_limit.rs`, which compiles this file without the server.
#[cfg(test)]
#[cfg(not(shuttle))]
mod tests {
    use axum::http::StatusCode;
    use axum::response::IntoResponse;

    use super::*;

    fn status(outcome: Result<ConcurrencyPermit, ApiError>) -> Option<StatusCode> {
        outcome.err().map(|error| error.into_response().status())
    }

    #[tokio::test(start_paused = true)]
    async fn requests_wait_in_order_until_the_timeout() {
        let limit = Arc::new(ConcurrencyLimit::new(1, 1, Duration::from_secs(30)));
        let first = limit.acquire().await.unwrap();

        let second = tokio::spawn({
            let limit = Arc::clone(&limit);
            async move { limit.acquire().await }
        });
        tokio::task::yield_now().await;
        assert_eq!(limit.counts(), InFlightCounts { in_flight: 1, queued: 1 });
        assert_eq!(status(limit.acquire().await), Some(StatusCode::TOO_MANY_REQUESTS));

        drop(first);
        let second = second.await.unwrap().unwrap();
        assert_eq!(status(limit.acquire().await), Some(StatusCode::SERVICE_UNAVAILABLE));
        drop(second);
        assert_eq!(limit.counts(), InFlightCounts { in_flight: 0, queued: 0 });
        assert!(limit.acquire().await.is_ok());
    }

    #[tokio::test]
    async fn one_who_leaves_the_queue_makes_room() {
        let limit = ConcurrencyLimit::new(1, 1, Duration::from_secs(30));
        let _first = limit.acquire().await.unwrap();
        for _ in 0..3 {
            assert!(tokio::time::timeout(Duration::ZERO, limit.acquire()).await.is_err(), "it waits");
        }
    }
}
