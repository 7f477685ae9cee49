//! Limits log lines that anyone can cause.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Lines that can follow each other at once.
const BURST: u32 = 10;

/// After a burst, one line in this time.
const PACE: Duration = Duration::from_secs(10);

/// A token bucket for log lines.
pub(crate) struct LogLimit(Mutex<State>);

struct State {
    /// Lines that can be written now.
    left: u32,
    /// The start of the current refill period.
    since: Option<Instant>,
    suppressed: u64,
}

impl LogLimit {
    pub(crate) fn new() -> Self {
        LogLimit(Mutex::new(State { left: BURST, since: None, suppressed: 0 }))
    }

    /// Whether to write a line at `now`, and how many were suppressed before it.
    pub(crate) fn allow(&self, now: Instant) -> Option<u64> {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let since = *state.since.get_or_insert(now);
        let saved = now.saturating_duration_since(since).as_secs() / PACE.as_secs();
        if saved > 0 {
            state.left = state.left.saturating_add(u32::try_from(saved).unwrap_or(BURST)).min(BURST);
            state.since = Some(now);
        }
        if state.left == 0 {
            state.suppressed += 1;
            return None;
        }
        state.left -= 1;
        Some(std::mem::take(&mut state.suppressed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flood_writes_few_lines_and_the_next_one_counts_the_rest() {
        let limit = LogLimit::new();
        let start = Instant::now();
        let written = (0..1000).filter(|_| limit.allow(start).is_some()).count();
        assert_eq!(written, 10);
        assert_eq!(limit.allow(start + PACE / 2), None);
        assert_eq!(limit.allow(start + PACE), Some(991));
        assert_eq!(limit.allow(start + PACE), None);
        // A quiet hour saves up a burst, and no more.
        let later = start + Duration::from_secs(3600);
        assert_eq!((0..100).filter(|_| limit.allow(later).is_some()).count(), 10);
    }
}
