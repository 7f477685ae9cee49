//! How many bytes of files may be in memory at once. Whoever reads takes some; whoever has written them away gives them back.

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

    /// Waits until there is room, and says how much was taken: what is larger than all there is takes all of it.
    pub(super) fn take(&self, bytes: u64) -> u64 {
        let bytes = bytes.min(self.most);
        let mut taken = self.taken();
        while *taken + bytes > self.most {
            taken = self.given_back.wait(taken).unwrap_or_else(PoisonError::into_inner);
        }
        *taken += bytes;
        bytes
    }

    pub(super) fn give_back(&self, bytes: u64) {
        let mut taken = self.taken();
        *taken = taken.saturating_sub(bytes);
        self.given_back.notify_all();
    }

    fn taken(&self) -> MutexGuard<'_, u64> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_larger_than_everything_still_gets_its_turn() {
        let allowance = Allowance::new(100);
        assert_eq!(allowance.take(30), 30);
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| allowance.take(1_000));
            allowance.give_back(30);
            assert_eq!(waiting.join().unwrap(), 100);
        });
        allowance.give_back(100);
        assert_eq!(allowance.take(100), 100);
    }
}
