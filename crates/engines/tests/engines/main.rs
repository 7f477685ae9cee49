//! The engines over real sockets.

#![expect(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot set itself up should fail loudly"
)]

#[cfg(feature = "cloud")]
mod cloud;
mod completions;
mod direct;
mod embeddings;
#[cfg(unix)]
mod managed;
mod multi_host;
mod ollama;
mod openai_compat;
mod selection;
mod support;
