//! Limits the bytes of files in memory. A reader takes some, and returns them when the file is written.

use parking_lot::{Condvar, Mutex};

pub(super) struct ByteBudget {
    most: u64,
    taken: Mutex<u64>,
    returned: Condvar,
}

impl ByteBudget {
    pub(super) fn new(most: u64) -> Self {
        ByteBudget { most, taken: Mutex::new(0), returned: Condvar::new() }
    }

    /// Waits until enough bytes are free. A larger file takes all of them.
    pub(super) fn take(&self, bytes: u64) -> TakenBytes<'_> {
        let bytes = bytes.min(self.most);
        let mut taken = self.taken.lock();
        self.returned.wait_while(&mut taken, |taken| *taken + bytes > self.most);
        *taken += bytes;
        TakenBytes { budget: self, bytes }
    }
}

/// Dropping it returns the bytes, also after a panic.
pub(super) struct TakenBytes<'a> {
    budget: &'a ByteBudget,
    bytes: u64,
}

impl Drop for TakenBytes<'_> {
    fn drop(&mut self) {
        let mut taken = self.budget.taken.lock();
        *taken = taken.saturating_sub(self.bytes);
        self.budget.returned.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_larger_than_the_limit_is_still_read() {
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
