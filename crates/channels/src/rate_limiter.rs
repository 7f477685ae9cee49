//! Limits the messages of one sender. Pure: the time is passed in.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;

/// The number of senders that are counted.
const MAX_SENDERS: usize = 4_096;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RateCheck {
    Allowed,
    /// The first message over the limit, which is reported once.
    FirstOverLimit,
    OverLimit,
}

/// Counts the messages of all senders. Each has a budget for one period, which refills evenly.
pub(crate) struct RateLimiter {
    /// The messages of a sender in one period.
    most: f64,
    period: Duration,
    senders: HashMap<String, SenderBudget>,
}

struct SenderBudget {
    /// The messages that the sender may still write.
    budget: f64,
    last: Instant,
    was_notified: bool,
}

impl RateLimiter {
    pub fn new(most: usize, period: Duration) -> Self {
        RateLimiter { most: most as f64, period, senders: HashMap::new() }
    }

    /// Counts a message of a sender, and returns whether it is within the limit.
    pub fn check(&mut self, sender: &str, now: Instant) -> RateCheck {
        if self.senders.len() >= MAX_SENDERS && !self.senders.contains_key(sender) {
            self.make_room(now);
        }
        let most = self.most;
        let known = self.senders.entry(sender.to_owned()).or_insert(SenderBudget {
            budget: most,
            last: now,
            was_notified: false,
        });
        let waited = now.saturating_duration_since(known.last).as_secs_f64() / self.period.as_secs_f64();
        known.budget = (known.budget + waited * most).min(most);
        known.last = now;
        if known.budget >= 1.0 {
            known.budget -= 1.0;
            known.was_notified = false;
            return RateCheck::Allowed;
        }
        if std::mem::replace(&mut known.was_notified, true) {
            RateCheck::OverLimit
        } else {
            RateCheck::FirstOverLimit
        }
    }

    /// Removes the senders with a full budget or, if there are none, the sender who wrote the longest time ago.
    fn make_room(&mut self, now: Instant) {
        let period = self.period;
        self.senders.retain(|_, sender| now.saturating_duration_since(sender.last) < period);
        if self.senders.len() >= MAX_SENDERS {
            let oldest =
                self.senders.iter().min_by_key(|(_, sender)| sender.last).map(|(name, _)| name.clone());
            if let Some(oldest) = oldest {
                self.senders.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: Duration = Duration::from_secs(60);

    #[tokio::test]
    async fn a_sender_over_the_limit_is_notified_once_and_others_are_not_affected() {
        let now = Instant::now();
        let mut limiter = RateLimiter::new(3, MINUTE);
        let course: Vec<RateCheck> = (0..6).map(|_| limiter.check("ann", now)).collect();
        assert_eq!(
            course,
            [
                RateCheck::Allowed,
                RateCheck::Allowed,
                RateCheck::Allowed,
                RateCheck::FirstOverLimit,
                RateCheck::OverLimit,
                RateCheck::OverLimit
            ]
        );
        assert_eq!(limiter.check("bob", now), RateCheck::Allowed);
        let later = now + Duration::from_secs(20);
        assert_eq!(limiter.check("ann", later), RateCheck::Allowed, "a third of a minute is room for one");
        assert_eq!(limiter.check("ann", later), RateCheck::FirstOverLimit, "notified again after an answer");
        let long_after = now + Duration::from_secs(3_600);
        let course: Vec<RateCheck> = (0..4).map(|_| limiter.check("ann", long_after)).collect();
        assert_eq!(
            course[2..],
            [RateCheck::Allowed, RateCheck::FirstOverLimit],
            "no more room than for a minute"
        );
    }

    #[tokio::test]
    async fn invented_senders_use_bounded_memory() {
        let now = Instant::now();
        let mut limiter = RateLimiter::new(1, MINUTE);
        for number in 0..2 * MAX_SENDERS as u64 {
            limiter.check(&number.to_string(), now + Duration::from_millis(number));
        }
        assert_eq!(limiter.senders.len(), MAX_SENDERS);
        assert_eq!(limiter.check("new", now + 2 * MINUTE), RateCheck::Allowed);
        assert!(limiter.senders.len() < MAX_SENDERS, "idle senders are removed together");
    }
}
