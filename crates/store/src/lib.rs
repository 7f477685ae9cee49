//! What Hob keeps on disk: SQLite files in the configuration directory, `hob.db` and, for the memory, `memory.db`.
//!
//! Each kind of thing has a module with its own tables and migrations: [`Conversations`],
//! [`Chats`] and [`MemoryStore`]. They know nothing of each other, of `config.toml`, of engines or of serving HTTP, and never wait on a
//! runtime: every call blocks, so asynchronous callers use `spawn_blocking`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

pub mod chats;
pub mod conversations;
pub mod memory;

pub use chats::Chats;
pub use conversations::Conversations;
pub use memory::MemoryStore;
