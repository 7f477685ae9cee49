//! SQLite files: opening, migrating, reading and writing. Has no tables except the one that counts migrations, and knows nothing
//! of the tables of a capability.
//!
//! Every call blocks, so asynchronous callers use `spawn_blocking`.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

mod batch_writer;
mod error;
mod lazy;
mod sqlite;

pub use batch_writer::{BatchOptions, BatchSink, BatchWriter, FailureLog};
pub use error::DatabaseError;
pub use lazy::LazyDatabase;
pub use sqlite::database::{ChangeWatch, Database, Durability};
pub use sqlite::inspect::{DatabaseState, inspect, peek};
pub use sqlite::migrations::Migrations;
