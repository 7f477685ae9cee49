//! The responses and conversations of the HTTP API.

use std::path::Path;
use std::sync::Arc;

use hob_conversations::{BufferedResponseStore, ResponseStore, SqliteResponseStore};
use hob_db::Storage;

use crate::databases::hob_database;

/// The responses and conversations of the HTTP API. Opens nothing yet.
pub(crate) fn response_store(database: Storage, home: &Path) -> Arc<dyn ResponseStore> {
    let database = match database {
        Storage::Sqlite(database) => database,
        Storage::Postgres(_) => hob_database(home),
    };
    Arc::new(BufferedResponseStore::new(SqliteResponseStore::new(database)))
}
