//! Limits on what callers can use: requests at once, bytes of bodies, a share for each peer, streams of pages, wrong keys, log
//! lines.
//! Knows nothing of routes.

pub(crate) mod body_limit;
pub(crate) mod concurrency_limit;
pub(crate) mod key_backoff;
pub(crate) mod live_streams;
pub(crate) mod log_limit;
pub(crate) mod peer_share;
pub(crate) mod rate_headers;
pub(crate) mod read_body;
