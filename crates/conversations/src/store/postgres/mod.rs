//! Chats in PostgreSQL. Several processes write at once: a change locks the row of its chat first.

mod assistants;
mod chats;
mod read;
mod write;

use std::time::SystemTime;

use hob_db::DbResult;
use hob_db::postgres::{PostgresDatabase, PostgresMigrations};

use super::implement::implement_traits;
use super::limits::{ChatLimits, Room};
use super::{ChatStore, ConversationStore};
use crate::chat::{
    AssistantChange, AssistantId, ChatChange, ChatChanged, ChatCursor, ChatPage, ChatPageQuery, ChatSummary,
    ChatTurn, Conversation, NewChat, NewQuestion, SavedAnswer, SavedAssistant, SavedChat, SavedSettings,
    TurnSaved,
};
use crate::responses::ResponseOwner;
use crate::types::{ChatId, SavedTurn};

/// The steps that make the tables of conversations in PostgreSQL.
pub const POSTGRES_MIGRATIONS: PostgresMigrations = PostgresMigrations {
    capability: "conversations",
    steps: &[
        include_str!("../../../migrations/postgres/1_conversations.sql"),
        include_str!("../../../migrations/postgres/2_page_chats.sql"),
    ],
    usable_from: 0,
};

/// The chats in a database. Cheap to clone.
#[derive(Clone)]
pub struct PostgresConversationStore {
    database: PostgresDatabase,
    /// `None` for those of each caller.
    limits: Option<ChatLimits>,
}

impl PostgresConversationStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresConversationStore { database, limits: None }
    }

    /// With the same limits for every caller.
    pub fn with_limits(self, limits: ChatLimits) -> Self {
        PostgresConversationStore { limits: Some(limits), ..self }
    }

    fn limits(&self, owner: &ResponseOwner) -> ChatLimits {
        self.limits.unwrap_or_else(|| ChatLimits::of(owner))
    }

    fn open(&self) -> DbResult<&PostgresDatabase> {
        Ok(&self.database)
    }
}

implement_traits!(PostgresConversationStore);
