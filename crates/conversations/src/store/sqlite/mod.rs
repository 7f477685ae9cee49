//! Conversations in SQLite. Every change is one immediate transaction.

mod read;
mod write;

use std::time::SystemTime;

use hob_db::{Database, DatabaseError, Migrations};

use super::ConversationStore;
use crate::types::{ChatId, ChatSummary, ChatTurn, Conversation, SavedTurn};

/// The steps that make the tables of conversations.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "conversations",
    steps: &[
        include_str!("../../../migrations/1_chats.sql"),
        include_str!("../../../migrations/2_responses.sql"),
    ],
    legacy_versions: &[5],
};

/// The conversations in a database. Cheap to clone.
#[derive(Clone)]
pub struct SqliteConversationStore {
    database: Database,
}

impl SqliteConversationStore {
    pub fn new(database: Database) -> Self {
        SqliteConversationStore { database }
    }
}

impl ConversationStore for SqliteConversationStore {
    fn add(
        &self,
        chat: Option<ChatId>,
        turn: &ChatTurn,
        now: SystemTime,
    ) -> Result<SavedTurn, DatabaseError> {
        self.database.write(|transaction| write::add(transaction, chat, turn, now))
    }

    fn replace(
        &self,
        saved: SavedTurn,
        turn: &ChatTurn,
        now: SystemTime,
    ) -> Result<SavedTurn, DatabaseError> {
        self.database.write(|transaction| write::replace(transaction, saved, turn, now))
    }

    fn forget(&self, chat: ChatId) -> Result<bool, DatabaseError> {
        self.database.write(|transaction| write::forget(transaction, chat))
    }

    fn list(&self, most: usize) -> Result<Vec<ChatSummary>, DatabaseError> {
        self.database.read(|connection| read::list(connection, most))
    }

    fn get(&self, chat: ChatId) -> Result<Option<Conversation>, DatabaseError> {
        self.database.read(|connection| read::get(connection, chat))
    }
}
