//! The store of saved conversations, used from async code.

use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Error, Result, anyhow};
use hob_conversations::{
    ChatId, ChatSummary, Conversation, ConversationStore, SavedTurn, open_conversation_store,
};
use hob_db::{DatabaseError, Storage};

use super::session::{SaveTarget, SaveTurn};

/// The maximum number of listed conversations.
const LISTED: usize = 30;

#[derive(Clone)]
pub struct SavedChats {
    store: Arc<dyn ConversationStore>,
}

impl SavedChats {
    pub async fn open(database: Storage) -> Result<Self> {
        Ok(SavedChats { store: blocking(move || open_conversation_store(&database)).await? })
    }

    /// Saves a turn. Returns its place.
    pub async fn keep(&self, keep: SaveTurn) -> Result<SavedTurn> {
        self.with(move |store| {
            let now = SystemTime::now();
            match keep.place {
                SaveTarget::InsteadOf(saved) => store.replace(saved, &keep.turn, now),
                SaveTarget::EndOf(chat) => store.add(chat, &keep.turn, now),
            }
        })
        .await
    }

    /// The most recently used conversations, newest first.
    pub async fn list(&self) -> Result<Vec<ChatSummary>> {
        self.with(|store| store.list(LISTED)).await
    }

    pub async fn latest(&self) -> Result<Option<ChatId>> {
        self.with(|store| store.latest()).await
    }

    /// The turns of a conversation.
    pub async fn conversation(&self, chat: ChatId) -> Result<Conversation> {
        self.with(move |store| store.get(chat)).await?.ok_or_else(|| no_such(chat))
    }

    /// Deletes a conversation.
    pub async fn forget(&self, chat: ChatId) -> Result<()> {
        if !self.with(move |store| store.forget(chat)).await? {
            return Err(no_such(chat));
        }
        Ok(())
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn ConversationStore) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T> {
        let store = Arc::clone(&self.store);
        blocking(move || work(store.as_ref())).await
    }
}

fn no_such(chat: ChatId) -> Error {
    anyhow!(
        "conversation {chat} does not exist. 'hob chat --list', or /list in the chat, lists the saved conversations."
    )
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DatabaseError> + Send + 'static,
) -> Result<T> {
    Ok(tokio::task::spawn_blocking(work).await.context("the database task failed")??)
}
