//! Whether the clock on the wall can be believed. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Clocks are corrected by little all the time.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(5);

/// Notices when the clock jumps: a lease that seems to have run out may then be one that could not be renewed yet.
pub(super) struct ClockWatch {
    last: Option<(Timestamp, Instant)>,
    patience: Duration,
    distrusted_until: Option<Instant>,
}

impl ClockWatch {
    /// After a jump nothing is believed for as long as `patience`.
    pub(super) fn new(patience: Duration) -> Self {
        ClockWatch { last: None, patience, distrusted_until: None }
    }

    /// Whether the clock, which shows `wall`, has not jumped lately.
    pub(super) fn believes(&mut self, wall: Timestamp, steady: Instant) -> bool {
        if let Some((last_wall, last_steady)) = self.last.replace((wall, steady)) {
            let shown = wall.duration_since(last_wall);
            let passed = SignedDuration::try_from(steady.saturating_duration_since(last_steady));
            let off = shown.saturating_sub(passed.unwrap_or(SignedDuration::MAX));
            if off.abs() > TOLERANCE {
                self.distrusted_until = Some(steady + self.patience);
            }
        }
        self.distrusted_until.is_none_or(|until| steady >= until)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_jump_the_clock_is_not_believed_for_a_while() {
        let (wall, steady) = (Timestamp::UNIX_EPOCH, Instant::now());
        let mut watch = ClockWatch::new(Duration::from_secs(30));
        let mut look = |wall_seconds: i64, steady_seconds: u64| {
            let wall = wall + SignedDuration::from_secs(wall_seconds);
            watch.believes(wall, steady + Duration::from_secs(steady_seconds))
        };
        assert!(look(0, 0));
        assert!(look(61, 60), "a little off is usual");
        assert!(!look(3661, 61), "an hour in a second");
        assert!(!look(3680, 80));
        assert!(look(3691, 91));
        assert!(!look(90, 92), "and back again");
        assert!(look(121, 123));
    }
}
