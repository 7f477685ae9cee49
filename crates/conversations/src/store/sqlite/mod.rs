//! Chats in SQLite. Every change is one immediate transaction.

mod assistants;
mod chats;
mod read;
mod write;

use std::time::SystemTime;

use hob_db::{Database, DbResult, LazyDatabase, Migrations};
use rusqlite::Transaction;

use super::limits::ChatLimits;
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

    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> DbResult<T> {
        self.open()?.write(work)
    }
}

impl ConversationStore for SqliteConversationStore {
    fn add(
        &self,
        owner: &ResponseOwner,
        chat: Option<ChatId>,
        turn: &ChatTurn,
        now: SystemTime,
    ) -> DbResult<SavedTurn> {
        let room = write::Room { owner, limits: self.limits(owner), now };
        self.write(|transaction| write::add(transaction, &room, chat, turn))
    }

    fn replace(
        &self,
        owner: &ResponseOwner,
        saved: SavedTurn,
        turn: &ChatTurn,
        now: SystemTime,
    ) -> DbResult<SavedTurn> {
        let room = write::Room { owner, limits: self.limits(owner), now };
        self.write(|transaction| write::replace(transaction, &room, saved, turn))
    }

    fn forget(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<bool> {
        self.write(|transaction| write::forget(transaction, owner, chat))
    }

    fn list(&self, owner: &ResponseOwner, most: usize) -> DbResult<Vec<ChatSummary>> {
        self.open()?.read(|connection| read::page(connection, owner, None, ChatCursor::START, most))
    }

    fn latest(&self, owner: &ResponseOwner) -> DbResult<Option<ChatId>> {
        self.open()?.read(|connection| read::latest(connection, owner))
    }

    fn get(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<Option<Conversation>> {
        self.open()?.read(|connection| read::conversation(connection, owner, chat))
    }
}

impl ChatStore for SqliteConversationStore {
    fn page(&self, owner: &ResponseOwner, query: &ChatPageQuery) -> DbResult<ChatPage> {
        self.open()?.read(|connection| chats::page(connection, owner, query))
    }

    fn create(
        &self,
        owner: &ResponseOwner,
        chat: &NewChat,
        now: SystemTime,
    ) -> DbResult<Option<ChatSummary>> {
        let room = write::Room { owner, limits: self.limits(owner), now };
        self.write(|transaction| chats::create(transaction, &room, chat))
    }

    fn chat(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<Option<SavedChat>> {
        self.open()?.read(|connection| read::chat(connection, owner, chat))
    }

    fn change(&self, owner: &ResponseOwner, chat: ChatId, change: &ChatChange) -> DbResult<ChatChanged> {
        let most = self.limits(owner).bytes;
        self.write(|transaction| chats::change(transaction, owner, chat, change, most))
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
        self.write(|transaction| chats::add_question(transaction, &room, chat, question))
    }

    fn save_answer(
        &self,
        owner: &ResponseOwner,
        turn: SavedTurn,
        answer: &SavedAnswer,
        now: SystemTime,
    ) -> DbResult<TurnSaved> {
        let room = write::Room { owner, limits: self.limits(owner), now };
        self.write(|transaction| chats::save_answer(transaction, &room, turn, answer))
    }

    fn assistants(&self, owner: &ResponseOwner) -> DbResult<Vec<SavedAssistant>> {
        self.open()?.read(|connection| assistants::list(connection, owner))
    }

    fn assistant(&self, owner: &ResponseOwner, id: AssistantId) -> DbResult<Option<SavedAssistant>> {
        self.open()?.read(|connection| assistants::find(connection, owner, id))
    }

    fn create_assistant(
        &self,
        owner: &ResponseOwner,
        name: &str,
        settings: &SavedSettings,
    ) -> DbResult<Option<SavedAssistant>> {
        let most = self.limits(owner).assistants;
        self.write(|transaction| assistants::create(transaction, owner, name, settings, most))
    }

    fn change_assistant(
        &self,
        owner: &ResponseOwner,
        id: AssistantId,
        change: &AssistantChange,
    ) -> DbResult<Option<SavedAssistant>> {
        self.write(|transaction| assistants::change(transaction, owner, id, change))
    }

    fn delete_assistant(&self, owner: &ResponseOwner, id: AssistantId) -> DbResult<bool> {
        self.write(|transaction| assistants::delete(transaction, owner, id))
    }
}
