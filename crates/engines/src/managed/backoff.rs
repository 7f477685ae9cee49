//! How long to wait before a server that died is restarted.

use std::time::Duration;

/// Delays that double.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Backoff {
    pub first: Duration,
    pub longest: Duration,
    /// After a server ran for this long, the delays start again with the first one.
    pub forgiven_after: Duration,
}

impl Default for Backoff {
    fn default() -> Self {
        Backoff {
            first: Duration::from_secs(1),
            longest: Duration::from_secs(30),
            forgiven_after: Duration::from_secs(60),
        }
    }
}

impl Backoff {
    pub(super) fn delays(self) -> Delays {
        Delays { rules: self, next: self.first }
    }
}

/// The delays of one server.
#[derive(Debug)]
pub(super) struct Delays {
    rules: Backoff,
    next: Duration,
}

impl Delays {
    pub fn next_delay(&mut self) -> Duration {
        let delay = self.next.min(self.rules.longest);
        self.next = delay.saturating_mul(2);
        delay
    }

    /// Resets the delays if the server ran long enough before it died.
    pub fn after_running_for(&mut self, time: Duration) {
        if time >= self.rules.forgiven_after {
            self.next = self.rules.first;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(delays: &mut Delays, count: usize) -> Vec<u64> {
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
}
