//! The limit of answers to one address, `answers_per_hour`. A program that answers every message, and does not say that it is one, would
//! otherwise get answers without end.

use std::time::Duration;

use parking_lot::Mutex;
use tokio::time::Instant;

use crate::rate_limiter::{RateCheck, RateLimiter};

const HOUR: Duration = Duration::from_secs(3_600);

/// Counts the answers by the address of the sender.
pub(super) struct AnswersPerHour(Mutex<RateLimiter>);

impl AnswersPerHour {
    pub fn new(most: usize) -> Self {
        AnswersPerHour(Mutex::new(RateLimiter::new(most, HOUR)))
    }

    /// Whether a sender may get one more answer now. The sender is not told: a note would be one more message to that program.
    pub fn allow(&self, sender: &str) -> bool {
        let checked = self.0.lock().check(sender, Instant::now());
        if checked == RateCheck::FirstOverLimit {
            tracing::warn!(
                %sender,
                "the sender of an e-mail gets no more answers for now: it may be a program that answers \
                 every message. If it is a person, raise [channel.email] answers_per_hour"
            );
        }
        checked == RateCheck::Allowed
    }
}
