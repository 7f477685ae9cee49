//! Lets others ask for a look at the stored keys, and wait for its end. Knows nothing of keys.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::sync::{Notify, watch};

/// Looks are numbered from 1.
#[derive(Debug, Clone, Copy, Default)]
struct LookNumbers {
    /// Whether there is a task that looks.
    is_followed: bool,
    begun: u64,
    ended: u64,
}

/// The looks of one task.
#[derive(Default)]
pub(crate) struct KeyLooks {
    asked: Notify,
    /// Whether someone has asked since the last look began.
    is_asked: AtomicBool,
    numbers: watch::Sender<LookNumbers>,
}

impl KeyLooks {
    /// A task looks from now on, or no task does.
    pub(crate) fn set_followed(&self, is_followed: bool) {
        self.numbers.send_modify(|numbers| numbers.is_followed = is_followed);
    }

    /// Begins a look. Returns whether someone has asked for it: then announcements of changes are not enough, because one may still be on
    /// its way.
    pub(crate) fn begin(&self) -> bool {
        self.numbers.send_modify(|numbers| numbers.begun += 1);
        // After the number: who waits for a look of a later number has asked before it begins.
        self.is_asked.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn end(&self) {
        self.numbers.send_modify(|numbers| numbers.ended = numbers.begun);
    }

    /// Waits until someone asks for a look.
    pub(crate) async fn asked(&self) {
        self.asked.notified().await;
    }

    /// Asks for a look now, and waits for its end.
    pub(crate) async fn look_now(&self) {
        // Before the number of the last look is read: the look that is awaited, or one after this call that ends before it, knows.
        self.is_asked.store(true, Ordering::Release);
        self.asked.notify_one();
        self.next().await;
    }

    /// Waits for the end of a look that begins after this call, if a task looks. One that has begun already may have read the keys.
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

    use crate::looks::KeyLooks;

    #[test]
    fn a_look_counts_only_if_it_began_after_it_was_asked_for() {
        let mut context = Context::from_waker(Waker::noop());
        let looks = KeyLooks::default();
        assert!(pin!(looks.look_now()).poll(&mut context).is_ready(), "no task looks");
        assert!(pin!(looks.asked()).poll(&mut context).is_ready());
        assert!(pin!(looks.asked()).poll(&mut context).is_pending());

        looks.set_followed(true);
        assert!(looks.begin(), "someone has asked");
        let mut asking = pin!(looks.look_now());
        assert!(asking.as_mut().poll(&mut context).is_pending());
        assert!(pin!(looks.asked()).poll(&mut context).is_ready());
        looks.end();
        assert!(asking.as_mut().poll(&mut context).is_pending(), "it may have read the keys before");
        assert!(looks.begin(), "whatever the reason for the look is");
        looks.end();
        assert!(asking.as_mut().poll(&mut context).is_ready());

        assert!(!looks.begin(), "no one has asked since");
        looks.end();
        let mut waiting = pin!(looks.next());
        assert!(waiting.as_mut().poll(&mut context).is_pending());
        looks.set_followed(false);
        assert!(waiting.as_mut().poll(&mut context).is_ready(), "no task looks any more");
    }
}
