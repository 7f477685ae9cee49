//! SQLite files and PostgreSQL: opening, migrating, reading and writing. Has no tables except the one that counts migrations, and
//! knows nothing of the tables of a capability.
//!
//! Every call blocks, so asynchronous callers use [`spawn_blocking`].

mod batch_writer;
mod blocking_threads;
mod change_watch;
pub mod copy;
mod disk_fault;
mod error;
mod lazy;
pub mod postgres;
mod sqlite;
mod storage;
mod unreadable_column;

pub use batch_writer::{BatchOptions, BatchSink, BatchWriter, FailureLog};
pub use blocking_threads::{BlockingCall, share_blocking_threads, spawn_blocking};
pub use change_watch::ChangeWatch;
pub use disk_fault::DiskFault;
pub use error::{DatabaseError, DbResult};
pub use lazy::LazyDatabase;
pub use sqlite::database::{Database, Durability};
pub use sqlite::file_copy::{copy_file, count_rows, settle_file};
pub use sqlite::inspect::{DatabaseState, inspect, peek};
pub use sqlite::migrations::Migrations;
pub use storage::Storage;
pub use unreadable_column::UnreadableColumn;
