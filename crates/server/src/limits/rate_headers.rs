//! The limits of a key in the headers of its responses, by the names that OpenAI uses.

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

/// Enough for the values of both limits: four numbers and two times of at most 20 digits.
const VALUE_BYTES: usize = 128;

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
        push_duration(&mut text, resets_in);
        insert_written(headers, &names.reset, &mut text);
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

/// As OpenAI writes it: `12.5s`, without needless digits.
fn push_duration(text: &mut BytesMut, left: Duration) {
    let tenths = u64::try_from(left.as_millis().div_ceil(100)).unwrap_or(u64::MAX);
    push_number(text, tenths / 10);
    if tenths % 10 > 0 {
        text.extend_from_slice(b".");
        push_number(text, tenths % 10);
    }
    text.extend_from_slice(b"s");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_is_written_in_seconds_and_never_too_short() {
        for (milliseconds, expected) in
            [(60_000, "60s"), (12_500, "12.5s"), (12_401, "12.5s"), (1, "0.1s"), (0, "0s")]
        {
            let mut text = BytesMut::new();
            push_duration(&mut text, Duration::from_millis(milliseconds));
            assert_eq!(&text[..], expected.as_bytes());
        }
    }
}
