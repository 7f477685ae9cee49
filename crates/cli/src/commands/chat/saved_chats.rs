//! The store of saved conversations, used from async code.

use std::sync::Arc;
use std::time::SystemTime;

use anyhow::{Context, Error, Result, anyhow};
use hob_conversations::{
    ChatId, ChatSummary, Conversation, ConversationStore, ResponseOwner, SavedTurn, open_conversation_store,
};
use hob_db::{DbResult, Storage};

use super::session::{ChatSession, SaveTarget, SaveTurn};
use crate::change_notice::{ChangedPart, tell_servers};
use crate::output;

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

    /// Opens the store, and continues the most recent conversation if there is one.
    pub async fn open_latest(database: Storage, session: &mut ChatSession) -> Result<Self> {
        let saved_chats = SavedChats::open(database).await?;
        saved_chats.continue_latest(session).await?;
        Ok(saved_chats)
    }

    /// Continues the most recent conversation if there is one.
    pub async fn continue_latest(&self, session: &mut ChatSession) -> Result<()> {
        match self.latest().await? {
            Some(chat) => session.resume(self.conversation(chat).await?),
            None => output::note(
                "There is no saved conversation to continue; starting a new one. 'hob chat' and 'hob ask -c' save, \
                 'hob ask' without -c does not.",
            ),
        }
        Ok(())
    }

    /// Saves a turn. Returns its place.
    pub async fn keep(&self, keep: SaveTurn) -> Result<SavedTurn> {
        let saving = self.with(move |store, owner| {
            let now = SystemTime::now();
            match keep.place {
                SaveTarget::InsteadOf(saved) => store.replace(owner, saved, &keep.turn, now),
                SaveTarget::EndOf(chat) => store.add(owner, chat, &keep.turn, now),
            }
        });
        let saved = saving.await?;
        tell_servers(ChangedPart::Chats);
        Ok(saved)
    }

    /// The conversations of the owner, those of the pages too: the pinned ones first, and then the most recently used.
    pub async fn list(&self) -> Result<Vec<ChatSummary>> {
        self.with(|store, owner| store.list(owner, LISTED)).await
    }

    async fn latest(&self) -> Result<Option<ChatId>> {
        self.with(|store, owner| store.latest(owner)).await
    }

    /// The current branch of a conversation.
    pub async fn conversation(&self, chat: ChatId) -> Result<Conversation> {
        self.with(move |store, owner| store.get(owner, chat)).await?.ok_or_else(|| no_such(chat))
    }

    /// Deletes a conversation.
    pub async fn forget(&self, chat: ChatId) -> Result<()> {
        if !self.with(move |store, owner| store.forget(owner, chat)).await? {
            return Err(no_such(chat));
        }
        tell_servers(ChangedPart::Chats);
        Ok(())
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn ConversationStore, &ResponseOwner) -> DbResult<T> + Send + 'static,
    ) -> Result<T> {
        let store = Arc::clone(&self.store);
        blocking(move || work(store.as_ref(), &ResponseOwner::owner())).await
    }
}

fn no_such(chat: ChatId) -> Error {
    anyhow!(
        "conversation {chat} does not exist. 'hob chat --list', or /list in the chat, lists the saved conversations."
    )
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> DbResult<T> + Send + 'static) -> Result<T> {
    Ok(tokio::task::spawn_blocking(work).await.context("the database task failed")??)
}
