//! Where chats are saved. At the terminal, old conversations and old turns make room for new ones, within limits; the pages get an error at
//! the limit, so that nothing of a tree is lost.
//!
//! Every call blocks. A chat belongs to a caller, and only that caller finds it.

mod copy;
mod implement;
pub mod limits;
mod postgres;
mod sqlite;
mod turn_row;
mod words;

use std::sync::Arc;
use std::time::SystemTime;

use hob_db::{DbResult, Storage};

use crate::chat::{
    AssistantChange, AssistantId, ChatChange, ChatChanged, ChatPage, ChatPageQuery, ChatSummary, ChatTurn,
    Conversation, NewChat, NewQuestion, SavedAnswer, SavedAssistant, SavedChat, SavedSettings, TurnSaved,
};
use crate::responses::ResponseOwner;
use crate::types::{ChatId, SavedTurn};

pub use copy::COPY_TABLES;
pub use postgres::{POSTGRES_MIGRATIONS, PostgresConversationStore};
pub use sqlite::{MIGRATIONS, SqliteConversationStore};

/// The conversations in a database. Opens a file, and asks no server.
pub fn open_conversation_store(storage: &Storage) -> DbResult<Arc<dyn ConversationStore>> {
    Ok(match storage {
        Storage::Sqlite(database) => Arc::new(SqliteConversationStore::new(database.open()?)),
        Storage::Postgres(database) => Arc::new(PostgresConversationStore::new(database.clone())),
    })
}

/// The chats in a database. Opens nothing yet.
pub fn chat_store(storage: impl Into<Storage>) -> Arc<dyn ChatStore> {
    match storage.into() {
        Storage::Sqlite(database) => Arc::new(SqliteConversationStore::new(database)),
        Storage::Postgres(database) => Arc::new(PostgresConversationStore::new(database)),
    }
}

/// Saves chats as the terminal has them: one turn after the other, which is the current branch.
pub trait ConversationStore: Send + Sync {
    /// Adds a turn to the current branch of a conversation, or begins one with it. Returns where it is, which is a new conversation
    /// too when the given one is gone.
    fn add(
        &self,
        owner: &ResponseOwner,
        chat: Option<ChatId>,
        turn: &ChatTurn,
        now: SystemTime,
    ) -> DbResult<SavedTurn>;

    /// Puts a turn in the place of another. Where that is gone, adds it: turns that others saved since then are not touched.
    fn replace(
        &self,
        owner: &ResponseOwner,
        saved: SavedTurn,
        turn: &ChatTurn,
        now: SystemTime,
    ) -> DbResult<SavedTurn>;

    /// Deletes a conversation; `false` when there is none of that number.
    fn forget(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<bool>;

    /// The first conversations: the pinned ones, and then those that were used last.
    fn list(&self, owner: &ResponseOwner, most: usize) -> DbResult<Vec<ChatSummary>>;

    /// The conversation that was used last.
    fn latest(&self, owner: &ResponseOwner) -> DbResult<Option<ChatId>>;

    /// The current branch of a conversation; `None` when there is none of that number.
    fn get(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<Option<Conversation>>;
}

/// Saves chats as the pages have them: trees of turns, with settings; and assistants.
pub trait ChatStore: Send + Sync {
    fn page(&self, owner: &ResponseOwner, query: &ChatPageQuery) -> DbResult<ChatPage>;

    /// Begins a chat without turns; `None` when the caller has as many as it may have.
    fn create(&self, owner: &ResponseOwner, chat: &NewChat, now: SystemTime)
    -> DbResult<Option<ChatSummary>>;

    /// A chat with all branches; `None` when there is none of that number.
    fn chat(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<Option<SavedChat>>;

    fn change(&self, owner: &ResponseOwner, chat: ChatId, change: &ChatChange) -> DbResult<ChatChanged>;

    /// Deletes a chat; `false` when there is none of that number.
    fn delete(&self, owner: &ResponseOwner, chat: ChatId) -> DbResult<bool>;

    /// Adds a turn without an answer, which becomes the end of the branch that is shown.
    fn add_question(
        &self,
        owner: &ResponseOwner,
        chat: ChatId,
        question: &NewQuestion,
        now: SystemTime,
    ) -> DbResult<TurnSaved>;

    /// Saves the answer of a turn, in the place of the one that it has.
    fn save_answer(
        &self,
        owner: &ResponseOwner,
        turn: SavedTurn,
        answer: &SavedAnswer,
        now: SystemTime,
    ) -> DbResult<TurnSaved>;

    /// In the order in which they were saved.
    fn assistants(&self, owner: &ResponseOwner) -> DbResult<Vec<SavedAssistant>>;

    fn assistant(&self, owner: &ResponseOwner, id: AssistantId) -> DbResult<Option<SavedAssistant>>;

    /// `None` when the caller has as many as it may have.
    fn create_assistant(
        &self,
        owner: &ResponseOwner,
        name: &str,
        settings: &SavedSettings,
    ) -> DbResult<Option<SavedAssistant>>;

    /// `None` when there is none of that number.
    fn change_assistant(
        &self,
        owner: &ResponseOwner,
        id: AssistantId,
        change: &AssistantChange,
    ) -> DbResult<Option<SavedAssistant>>;

    /// `false` when there is none of that number.
    fn delete_assistant(&self, owner: &ResponseOwner, id: AssistantId) -> DbResult<bool>;
}

#[cfg(test)]
mod chat_limit_tests;
#[cfg(test)]
mod chat_tests;
#[cfg(test)]
mod tests;
