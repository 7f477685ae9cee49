//! What Hob keeps on disk: SQLite files in the configuration directory, `hob.db` and, for the memory, `memory.db`.
//!
//! Each kind of thing has a module with its own tables and migrations: [`Telemetry`], [`Routing`] and
//! [`MemoryStore`]. They know nothing of each other, of `config.toml`, of engines or of serving HTTP, and never wait on a
//! runtime: every call blocks, so asynchronous callers use `spawn_blocking`, except for [`TelemetryWriter`], which takes records
//! without blocking.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

pub mod memory;
pub mod routing;
pub mod savings;
pub mod telemetry;

pub use memory::MemoryStore;
pub use routing::Routing;
pub use savings::{Dollars, Price, Prices, Savings, savings};
pub use telemetry::{Telemetry, TelemetryWriter, has_answered};
