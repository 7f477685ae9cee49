//! The bridge against a gateway on a real socket, well and badly behaved.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set itself up should fail loudly"
)]

mod flood;
mod openclaw;
mod reconnect;
#[cfg(unix)]
mod replicas;
mod simple;
mod support;
