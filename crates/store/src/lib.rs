//! What Hob keeps on disk: SQLite files in the configuration directory, `hob.db` and, for the memory, `memory.db`.
//!
//! Each kind of thing has a module with its own tables and migrations: [`Routing`] and
//! [`MemoryStore`]. They know nothing of each other, of `config.toml`, of engines or of serving HTTP, and never wait on a
//! runtime: every call blocks, so asynchronous callers use `spawn_blocking`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

pub mod memory;
pub mod routing;

pub use memory::MemoryStore;
pub use routing::Routing;
