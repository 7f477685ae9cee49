//! The id of a request, `x-request-id`: in its answer, in its log lines and in its trace.

use std::fmt;
use std::sync::Arc;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use hob_core::fill_random;

pub(crate) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// The same for clients of Anthropic's API.
pub(crate) const ANTHROPIC_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");

/// Every client of Anthropic's API sends it.
pub(crate) const ANTHROPIC_VERSION: &str = "anthropic-version";

/// Longer ids are replaced, because every log line repeats the id.
const MAX_LENGTH: usize = 128;

const PREFIX: &[u8; 4] = b"req_";
const MADE_LENGTH: usize = 28;

/// The id that the caller sent, or a random one. The log, the trace and the record of the call share it.
#[derive(Debug, Clone)]
pub(crate) struct RequestId(Arc<str>);

impl RequestId {
    pub(crate) fn of(headers: &HeaderMap) -> Self {
        match headers.get(&REQUEST_ID) {
            Some(given) if is_plain(given) => RequestId(given.to_str().unwrap_or_default().into()),
            _ => RequestId::make(),
        }
    }

    fn make() -> Self {
        let mut id = [0; MADE_LENGTH];
        let (prefix, random) = id.split_at_mut(PREFIX.len());
        prefix.copy_from_slice(PREFIX);
        fill_random(random);
        // The letters are ASCII.
        RequestId(std::str::from_utf8(&id).unwrap_or_default().into())
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }

    pub(crate) fn shared(&self) -> Arc<str> {
        Arc::clone(&self.0)
    }

    pub(crate) fn header(&self) -> HeaderValue {
        // Only visible ASCII is accepted.
        HeaderValue::from_str(&self.0).unwrap_or_else(|_| HeaderValue::from_static("req_"))
    }
}

impl fmt::Display for RequestId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Visible ASCII without spaces, so that a log line stays one line with clear fields.
fn is_plain(id: &HeaderValue) -> bool {
    (1..=MAX_LENGTH).contains(&id.len()) && id.as_bytes().iter().all(u8::is_ascii_graphic)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id_for(given: &[u8]) -> String {
        let value = HeaderValue::from_bytes(given).unwrap();
        RequestId::of(&HeaderMap::from_iter([(REQUEST_ID, value)])).to_string()
    }

    #[test]
    fn a_plain_name_is_kept_and_any_other_is_replaced() {
        let longest = "x".repeat(MAX_LENGTH);
        for kept in ["7", "0198f2c4-7f5e-7000-8000-000000000000", "a=b;c", &longest] {
            assert_eq!(id_for(kept.as_bytes()), kept);
        }
        let too_long = "x".repeat(MAX_LENGTH + 1);
        for replaced in [b"".as_slice(), b"two words", "é".as_bytes(), b"tab\there", too_long.as_bytes()] {
            let made = id_for(replaced);
            assert!(made.starts_with("req_") && made.len() == MADE_LENGTH, "{made}");
        }
    }

    #[test]
    fn names_that_are_made_differ_and_fit_into_a_header() {
        let made = || RequestId::of(&HeaderMap::new());
        let (one, other) = (made(), made());
        assert_ne!(one.as_str(), other.as_str());
        assert_eq!(one.header(), one.as_str());
    }
}
