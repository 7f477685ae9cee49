//! Why a key may not use more now. Knows nothing of keys.

use std::time::Duration;

use thiserror::Error;

/// A limit of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKind {
    RequestsPerMinute,
    TokensPerMinute,
    Parallel,
    Budget,
    /// The limits cannot be read.
    Unknown,
}

crate::named_variants! {
    LimitKind {
        RequestsPerMinute => "requests_per_minute",
        TokensPerMinute => "tokens_per_minute",
        Parallel => "parallel",
        Budget => "budget",
        Unknown => "unknown",
    }
}

/// A key may not use more now.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{message}")]
pub struct LimitReached {
    pub kind: LimitKind,
    /// The limit, and when there is more.
    pub message: String,
    pub retry_after: Option<Duration>,
}
