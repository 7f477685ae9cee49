//! Where conversations at the terminal are kept.

use std::path::Path;

use hob_db::DatabaseError;
use hob_store::Chats;

use crate::databases::hob_database;

/// The conversations in `home`. Blocks.
pub fn open_chats(home: &Path) -> Result<Chats, DatabaseError> {
    Ok(Chats::new(hob_database(home).open()?))
}
