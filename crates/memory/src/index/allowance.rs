//! How many bytes of files may be in memory at once. Whoever reads takes some; they are given back when they are written away.

use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

pub(super) struct Allowance {
    most: u64,
    taken: Mutex<u64>,
    given_back: Condvar,
}

impl Allowance {
    pub(super) fn new(most: u64) -> Self {
        Allowance { most, taken: Mutex::new(0), given_back: Condvar::new() }
    }

    /// Waits until there is room: what is larger than all there is takes all of it.
    pub(super) fn take(&self, bytes: u64) -> Taken<'_> {
        let bytes = bytes.min(self.most);
        let mut taken = self.taken();
        while *taken + bytes > self.most {
            taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += bytes;
        Taken { allowance: self, bytes }
    }

    fn taken(&self) -> MutexGuard<'_, u64> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Bytes that were taken. Dropping it gives them back, also when whoever has it panics.
pub(super) struct Taken<'a> {
    allowance: &'a Allowance,
    bytes: u64,
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        let mut taken = self.allowance.taken();
        *taken = taken.saturating_sub(self.bytes);
        self.allowance.given_back.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_larger_than_everything_still_gets_its_turn() {
        let allowance = Allowance::new(100);
        let first = allowance.take(30);
        assert_eq!(first.bytes, 30);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| allowance.take(1_000).bytes);
            drop(first);
            assert_eq!(waiting.join().unwrap(), 100);
        });
        assert_eq!(allowance.take(100).bytes, 100);
    }
}
