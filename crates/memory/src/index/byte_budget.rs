//! How many bytes of files may be in memory at once. A reader takes some, and they are given back when the file is written.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

pub(super) struct ByteBudget {
    most: u64,
    taken: Mutex<u64>,
    given_back: Condvar,
}

impl ByteBudget {
    pub(super) fn new(most: u64) -> Self {
        ByteBudget { most, taken: Mutex::new(0), given_back: Condvar::new() }
    }

    /// Waits until there is room: what is larger than all there is takes all of it.
    pub(super) fn take(&self, bytes: u64) -> TakenBytes<'_> {
        let bytes = bytes.min(self.most);
        let mut taken = self.taken();
        while *taken + bytes > self.most {
            taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += bytes;
        TakenBytes { budget: self, bytes }
    }

    fn taken(&self) -> MutexGuard<'_, u64> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that were taken. Dropping it gives them back, also on a panic.
pub(super) struct TakenBytes<'a> {
    budget: &'a ByteBudget,
    bytes: u64,
}

impl Drop for TakenBytes<'_> {
    fn drop(&mut self) {
        let mut taken = self.budget.taken();
        *taken = taken.saturating_sub(self.bytes);
        self.budget.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_larger_than_everything_still_gets_its_turn() {
        let budget = ByteBudget::new(100);
        let first = budget.take(30);
        assert_eq!(first.bytes, 30);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| budget.take(1_000).bytes);
            drop(first);
            assert_eq!(waiting.join().unwrap(), 100);
        });
        assert_eq!(budget.take(100).bytes, 100);
    }
}
