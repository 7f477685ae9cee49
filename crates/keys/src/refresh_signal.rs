//! Lets others ask for a refresh of the keys in memory, and wait for its end. Knows nothing of keys.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

/// Refreshes are numbered from 1.
#[derive(Debug, Clone, Copy, Default)]
struct RefreshNumbers {
    /// Whether there is a task that refreshes.
    is_followed: bool,
    begun: u64,
    ended: u64,
}

/// The refreshes of one task.
#[derive(Default)]
pub(crate) struct RefreshSignal {
    asked: Notify,
    /// Whether someone has asked since the last refresh began.
    is_asked: AtomicBool,
    numbers: watch::Sender<RefreshNumbers>,
}

impl RefreshSignal {
    /// A task refreshes from now on, or no task does.
    pub(crate) fn set_followed(&self, is_followed: bool) {
        self.numbers.send_modify(|numbers| numbers.is_followed = is_followed);
    }

    /// Begins a refresh. Returns whether someone has asked for it: then announcements of changes are not enough, because one may still be on
    /// its way.
    pub(crate) fn begin(&self) -> bool {
        self.numbers.send_modify(|numbers| numbers.begun += 1);
        // After the number: who waits for a refresh of a later number has asked before it begins.
        self.is_asked.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn end(&self) {
        self.numbers.send_modify(|numbers| numbers.ended = numbers.begun);
    }

    /// Waits until someone asks for a refresh.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Asks for a refresh now, and waits for its end.
    pub(crate) async fn refresh_now(&self) {
        // Before the number of the last refresh is read: the refresh that is awaited, or one after this call that ends before it, knows.
        self.is_asked.store(true, Ordering::Release);
        self.asked.notify_one();
        self.next().await;
    }

    /// Waits for the end of a refresh that begins after this call, if a task refreshes. One that has begun already may have read the keys.
    pub(crate) async fn next(&self) {
        let mut numbers = self.numbers.subscribe();
        let begun = numbers.borrow().begun;
        // The sender is a part of this value, so there is no error.
        let _ = numbers.wait_for(|now| now.ended > begun || !now.is_followed).await;
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Waker};

    use crate::refresh_signal::RefreshSignal;

    #[test]
    fn a_refresh_counts_only_if_it_began_after_it_was_asked_for() {
        let mut context = Context::from_waker(Waker::noop());
        let refresh = RefreshSignal::default();
        assert!(pin!(refresh.refresh_now()).poll(&mut context).is_ready(), "no task refreshes");
        assert!(pin!(refresh.asked()).poll(&mut context).is_ready());
        assert!(pin!(refresh.asked()).poll(&mut context).is_pending());

        refresh.set_followed(true);
        assert!(refresh.begin(), "someone has asked");
        let mut asking = pin!(refresh.refresh_now());
        assert!(asking.as_mut().poll(&mut context).is_pending());
        assert!(pin!(refresh.asked()).poll(&mut context).is_ready());
        refresh.end();
        assert!(asking.as_mut().poll(&mut context).is_pending(), "it may have read the keys before");
        assert!(refresh.begin(), "whatever the reason for the refresh is");
        refresh.end();
        assert!(asking.as_mut().poll(&mut context).is_ready());

        assert!(!refresh.begin(), "no one has asked since");
        refresh.end();
        let mut waiting = pin!(refresh.next());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        refresh.set_followed(false);
        assert!(waiting.as_mut().poll(&mut context).is_ready(), "no task refreshes any more");
    }
}
