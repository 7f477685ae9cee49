//! What Hob keeps on disk: SQLite files in the configuration directory, `hob.db` and, for the memory, `memory.db`.
//!
//! [`Store`] is such a file: how it is opened, brought up to date, read and written. Everything that lives in it has a module
//! and tables of its own: [`Telemetry`], [`Tasks`], [`Conversations`], [`Chats`] and [`MemoryStore`]. This is the only crate that knows the database. It knows nothing of
//! `config.toml`, of engines or of serving HTTP, and it never waits on a runtime: every call blocks, so asynchronous callers
//! go through `spawn_blocking`, except for [`TelemetryWriter`], which takes records without blocking.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

pub mod chats;
pub mod conversations;
mod error;
mod inspect;
pub mod memory;
mod migrations;
mod private_file;
pub mod routing;
pub mod savings;
mod store;
pub mod tasks;
pub mod telemetry;

pub use chats::Chats;
pub use conversations::Conversations;
pub use error::StoreError;
pub use inspect::{Condition, has_answered, inspect};
pub use memory::MemoryStore;
pub use migrations::Schema;
pub use routing::Routing;
pub use savings::{Dollars, Price, Prices, Savings, savings};
pub use store::{ChangeWatch, Store};
pub use tasks::Tasks;
pub use telemetry::{Telemetry, TelemetryWriter};

#[cfg(test)]
mod processes_tests;
