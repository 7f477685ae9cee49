//! Where conversations at the terminal are kept.

use std::path::Path;

use crate::databases::HOB_MIGRATIONS;
use hob_db::{Database, DatabaseError};
use hob_store::Chats;

use crate::databases::DATABASE;

/// The conversations in `home`. Blocks.
pub fn open_chats(home: &Path) -> Result<Chats, DatabaseError> {
    Ok(Chats::new(Database::open(&home.join(DATABASE), HOB_MIGRATIONS)?))
}
