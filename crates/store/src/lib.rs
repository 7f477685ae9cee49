//! What Hob keeps on disk: SQLite files in the configuration directory, `hob.db` and, for the memory, `memory.db`.
//!
//! Each kind of thing has a module with its own tables and migrations: [`Telemetry`], [`Tasks`], [`Conversations`], [`Routing`],
//! [`Chats`] and [`MemoryStore`]. They know nothing of each other, of `config.toml`, of engines or of serving HTTP, and never wait on a
//! runtime: every call blocks, so asynchronous callers use `spawn_blocking`, except for [`TelemetryWriter`], which takes records
//! without blocking.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

pub mod chats;
pub mod conversations;
pub mod memory;
pub mod routing;
pub mod savings;
pub mod tasks;
pub mod telemetry;

use hob_db::Migrations;

pub use chats::Chats;
pub use conversations::Conversations;
pub use memory::MemoryStore;
pub use routing::Routing;
pub use savings::{Dollars, Price, Prices, Savings, savings};
pub use tasks::Tasks;
pub use telemetry::{Telemetry, TelemetryWriter, has_answered};

/// What `hob.db` has: calls, tasks, conversations, what was learnt of models.
pub const HOB_MIGRATIONS: &[Migrations] = &[
    telemetry::MIGRATIONS,
    tasks::MIGRATIONS,
    conversations::MIGRATIONS,
    routing::MIGRATIONS,
    chats::MIGRATIONS,
];

/// What `memory.db` has: the user's documents. Apart, because it is large, and can be made anew.
pub const MEMORY_MIGRATIONS: &[Migrations] = &[memory::MIGRATIONS];
