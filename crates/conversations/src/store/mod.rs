//! Where conversations are saved. Everything is bounded: old conversations make room for new ones.

mod sqlite;

pub use sqlite::{ChatId, ChatSummary, Chats, Conversation, Kept, MIGRATIONS, Turn, TurnEnding, TurnNumber};

#[cfg(test)]
mod tests;
