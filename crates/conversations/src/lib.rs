//! Conversations that are saved, so that they can be continued later: chats of the terminal, and responses of the HTTP API.
//!
//! Knows nothing of who asks, of what answers, and of where a conversation is shown.

pub mod responses;
pub mod store;
mod types;

pub use responses::{
    Appended, BufferedResponseStore, ConversationAppend, ConversationItem, FoundItems, ItemOrder, ItemPage,
    PostgresResponseStore, ResponseChain, ResponseLease, ResponseOwner, ResponseStore, SqliteResponseStore,
    StoredConversation, StoredResponse, response_store,
};
pub use store::{
    COPY_TABLES, ConversationStore, MIGRATIONS, POSTGRES_MIGRATIONS, PostgresConversationStore,
    SqliteConversationStore, open_conversation_store,
};
pub use types::{ChatId, ChatSummary, ChatTurn, Conversation, SavedTurn, TurnEnding, TurnNumber};
