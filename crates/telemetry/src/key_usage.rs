//! What each key has used, how fast its answers were, and why its calls failed. Pure.

use std::collections::HashMap;

use hob_core::UtcDay;
use serde::Serialize;

use crate::call_record::{CallOutcome, CallRecord};
use crate::figures::{CallFigures, KeyFigures};

/// The newest calls in which reasons of failures are counted. The sums of days have no reasons.
pub(crate) const REASON_CALLS: usize = 1_000;

/// Characters of a reason.
const MAX_REASON: usize = 200;

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeyUsage {
    /// `None` for calls without a named key.
    pub key: Option<String>,
    /// The day of its last call, in UTC.
    pub last_day: Option<UtcDay>,
    #[serde(flatten)]
    pub figures: CallFigures,
    /// `None` if no call among the newest 1,000 of all keys failed.
    pub frequent_failure: Option<FrequentFailure>,
}

/// The most frequent reason of failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FrequentFailure {
    pub reason: String,
    /// Among the newest calls.
    pub calls: u64,
}

/// Adds the reasons of failures to the figures.
pub(crate) fn key_usage(figures: Vec<KeyFigures>, newest: &[CallRecord]) -> Vec<KeyUsage> {
    let mut reasons = frequent_failures(newest);
    let of_key = |KeyFigures { key, last_day, figures }| KeyUsage {
        frequent_failure: reasons.remove(&key),
        key,
        last_day,
        figures,
    };
    figures.into_iter().map(of_key).collect()
}

fn frequent_failures(newest: &[CallRecord]) -> HashMap<Option<String>, FrequentFailure> {
    let mut counts: HashMap<(Option<String>, String), u64> = HashMap::new();
    for call in newest.iter().filter(|call| call.outcome == CallOutcome::Failed) {
        let reason = call.error.as_deref().unwrap_or("no reason is recorded");
        let reason = reason.chars().take(MAX_REASON).collect();
        *counts.entry((call.key.clone(), reason)).or_default() += 1;
    }
    let mut most: HashMap<Option<String>, FrequentFailure> = HashMap::new();
    for ((key, reason), calls) in counts {
        let found = FrequentFailure { reason, calls };
        let rank = |failure: &FrequentFailure| (failure.calls, std::cmp::Reverse(failure.reason.clone()));
        most.entry(key)
            .and_modify(|best| {
                // The text decides between equals, so that the answer is always the same.
                if rank(&found) > rank(best) {
                    *best = found.clone();
                }
            })
            .or_insert(found);
    }
    most
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_core::Moment;

    use super::*;

    fn call(key: Option<&str>, error: Option<&str>) -> CallRecord {
        CallRecord {
            started: Moment::from_microseconds(0),
            run: "run".to_owned(),
            source: "server".to_owned(),
            engine: "ollama".to_owned(),
            model: "m".to_owned(),
            agent: None,
            key: key.map(str::to_owned),
            end_user: None,
            request_id: None,
            route: None,
            host: None,
            queued: None,
            streamed: false,
            prompt_tokens: 0,
            completion_tokens: 0,
            cached_tokens: None,
            estimated: false,
            latency: Duration::ZERO,
            first_token: None,
            tokens_per_second: None,
            outcome: if error.is_some() { CallOutcome::Failed } else { CallOutcome::Complete },
            finish_reason: None,
            error: error.map(str::to_owned),
            cost: None,
            energy: None,
        }
    }

    #[test]
    fn each_key_has_its_most_frequent_failure() {
        let long = "x".repeat(1_000);
        let newest = [
            call(Some("ana"), Some("out of memory")),
            call(Some("ana"), Some("no answer")),
            call(Some("ana"), Some("out of memory")),
            call(Some("ben"), Some("b")),
            call(Some("ben"), Some("a")),
            call(None, Some(&long)),
            call(Some("cleo"), None),
        ];
        let of = |key: Option<&str>| KeyFigures {
            key: key.map(str::to_owned),
            last_day: Some(UtcDay::from_days(20_000)),
            figures: CallFigures::default(),
        };
        let used = key_usage(vec![of(Some("ana")), of(Some("ben")), of(Some("cleo")), of(None)], &newest);
        let failures: Vec<_> = used.into_iter().map(|used| used.frequent_failure).collect();
        let failure = |reason: &str, calls| Some(FrequentFailure { reason: reason.to_owned(), calls });
        let expected = [failure("out of memory", 2), failure("a", 1), None, failure(&long[..MAX_REASON], 1)];
        assert_eq!(failures, expected);
    }
}
