//! What Hob keeps on disk: the tables of `hob.db`, a SQLite file in the configuration directory.
//!
//! Knows nothing of `config.toml`, of engines or of serving HTTP, and never waits on a runtime: every call blocks, so asynchronous callers use `spawn_blocking`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

pub mod routing;

pub use routing::Routing;
