//! The limits of a key in the headers of its responses, by the names that OpenAI uses.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::Response;
use hob_keys::{ActiveKey, RateHeaders};

/// Of requests, then of tokens.
const LIMITS: [HeaderName; 2] = [
    HeaderName::from_static("x-ratelimit-limit-requests"),
    HeaderName::from_static("x-ratelimit-limit-tokens"),
];
const REMAINING: [HeaderName; 2] = [
    HeaderName::from_static("x-ratelimit-remaining-requests"),
    HeaderName::from_static("x-ratelimit-remaining-tokens"),
];
const RESETS: [HeaderName; 2] = [
    HeaderName::from_static("x-ratelimit-reset-requests"),
    HeaderName::from_static("x-ratelimit-reset-tokens"),
];

/// Adds what is left of the limits per minute, if the key has any.
pub(crate) fn with_rate_limits(mut response: Response, key: &ActiveKey) -> Response {
    for (index, rate) in key.rates().into_iter().enumerate() {
        let Some(RateHeaders { limit, remaining, resets_in }) = rate else { continue };
        let headers = response.headers_mut();
        headers.insert(&LIMITS[index], HeaderValue::from(limit));
        headers.insert(&REMAINING[index], HeaderValue::from(remaining));
        if let Ok(reset) = HeaderValue::from_str(&duration(resets_in)) {
            headers.insert(&RESETS[index], reset);
        }
    }
    response
}

/// As OpenAI writes it: `12.5s`, without needless digits.
fn duration(left: Duration) -> String {
    let tenths = left.as_millis().div_ceil(100);
    match tenths % 10 {
        0 => format!("{}s", tenths / 10),
        rest => format!("{}.{rest}s", tenths / 10),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_seconds_and_never_too_short() {
        for (milliseconds, expected) in
            [(60_000, "60s"), (12_500, "12.5s"), (12_401, "12.5s"), (1, "0.1s"), (0, "0s")]
        {
            assert_eq!(duration(Duration::from_millis(milliseconds)), expected);
        }
    }
}
