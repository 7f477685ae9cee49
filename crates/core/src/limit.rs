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

impl LimitKind {
    pub const ALL: [LimitKind; 5] = [
        LimitKind::RequestsPerMinute,
        LimitKind::TokensPerMinute,
        LimitKind::Parallel,
        LimitKind::Budget,
        LimitKind::Unknown,
    ];

    /// As metrics name it.
    pub fn as_str(self) -> &'static str {
        match self {
            LimitKind::RequestsPerMinute => "requests_per_minute",
            LimitKind::TokensPerMinute => "tokens_per_minute",
            LimitKind::Parallel => "parallel",
            LimitKind::Budget => "budget",
            LimitKind::Unknown => "unknown",
        }
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
