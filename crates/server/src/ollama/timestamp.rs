//! Times as Ollama writes them.

use jiff::Timestamp;

/// The time that stands for "not known", as programs in Go write it.
pub(super) const UNKNOWN: &str = "0001-01-01T00:00:00Z";

/// `2026-11-15T01:37:46.552691832Z`
pub(super) fn now() -> String {
    Timestamp::now().to_string()
}

/// Seconds since 1970 as a time.
pub(super) fn of_unix(seconds: Option<i64>) -> String {
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| UNKNOWN.to_owned(), |time| time.to_string())
}
