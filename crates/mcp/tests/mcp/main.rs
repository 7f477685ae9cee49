//! MCP, both ways: servers of other people, well-behaved and not, and our own tools served.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set itself up should fail loudly"
)]

mod everything;
mod hostile;
mod http;
mod misbehaving;
mod serving;
mod support;
