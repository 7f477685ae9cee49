//! The conversations of a home: chats of the terminal, and responses of the HTTP API.

use std::path::Path;
use std::sync::Arc;

use hob_conversations::{ResponseStore, SqliteConversationStore, SqliteResponseStore};
use hob_db::{DatabaseError, LazyDatabase};

use crate::databases::hob_database;

/// The conversations in `home`. Blocks.
pub fn open_conversations(home: &Path) -> Result<SqliteConversationStore, DatabaseError> {
    Ok(SqliteConversationStore::new(hob_database(home).open()?))
}

/// The responses and conversations of the HTTP API. Opens nothing yet.
pub(crate) fn response_store(database: LazyDatabase) -> Arc<dyn ResponseStore> {
    Arc::new(SqliteResponseStore::new(database))
}
