//! The SQL of stored responses and conversations. The trait, and what a caller gets, are in [`crate::responses`].

mod postgres;
mod sqlite;

pub use postgres::PostgresResponseStore;
pub use sqlite::SqliteResponseStore;

pub(super) use sqlite::WaitingResponse;
