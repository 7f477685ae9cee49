//! The conversations of a home: chats of the terminal, and responses of the HTTP API.

use std::path::Path;
use std::sync::Arc;

use hob_conversations::{ConversationStore, open_conversation_store};
use hob_db::DatabaseError;

use crate::databases::hob_database;

/// The conversations in `home`. Blocks.
pub fn open_conversations(home: &Path) -> Result<Arc<dyn ConversationStore>, DatabaseError> {
    open_conversation_store(&hob_database(home).into())
}
