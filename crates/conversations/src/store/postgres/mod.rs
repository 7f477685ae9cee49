//! Chats in PostgreSQL. Several processes write at once: a change locks the row of its chat first.

mod assistants;
mod chats;
mod read;
mod write;

use std::time::SystemTime;

use hob_db::DbResult;
use hob_db::postgres::{PostgresDatabase, PostgresMigrations};

use super::limits::ChatLimits;
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
}

impl ConversationStore for PostgresConversationStore {
    fn add(
        &self,
        owner: &ResponseOwner,
        chat: Option<ChatId>,
        turn: &ChatTurn,
        now: SystemTime,
    ) -> DbResult<SavedTurn> {
        let room = write::Room { owner, limits: self.limits(owner), now };
        self.database.write(|transaction| write::add(transaction, &room, chat, turn))
    }

    fn replace(
        &self,
        owner: &ResponseOwner,
        saved: SavedTurn,
        turn: &ChatTurn,
        now: SystemTime,
    ) -> DbResult<SavedTurn> {
        let room = write::Room { owner, limits: self.limits(owner), now };
        self.database.write(|transaction| write::replace(transaction, &room, saved, turn))
    }

    fn forget(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<bool> {
        self.database.write(|transaction| write::forget(transaction, owner, chat))
    }

    fn list(&self, owner: &ResponseOwner, most: usize) -> DbResult<Vec<ChatSummary>> {
        self.database.read(|transaction| read::page(transaction, owner, None, ChatCursor::START, most))
    }

    fn latest(&self, owner: &ResponseOwner) -> DbResult<Option<ChatId>> {
        self.database.read(|transaction| read::latest(transaction, owner))
    }

    fn get(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<Option<Conversation>> {
        self.database.read(|transaction| read::conversation(transaction, owner, chat))
    }
}

impl ChatStore for PostgresConversationStore {
    fn page(&self, owner: &ResponseOwner, query: &ChatPageQuery) -> DbResult<ChatPage> {
        self.database.read(|transaction| chats::page(transaction, owner, query))
    }

    fn create(
        &self,
        owner: &ResponseOwner,
        chat: &NewChat,
        now: SystemTime,
    ) -> DbResult<Option<ChatSummary>> {
        let room = write::Room { owner, limits: self.limits(owner), now };
        self.database.write(|transaction| chats::create(transaction, &room, chat))
    }

    fn chat(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<Option<SavedChat>> {
        self.database.read(|transaction| read::chat(transaction, owner, chat))
    }

    fn change(&self, owner: &ResponseOwner, chat: ChatId, change: &ChatChange) -> DbResult<ChatChanged> {
        let most = self.limits(owner).bytes;
        self.database.write(|transaction| chats::change(transaction, owner, chat, change, most))
    }

    fn delete(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<bool> {
        self.forget(owner, chat)
    }

    fn add_question(
        &self,
        owner: &ResponseOwner,
        chat: ChatId,
        question: &NewQuestion,
        now: SystemTime,
    ) -> DbResult<TurnSaved> {
        let room = write::Room { owner, limits: self.limits(owner), now };
        self.database.write(|transaction| chats::add_question(transaction, &room, chat, question))
    }

    fn save_answer(
        &self,
        owner: &ResponseOwner,
        turn: SavedTurn,
        answer: &SavedAnswer,
        now: SystemTime,
    ) -> DbResult<TurnSaved> {
        let room = write::Room { owner, limits: self.limits(owner), now };
        self.database.write(|transaction| chats::save_answer(transaction, &room, turn, answer))
    }

    fn assistants(&self, owner: &ResponseOwner) -> DbResult<Vec<SavedAssistant>> {
        self.database.read(|transaction| assistants::list(transaction, owner))
    }

    fn assistant(&self, owner: &ResponseOwner, id: AssistantId) -> DbResult<Option<SavedAssistant>> {
        self.database.read(|transaction| assistants::find(transaction, owner, id))
    }

    fn create_assistant(
        &self,
        owner: &ResponseOwner,
        name: &str,
        settings: &SavedSettings,
    ) -> DbResult<Option<SavedAssistant>> {
        let most = self.limits(owner).assistants;
        self.database.write(|transaction| assistants::create(transaction, owner, name, settings, most))
    }

    fn change_assistant(
        &self,
        owner: &ResponseOwner,
        id: AssistantId,
        change: &AssistantChange,
    ) -> DbResult<Option<SavedAssistant>> {
        self.database.write(|transaction| assistants::change(transaction, owner, id, change))
    }

    fn delete_assistant(&self, owner: &ResponseOwner, id: AssistantId) -> DbResult<bool> {
        self.database.write(|transaction| assistants::delete(transaction, owner, id))
    }
}
