//! The conversations of a home.

use std::path::Path;

use hob_conversations::store::Chats;
use hob_db::DatabaseError;

use crate::databases::hob_database;

/// The conversations in `home`. Blocks.
pub fn open_chats(home: &Path) -> Result<Chats, DatabaseError> {
    Ok(Chats::new(hob_database(home).open()?))
}
