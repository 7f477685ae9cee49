//! The HTTP API as clients see it: real sockets, one file for each route. The folders are those of the crate.

#![allow(clippy::disallowed_methods, reason = "tests start programs with the environment they were given")]
#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set itself up should fail loudly"
)]

mod access;
mod admin;
mod anthropic;
mod caller;
mod chats;
mod client;
mod compatibility;
mod errors;
mod fixtures;
mod generated_docs;
mod guard;
mod half_closed;
mod hostile;
mod key_fixtures;
mod limits;
mod ollama;
mod openai;
mod pages;
mod recorded_apis;
mod request_head;
mod request_id;
mod responses;
mod shutdown;
#[path = "../support/mod.rs"]
mod support;
mod tls;
