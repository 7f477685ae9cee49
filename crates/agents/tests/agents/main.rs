//! The agents, with a scripted engine.

#![expect(
    clippy::expect_used,
    clippy::unwrap_used,
    reason = "a test that cannot set itself up should fail loudly"
)]

mod builtin_tools;
mod cancel;
mod codeact;
mod compaction;
mod hostile;
mod limits;
mod orchestrator;
mod react;
mod simple;
mod streaming;
mod support;
mod tool_set;
mod web_fetch;
