//! The messages for a key that has not enough left.

use std::time::Duration;

use hob_core::{LimitKind, LimitReached};
use jiff::Timestamp;

use crate::account::Shortage;
use crate::limits::{Period, Unit};

/// The refusal of a request or a call of the key `name`.
pub(crate) fn limit_reached(name: &str, shortage: &Shortage, now: Timestamp) -> LimitReached {
    let Shortage { quota, amount, left, resets_in, .. } = *shortage;
    let seconds = resets_in.as_secs() + u64::from(resets_in.subsec_nanos() > 0);
    let retry_after = (amount <= quota.limit).then_some(Duration::from_secs(seconds));
    let (kind, message) = match (quota.unit, quota.period) {
        (Unit::Requests, Period::Minute) => (
            LimitKind::RequestsPerMinute,
            format!("the key '{name}' may send {} requests a minute. Try again in {seconds} s", quota.limit),
        ),
        (Unit::Tokens, Period::Minute) if retry_after.is_none() => (
            LimitKind::TokensPerMinute,
            format!(
                "this request needs about {amount} tokens, and the key '{name}' may use {} a minute. Send a shorter request, or a smaller \
                 max_tokens",
                quota.limit
            ),
        ),
        (Unit::Tokens, Period::Minute) => (
            LimitKind::TokensPerMinute,
            format!(
                "the key '{name}' may use {} tokens a minute. This request needs about {amount}, and {left} are left. Try again in {seconds} s",
                quota.limit
            ),
        ),
        _ => {
            let end = now.checked_add(resets_in).map_or_else(
                |_| String::new(),
                |end| Timestamp::from_second(end.as_second()).unwrap_or(end).to_string(),
            );
            let is_tokens = quota.unit == Unit::Tokens;
            let (state, advice) = match left > 0 && is_tokens {
                true => (
                    "has too little left",
                    format!(
                        "This request needs about {amount} tokens, and {left} are left. Send a smaller max_tokens"
                    ),
                ),
                false if is_tokens && retry_after.is_none() => (
                    "is used up",
                    format!(
                        "It begins again at {end}. This request needs about {amount} tokens, more than the whole budget. Send a \
                         smaller max_tokens then"
                    ),
                ),
                false => ("is used up", format!("It begins again at {end}")),
            };
            (LimitKind::Budget, format!("the budget of the key '{name}' {state}: {quota}. {advice}"))
        }
    };
    LimitReached { kind, message, retry_after }
}
