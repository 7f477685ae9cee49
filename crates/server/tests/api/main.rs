//! The HTTP API as clients see it: real sockets, one file per subject.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set itself up should fail loudly"
)]

mod agents;
mod cancel;
mod chat;
mod client;
mod errors;
mod events;
mod guard;
mod limits;
mod openapi;
mod shutdown;
#[path = "../support/mod.rs"]
mod support;
