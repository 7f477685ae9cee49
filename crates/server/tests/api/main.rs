//! The HTTP API as clients see it: real sockets, one file per subject.

#![allow(clippy::disallowed_methods, reason = "tests start programs with the environment they were given")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set itself up should fail loudly"
)]

mod agents;
mod book;
mod browser;
mod cancel;
mod channels;
mod chat;
mod client;
mod embeddings;
mod engines;
mod errors;
mod events;
mod functions;
mod giving_up;
mod guard;
mod hostile;
mod limits;
mod memory;
mod metrics;
mod openapi;
mod openapi_bodies;
mod pages;
mod request_id;
mod routing;
mod savings;
mod shutdown;
#[path = "../support/mod.rs"]
mod support;
mod tasks;
