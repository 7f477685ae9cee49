//! Conversations that are saved, so that they can be continued later.
//!
//! Knows nothing of who asks, of what answers, and of where a conversation is shown.

pub mod store;
mod types;

pub use store::{ConversationStore, MIGRATIONS, SqliteConversationStore};
pub use types::{ChatId, ChatSummary, ChatTurn, Conversation, SavedTurn, TurnEnding, TurnNumber};
