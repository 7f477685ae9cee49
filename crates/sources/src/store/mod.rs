//! Stores the text of watched pages. Does not know how changes are found.

mod copy;
mod postgres;
mod sqlite;

use std::sync::Arc;

use hob_core::Moment;
use hob_db::{DbResult, Storage};

pub use copy::COPY_TABLES;
pub use postgres::{POSTGRES_MIGRATIONS, PostgresSourceStore};
pub use sqlite::{MIGRATIONS, SqliteSourceStore};

/// Pages that are stored. The ones that were checked longest ago are deleted.
const MAX_PAGES: i64 = 1_000;

/// What is known of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSnapshot {
    /// The address it was read from. Another address is another page.
    pub address: String,
    /// The text that changes are compared with.
    pub earlier: String,
    pub earlier_read: Moment,
    /// The text of the last check.
    pub latest: String,
    /// The first check that was compared with `earlier`.
    pub window_began: Moment,
}

/// Every call blocks.
pub trait SourceStore: Send + Sync {
    /// What is known of the page with a name.
    fn page(&self, name: &str) -> DbResult<Option<PageSnapshot>>;

    /// Replaces what is known of a page.
    fn save_page(&self, name: &str, page: &PageSnapshot) -> DbResult<()>;
}

/// The store in a database. Creates nothing until something is saved.
pub fn source_store(storage: impl Into<Storage>) -> Arc<dyn SourceStore> {
    match storage.into() {
        Storage::Sqlite(database) => Arc::new(SqliteSourceStore::new(database)),
        Storage::Postgres(database) => Arc::new(PostgresSourceStore::new(database)),
    }
}

#[cfg(test)]
mod tests;
