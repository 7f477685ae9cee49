//! Limits how many programs run at the same time, and how many callers wait for that.

use parking_lot::{Condvar, Mutex};

#[derive(Debug)]
struct SlotCounts {
    taken: usize,
    waiting: usize,
}

#[derive(Debug)]
pub struct ProcessSlots {
    most: usize,
    most_waiting: usize,
    counts: Mutex<SlotCounts>,
    freed: Condvar,
}

impl ProcessSlots {
    pub const fn new(most: usize, most_waiting: usize) -> Self {
        let counts = Mutex::new(SlotCounts { taken: 0, waiting: 0 });
        ProcessSlots { most, most_waiting, counts, freed: Condvar::new() }
    }

    /// Waits for a slot; `None` if too many callers wait already.
    pub fn take(&self) -> Option<TakenSlot<'_>> {
        let mut counts = self.counts.lock();
        if counts.taken >= self.most {
            if counts.waiting >= self.most_waiting {
                return None;
            }
            counts.waiting += 1;
            self.freed.wait_while(&mut counts, |counts| counts.taken >= self.most);
            counts.waiting -= 1;
        }
        counts.taken += 1;
        Some(TakenSlot { slots: self })
    }
}

/// Dropping it frees the slot, also after a panic.
#[derive(Debug)]
pub struct TakenSlot<'a> {
    slots: &'a ProcessSlots,
}

impl Drop for TakenSlot<'_> {
    fn drop(&mut self) {
        self.slots.counts.lock().taken -= 1;
        self.slots.freed.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    use super::*;

    #[test]
    fn no_more_than_the_limit_run_and_wait() {
        let slots = ProcessSlots::new(2, 1);
        let (first, second) = (slots.take().unwrap(), slots.take().unwrap());
        thread::scope(|scope| {
            let third = scope.spawn(|| slots.take().is_some());
            while slots.counts.lock().waiting == 0 {
                thread::yield_now();
            }
            assert!(slots.take().is_none(), "a second caller would wait");
            assert!(!third.is_finished());
            drop(first);
            assert!(third.join().unwrap());
        });
        drop(second);
        let counts = slots.counts.lock();
        assert_eq!((counts.taken, counts.waiting), (0, 0));
    }
}
