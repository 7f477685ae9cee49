//! The store of saved conversations, used from async code.

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Error, Result, anyhow};
use hob_app::startup::conversations::open_chats;
use hob_conversations::store::{ChatId, ChatSummary, Chats, Conversation, Kept};
use hob_db::DatabaseError;

use super::session::{SaveTarget, SaveTurn};

/// The maximum number of listed conversations.
const LISTED: usize = 30;

#[derive(Clone)]
pub struct SavedChats {
    chats: Chats,
}

impl SavedChats {
    pub async fn open(home: &Path) -> Result<Self> {
        let home = home.to_owned();
        let chats = blocking(move || open_chats(&home)).await?;
        Ok(SavedChats { chats })
    }

    /// Saves a turn. Returns its place.
    pub async fn keep(&self, keep: SaveTurn) -> Result<Kept> {
        self.with(move |chats| {
            let now = SystemTime::now();
            match keep.place {
                SaveTarget::InsteadOf(kept) => chats.replace(kept, &keep.turn, now),
                SaveTarget::EndOf(chat) => chats.add(chat, &keep.turn, now),
            }
        })
        .await
    }

    /// The most recently used conversations, newest first.
    pub async fn list(&self) -> Result<Vec<ChatSummary>> {
        self.with(|chats| chats.list(LISTED)).await
    }

    pub async fn latest(&self) -> Result<Option<ChatId>> {
        self.with(Chats::latest).await
    }

    /// The turns of a conversation.
    pub async fn conversation(&self, chat: ChatId) -> Result<Conversation> {
        self.with(move |chats| chats.conversation(chat)).await?.ok_or_else(|| no_such(chat))
    }

    /// Deletes a conversation.
    pub async fn forget(&self, chat: ChatId) -> Result<()> {
        if !self.with(move |chats| chats.forget(chat)).await? {
            return Err(no_such(chat));
        }
        Ok(())
    }

    async fn with<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Chats) -> Result<T, DatabaseError> + Send + 'static,
    ) -> Result<T> {
        let chats = self.chats.clone();
        blocking(move || work(&chats)).await
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
