//! What Hob keeps on disk: the tables of `hob.db`, a SQLite file in the configuration directory.
//!
//! Each kind of thing has a module with its own tables and migrations: [`Telemetry`], [`Conversations`], [`Routing`]
//! and [`Chats`]. They know nothing of each other, of `config.toml`, of engines or of serving HTTP, and never wait on a
//! runtime: every call blocks, so asynchronous callers use `spawn_blocking`, except for [`TelemetryWriter`], which takes records
//! without blocking.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

pub mod chats;
pub mod conversations;
pub mod routing;
pub mod savings;
pub mod telemetry;

pub use chats::Chats;
pub use conversations::Conversations;
pub use routing::Routing;
pub use savings::{Dollars, Price, Prices, Savings, savings};
pub use telemetry::{Telemetry, TelemetryWriter, has_answered};
