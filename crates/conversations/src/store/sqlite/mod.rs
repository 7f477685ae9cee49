//! Chats in SQLite. Every change is one immediate transaction.

mod assistants;
mod chats;
mod read;
mod write;

use std::time::SystemTime;

use hob_db::{Database, DbResult, LazyDatabase, Migrations};

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

/// The steps that make the tables of conversations.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "conversations",
    steps: &[
        include_str!("../../../migrations/1_chats.sql"),
        include_str!("../../../migrations/2_responses.sql"),
        include_str!("../../../migrations/3_page_chats.sql"),
    ],
    legacy_versions: &[5],
};

/// The chats in a database, which the first call opens. Cheap to clone.
#[derive(Clone)]
pub struct SqliteConversationStore {
    database: LazyDatabase,
    /// `None` for those of each caller.
    limits: Option<ChatLimits>,
}

impl SqliteConversationStore {
    pub fn new(database: impl Into<LazyDatabase>) -> Self {
        SqliteConversationStore { database: database.into(), limits: None }
    }

    /// With the same limits for every caller.
    pub fn with_limits(self, limits: ChatLimits) -> Self {
        SqliteConversationStore { limits: Some(limits), ..self }
    }

    fn limits(&self, owner: &ResponseOwner) -> ChatLimits {
        self.limits.unwrap_or_else(|| ChatLimits::of(owner))
    }

    fn open(&self) -> DbResult<Database> {
        self.database.open()
    }
}

implement_traits!(SqliteConversationStore);
