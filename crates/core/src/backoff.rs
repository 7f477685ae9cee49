//! Exponential backoff: how long to wait before something that failed is tried again. Pure: nothing here waits.

use std::time::Duration;

/// What ran well for this long starts again with the first wait.
pub const STABLE_AFTER: Duration = Duration::from_secs(60);

/// Waits that double from the first to the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
}

/// A wait, up to a quarter more or less, so that clients do not all try again at the same moment. `chance` is between 0 and 1.
pub fn jittered(wait: Duration, chance: f64) -> Duration {
    wait.mul_f64(0.75 + chance / 2.0)
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) }
    }
}

impl Backoff {
    /// The wait after so many failures in a row, counted from 1.
    pub fn delay(self, failures: u32) -> Duration {
        let doubled = 2_u32.saturating_pow(failures.saturating_sub(1));
        self.first.saturating_mul(doubled).min(self.longest.max(self.first))
    }

    pub fn delays(self) -> BackoffDelays {
        BackoffDelays { backoff: self, failures: 0 }
    }
}

/// The waits of one operation that fails repeatedly.
#[derive(Debug, Clone)]
pub struct BackoffDelays {
    backoff: Backoff,
    /// In a row.
    failures: u32,
}

impl BackoffDelays {
    /// Counts a failure and returns the wait after it.
    pub fn next_delay(&mut self) -> Duration {
        self.failures = self.failures.saturating_add(1);
        self.backoff.delay(self.failures)
    }

    /// Whether the last attempt failed.
    pub fn has_failed(&self) -> bool {
        self.failures > 0
    }

    pub fn reset(&mut self) {
        self.failures = 0;
    }

    /// Starts again with the first wait if what failed had run for [`STABLE_AFTER`].
    pub fn after_running_for(&mut self, time: Duration) {
        if time >= STABLE_AFTER {
            self.reset();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(delays: &mut BackoffDelays, count: usize) -> Vec<u64> {
        std::iter::repeat_with(|| delays.next_delay().as_secs()).take(count).collect()
    }

    #[test]
    fn waits_double_up_to_half_a_minute() {
        let mut delays = Backoff::default().delays();
        assert_eq!(seconds(&mut delays, 8), [1, 2, 4, 8, 16, 30, 30, 30]);
    }

    #[test]
    fn a_minute_of_health_is_forgiveness_and_less_is_not() {
        let mut delays = Backoff::default().delays();
        assert_eq!(seconds(&mut delays, 3), [1, 2, 4]);
        delays.after_running_for(Duration::from_secs(59));
        assert_eq!(seconds(&mut delays, 1), [8]);
        delays.after_running_for(Duration::from_secs(60));
        assert_eq!(seconds(&mut delays, 2), [1, 2]);
    }

    #[test]
    fn attempts_are_spread_around_the_wait() {
        let waits = [0.0, 0.5, 1.0].map(|chance| jittered(Duration::from_secs(4), chance).as_secs());
        assert_eq!(waits, [3, 4, 5]);
    }

    #[test]
    fn any_number_of_failures_has_a_wait() {
        let backoff = Backoff { first: Duration::from_secs(30), longest: Duration::from_secs(3600) };
        assert_eq!(
            [0, 1, 2, 30, u32::MAX].map(|failures| backoff.delay(failures).as_secs()),
            [30, 30, 60, 3600, 3600]
        );
    }
}
