//! Where conversations at the terminal are kept.

use std::path::Path;

use hob_db::{Database, DatabaseError};
use hob_store::Chats;

use crate::databases::{DATABASE, HOB_MIGRATIONS};

/// The conversations in `home`. Blocks.
pub fn open_chats(home: &Path) -> Result<Chats, DatabaseError> {
    Ok(Chats::new(Database::open(&home.join(DATABASE), HOB_MIGRATIONS)?))
}
