//! Checks whether the system clock can be trusted. Pure.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Small corrections are normal.
const TOLERANCE: SignedDuration = SignedDuration::from_secs(5);

/// How long the clock must run without a jump before earlier mistakes are undone: after boot it may be wrong until it is set over
/// the network.
const STEADY: Duration = Duration::from_secs(60);

/// Detects jumps of the clock: after one, a lease that seems expired may only not have been renewed yet, and tasks may wait for a
/// wrong time.
pub(crate) struct ClockCheck {
    last: Option<(Timestamp, Instant)>,
    distrust: Duration,
    distrusted_until: Option<Instant>,
    /// The start or the last jump, until the clock was found steady.
    unsteady_since: Option<Instant>,
}

impl ClockCheck {
    /// After a jump, the clock is not trusted for `distrust`.
    pub(crate) fn new(distrust: Duration) -> Self {
        ClockCheck { last: None, distrust, distrusted_until: None, unsteady_since: None }
    }

    /// Whether the clock, which shows `wall`, has not jumped recently.
    pub(crate) fn is_trusted(&mut self, wall: Timestamp, steady: Instant) -> bool {
        if self.last.is_none() {
            self.unsteady_since = Some(steady);
        }
        if let Some((last_wall, last_steady)) = self.last.replace((wall, steady)) {
            let shown = wall.duration_since(last_wall);
            let passed = SignedDuration::try_from(steady.saturating_duration_since(last_steady));
            let off = shown.saturating_sub(passed.unwrap_or(SignedDuration::MAX));
            if off.abs() > TOLERANCE {
                self.distrusted_until = Some(steady + self.distrust);
                self.unsteady_since = Some(steady);
            }
        }
        self.distrusted_until.is_none_or(|until| steady >= until)
    }

    /// Whether the clock has just become steady. True once after the start and after each jump.
    pub(crate) fn is_newly_steady(&mut self, steady: Instant) -> bool {
        let is_steady = self.until_steady(steady).is_some_and(|left| left.is_zero());
        if is_steady {
            self.unsteady_since = None;
        }
        is_steady
    }

    /// Counts the clock as unsteady from now on, so that the recalculation is repeated.
    pub(crate) fn mark_unsteady(&mut self, steady: Instant) {
        self.unsteady_since = Some(steady);
    }

    /// The time until the clock is steady; `None` if it is.
    pub(crate) fn until_steady(&self, steady: Instant) -> Option<Duration> {
        self.unsteady_since.map(|since| (since + STEADY).saturating_duration_since(steady))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_jump_the_clock_is_not_trusted_for_a_while() {
        let (wall, steady) = (Timestamp::UNIX_EPOCH, Instant::now());
        let mut watch = ClockCheck::new(Duration::from_secs(30));
        let mut look = |wall_seconds: i64, steady_seconds: u64| {
            let wall = wall + SignedDuration::from_secs(wall_seconds);
            watch.is_trusted(wall, steady + Duration::from_secs(steady_seconds))
        };
        assert!(look(0, 0));
        assert!(look(61, 60), "a little off is usual");
        assert!(!look(3661, 61), "an hour in a second");
        assert!(!look(3680, 80));
        assert!(look(3691, 91));
        assert!(!look(90, 92), "and back again");
        assert!(look(121, 123));
    }
    #[test]
    fn the_clock_is_steady_once_after_the_start_and_once_after_each_jump() {
        let (wall, steady) = (Timestamp::UNIX_EPOCH, Instant::now());
        let mut watch = ClockCheck::new(Duration::from_secs(30));
        let mut look = |wall_seconds: i64, steady_seconds: u64| {
            let steady = steady + Duration::from_secs(steady_seconds);
            watch.is_trusted(wall + SignedDuration::from_secs(wall_seconds), steady);
            (watch.is_newly_steady(steady), watch.until_steady(steady).map(|left| left.as_secs()))
        };
        assert_eq!(look(0, 0), (false, Some(60)));
        assert_eq!(look(59, 59), (false, Some(1)));
        assert_eq!(look(60, 60), (true, None));
        assert_eq!(look(120, 120), (false, None));
        assert_eq!(look(9_000, 130), (false, Some(60)), "a jump");
        assert_eq!(look(140, 140), (false, Some(60)), "and back again");
        assert_eq!(look(200, 200), (true, None));
    }
}
