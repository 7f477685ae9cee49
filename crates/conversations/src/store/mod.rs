//! Where conversations are saved. Old conversations and old turns make room for new ones, within limits.
//!
//! Every call blocks.

mod copy;
mod limits;
mod postgres;
mod sqlite;

use std::sync::Arc;
use std::time::SystemTime;

use hob_db::{DatabaseError, Storage};

use crate::types::{ChatId, ChatSummary, ChatTurn, Conversation, SavedTurn};

pub use copy::COPY_TABLES;
pub use postgres::{POSTGRES_MIGRATIONS, PostgresConversationStore};
pub use sqlite::{MIGRATIONS, SqliteConversationStore};

/// The conversations in a database. Opens a file, and asks no server.
pub fn open_conversation_store(storage: &Storage) -> Result<Arc<dyn ConversationStore>, DatabaseError> {
    Ok(match storage {
        Storage::Sqlite(database) => Arc::new(SqliteConversationStore::new(database.open()?)),
        Storage::Postgres(database) => Arc::new(PostgresConversationStore::new(database.clone())),
    })
}

/// Saves conversations.
pub trait ConversationStore: Send + Sync {
    /// Adds a turn to a conversation, or begins one with it. Returns where it is, which is a new conversation too when the
    /// given one is gone.
    fn add(&self, chat: Option<ChatId>, turn: &ChatTurn, now: SystemTime)
    -> Result<SavedTurn, DatabaseError>;

    /// Puts a turn in the place of another. Where that is gone, adds it: turns that others saved since then are not touched.
    fn replace(&self, saved: SavedTurn, turn: &ChatTurn, now: SystemTime)
    -> Result<SavedTurn, DatabaseError>;

    /// Deletes a conversation; `false` when there is none of that number.
    fn forget(&self, chat: ChatId) -> Result<bool, DatabaseError>;

    /// The conversations that were used last, the newest first.
    fn list(&self, most: usize) -> Result<Vec<ChatSummary>, DatabaseError>;

    /// The conversation that was used last.
    fn latest(&self) -> Result<Option<ChatId>, DatabaseError> {
        Ok(self.list(1)?.first().map(|chat| chat.id))
    }

    /// A conversation; `None` when there is none of that number.
    fn get(&self, chat: ChatId) -> Result<Option<Conversation>, DatabaseError>;
}

#[cfg(test)]
mod tests;
