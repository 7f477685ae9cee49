//! Where conversations at the terminal are kept.

use std::path::Path;

use hob_store::{Chats, Schema, Store, StoreError};

use crate::databases::DATABASE;

/// The conversations in `home`. Blocks.
pub fn open_chats(home: &Path) -> Result<Chats, StoreError> {
    Ok(Chats::new(Store::open(&home.join(DATABASE), Schema::HOB)?))
}
