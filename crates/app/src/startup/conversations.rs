//! The conversations of a home.

use std::path::Path;

use hob_conversations::SqliteConversationStore;
use hob_db::DatabaseError;

use crate::databases::hob_database;

/// The conversations in `home`. Blocks.
pub fn open_conversations(home: &Path) -> Result<SqliteConversationStore, DatabaseError> {
    Ok(SqliteConversationStore::new(hob_database(home).open()?))
}
