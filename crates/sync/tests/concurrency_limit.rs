//! Requests that ask for a slot at the same time, in many orders. The file under test is the server's: its own tests build the
//! whole server, which is not needed here.

#![cfg(shuttle)]

use std::future::{Future, poll_fn};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::Poll;
use std::time::Duration;

use hob_sync::{explore, future, thread};
use tokio::runtime::{Builder, Runtime};

#[path = "../../server/src/limits/concurrency_limit.rs"]
mod concurrency_limit;

/// What the limit answers instead of a slot.
mod error {
    pub(crate) type ApiResult<T> = Result<T, ApiError>;

    #[derive(Debug, PartialEq, Eq)]
    pub(crate) enum ApiError {
        QueueFull,
        QueueTimeout,
    }

    impl ApiError {
        pub(crate) fn queue_full() -> Self {
            ApiError::QueueFull
        }

        pub(crate) fn queue_timeout(_: f32) -> Self {
            ApiError::QueueTimeout
        }
    }
}

use concurrency_limit::{ConcurrencyLimit, InFlightCounts};
use error::ApiError;

/// A runtime whose clock stands still, so that no wait times out.
fn stopped_clock() -> Runtime {
    Builder::new_current_thread().enable_time().start_paused(true).build().expect("a runtime")
}

const LONG: Duration = Duration::from_secs(60);

/// Takes a slot, and counts how many are held. Whether it got one.
fn request(limit: &ConcurrencyLimit, held: &AtomicUsize, most: usize) -> bool {
    match future::block_on(limit.acquire()) {
        Ok(permit) => {
            assert!(held.fetch_add(1, Ordering::Relaxed) < most, "more requests run than there are slots");
            thread::yield_now();
            held.fetch_sub(1, Ordering::Relaxed);
            drop(permit);
            true
        }
        Err(refusal) => {
            assert_eq!(refusal, ApiError::QueueFull);
            false
        }
    }
}

/// Asks for a slot, and leaves after a moment, whether or not it got one.
fn leave_early(limit: &ConcurrencyLimit) {
    let mut acquiring = Box::pin(limit.acquire());
    let polled = future::block_on(poll_fn(|context| Poll::Ready(acquiring.as_mut().poll(context))));
    thread::yield_now();
    drop(polled);
}

#[test]
fn no_more_requests_run_than_there_are_slots_and_every_slot_returns() {
    let runtime = stopped_clock();
    let _entered = runtime.enter();
    explore(|| {
        let limit = Arc::new(ConcurrencyLimit::new(1, 1, LONG));
        let held = Arc::new(AtomicUsize::new(0));
        let ask = |_| {
            let (limit, held) = (Arc::clone(&limit), Arc::clone(&held));
            thread::spawn(move || request(&limit, &held, 1))
        };
        let threads: Vec<_> = (0..3).map(ask).collect();
        let answered = threads.into_iter().filter_map(|thread| thread.join().ok()).filter(|got| *got).count();
        assert!(answered >= 2, "one has the slot, one waits, and at most one is refused");
        assert_eq!(limit.counts(), InFlightCounts { in_flight: 0, queued: 0 });
    });
}

#[test]
fn callers_that_leave_the_queue_leave_nothing_behind() {
    let runtime = stopped_clock();
    let _entered = runtime.enter();
    explore(|| {
        let limit = Arc::new(ConcurrencyLimit::new(1, 3, LONG));
        let held = Arc::new(AtomicUsize::new(0));
        let first = future::block_on(limit.acquire()).expect("it is free");
        let leave = |_| {
            let limit = Arc::clone(&limit);
            thread::spawn(move || leave_early(&limit))
        };
        let leavers: Vec<_> = (0..2).map(leave).collect();
        let stays = {
            let (limit, held) = (Arc::clone(&limit), Arc::clone(&held));
            thread::spawn(move || request(&limit, &held, 1))
        };
        drop(first);
        for leaver in leavers {
            leaver.join().expect("no panic");
        }
        assert!(stays.join().expect("no panic"), "a slot that is given to one who leaves goes to the next");
        assert_eq!(limit.counts(), InFlightCounts { in_flight: 0, queued: 0 });
    });
}
