//! The limits of a key in the headers of its responses, by the names that OpenAI uses.

use std::sync::LazyLock;
use std::time::Duration;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use axum::response::Response;
use bytes::BytesMut;
use hob_keys::{ActiveKey, RateHeaders};

/// The headers of one limit.
struct LimitNames {
    limit: HeaderName,
    remaining: HeaderName,
    reset: HeaderName,
}

/// Of requests, then of tokens.
static NAMES: [LimitNames; 2] = [
    LimitNames {
        limit: HeaderName::from_static("x-ratelimit-limit-requests"),
        remaining: HeaderName::from_static("x-ratelimit-remaining-requests"),
        reset: HeaderName::from_static("x-ratelimit-reset-requests"),
    },
    LimitNames {
        limit: HeaderName::from_static("x-ratelimit-limit-tokens"),
        remaining: HeaderName::from_static("x-ratelimit-remaining-tokens"),
        reset: HeaderName::from_static("x-ratelimit-reset-tokens"),
    },
];

/// The headers that follow here and those that every response gets later.
const MORE_HEADERS: usize = 8;

/// The headers of a complete answer with limits.
pub(crate) const LIMITED_ANSWER_HEADERS: usize = MORE_HEADERS + 4;

/// Enough for the values of both limits: four numbers of at most 20 digits.
const VALUE_BYTES: usize = 80;

const TENTHS_OF_A_MINUTE: u64 = 600;

/// The times until the next minute, by tenths of a second. A value of static text is copied without an allocation, so the texts are leaked,
/// once.
static TIMES: LazyLock<Vec<HeaderValue>> = LazyLock::new(|| {
    (0..=TENTHS_OF_A_MINUTE).map(|tenths| HeaderValue::from_static(time_text(tenths).leak())).collect()
});

/// Adds what is left of the limits per minute, if the key has any.
pub(crate) fn with_rate_limits(mut response: Response, key: &ActiveKey) -> Response {
    let rates = key.rates();
    if rates.iter().all(Option::is_none) {
        return response;
    }
    let headers = response.headers_mut();
    // A map that grows when it is full moves more.
    headers.reserve(MORE_HEADERS);
    // One allocation for all values.
    let mut text = BytesMut::with_capacity(VALUE_BYTES);
    for (names, rate) in NAMES.iter().zip(rates) {
        let Some(RateHeaders { limit, remaining, resets_in }) = rate else { continue };
        push_number(&mut text, limit);
        insert_written(headers, &names.limit, &mut text);
        push_number(&mut text, remaining);
        insert_written(headers, &names.remaining, &mut text);
        if let Some(time) = time_value(tenths_of(resets_in)) {
            headers.insert(&names.reset, time);
        }
    }
    response
}

/// Adds a header whose value is what was written last.
fn insert_written(headers: &mut HeaderMap, name: &HeaderName, text: &mut BytesMut) {
    if let Ok(value) = HeaderValue::from_maybe_shared(text.split().freeze()) {
        headers.insert(name, value);
    }
}

fn push_number(text: &mut BytesMut, number: u64) {
    text.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// Rounded up, so that no one comes back too early.
fn tenths_of(left: Duration) -> u64 {
    left.as_secs().saturating_mul(10).saturating_add(left.subsec_millis().div_ceil(100).into())
}

fn time_value(tenths: u64) -> Option<HeaderValue> {
    let known = usize::try_from(tenths).ok().and_then(|tenths| TIMES.get(tenths));
    // After a clock was put back, a minute takes longer.
    known.cloned().or_else(|| HeaderValue::try_from(time_text(tenths)).ok())
}

/// As OpenAI writes it: `12.5s`, without needless digits.
fn time_text(tenths: u64) -> String {
    match (tenths / 10, tenths % 10) {
        (seconds, 0) => format!("{seconds}s"),
        (seconds, tenths) => format!("{seconds}.{tenths}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_seconds_and_never_too_short() {
        for (milliseconds, expected) in [
            (119_950, "120s"),
            (61_234, "61.3s"),
            (60_000, "60s"),
            (12_500, "12.5s"),
            (12_401, "12.5s"),
            (1, "0.1s"),
            (0, "0s"),
        ] {
            let value = time_value(tenths_of(Duration::from_millis(milliseconds))).unwrap();
            assert_eq!(value, expected);
        }
        assert_eq!(time_value(tenths_of(Duration::MAX)).unwrap(), "1844674407370955161.5s");
    }
}
