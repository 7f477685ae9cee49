//! Conversations in PostgreSQL. Several processes write at once: a change locks the row of its conversation first.

mod read;
mod write;

use std::time::SystemTime;

use hob_db::DatabaseError;
use hob_db::postgres::{PostgresDatabase, PostgresMigrations};

use super::ConversationStore;
use crate::types::{ChatId, ChatSummary, ChatTurn, Conversation, SavedTurn};

/// The steps that make the tables of conversations in PostgreSQL.
pub const POSTGRES_MIGRATIONS: PostgresMigrations = PostgresMigrations {
    capability: "conversations",
    steps: &[include_str!("../../../migrations/postgres/1_conversations.sql")],
    usable_from: 0,
};

/// The conversations in a database. Cheap to clone.
#[derive(Clone)]
pub struct PostgresConversationStore {
    database: PostgresDatabase,
}

impl PostgresConversationStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresConversationStore { database }
    }
}

impl ConversationStore for PostgresConversationStore {
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
        self.database.read(|transaction| read::list(transaction, most))
    }

    fn get(&self, chat: ChatId) -> Result<Option<Conversation>, DatabaseError> {
        self.database.read(|transaction| read::get(transaction, chat))
    }
}
