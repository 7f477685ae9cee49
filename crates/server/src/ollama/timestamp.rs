//! Times as Ollama writes them.

use std::io::Write;

use jiff::Timestamp;

/// The zero time of Go, which means "not known".
pub(super) const UNKNOWN: &str = "0001-01-01T00:00:00Z";

/// Appends the current time, such as `2026-11-15T01:37:46.552691832Z`.
pub(super) fn push_now(out: &mut Vec<u8>) {
    // Writing into memory cannot fail.
    let _ = write!(out, "{}", Timestamp::now());
}

/// Seconds since 1970 as a time.
pub(super) fn of_unix(seconds: Option<i64>) -> String {
    let time = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
    time.map_or_else(|| UNKNOWN.to_owned(), |time| time.to_string())
}
