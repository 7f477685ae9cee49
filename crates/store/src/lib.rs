//! What Hob keeps on disk: the tables of `hob.db`, a SQLite file in the configuration directory.
//!
//! Each kind of thing has a module with its own tables and migrations: [`Conversations`] and [`Chats`]. They know nothing of each
//! other, of `config.toml`, of engines or of serving HTTP, and never wait on a
//! runtime: every call blocks, so asynchronous callers use `spawn_blocking`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

pub mod chats;
pub mod conversations;

pub use chats::Chats;
pub use conversations::Conversations;
