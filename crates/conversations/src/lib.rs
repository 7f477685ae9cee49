//! Conversations that are saved, so that they can be continued later: chats of the terminal and the pages, and responses of the HTTP
//! API.
//!
//! Knows nothing of who asks, of what answers, and of where a conversation is shown.

mod chat;
mod check_limits;
pub mod responses;
pub mod store;
mod types;

pub use chat::{
    AssistantChange, AssistantId, AttachmentKind, ChatChange, ChatChanged, ChatCursor, ChatPage,
    ChatPageQuery, ChatSummary, ChatTurn, Conversation, NewChat, NewQuestion, SavedAnswer, SavedAssistant,
    SavedAttachment, SavedChat, SavedQuestion, SavedSettings, SavedSource, SavedStep, SavedUsage,
    SettingsChange, TurnNode, TurnSaved,
};
pub use check_limits::UnsavableValue;
pub use responses::{
    Appended, BufferedResponseStore, ConversationAppend, ConversationItem, FoundItems, ItemOrder, ItemPage,
    PostgresResponseStore, ResponseChain, ResponseLease, ResponseOwner, ResponseStore, SqliteResponseStore,
    StoredConversation, StoredResponse, response_store,
};
pub use store::limits::ChatLimits;
pub use store::{
    COPY_TABLES, ChatStore, ConversationStore, MIGRATIONS, POSTGRES_MIGRATIONS, PostgresConversationStore,
    SqliteConversationStore, chat_store, open_conversation_store,
};
pub use types::{ChatId, SavedTurn, TurnEnding, TurnNumber};
