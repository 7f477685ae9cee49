//! Limits on what callers can use. Each one is an error that names the limit.

mod body;
pub mod concurrency_limit;
mod connections;
mod json_values;
mod key_backoff;
mod peer_share;
mod schemas;
