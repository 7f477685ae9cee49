//! Conversations as they are kept, read and written beside everything else.

use std::path::Path;
use std::time::SystemTime;

use anyhow::{Context, Error, Result, anyhow};
use hob_db::DatabaseError;
use hob_system::open_chats;
use hob_system::store::Chats;
use hob_system::store::chats::{ChatId, ChatSummary, Conversation, Kept};

use super::session::{SaveTarget, SaveTurn};

/// Conversations that are listed.
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

    /// Writes a turn down. Returns where it is now.
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

    /// The conversations that were used last, the newest first.
    pub async fn list(&self) -> Result<Vec<ChatSummary>> {
        self.with(|chats| chats.list(LISTED)).await
    }

    pub async fn latest(&self) -> Result<Option<ChatId>> {
        self.with(Chats::latest).await
    }

    /// What was said in a conversation.
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
        "there is no conversation {chat}. 'hob chat --list', or /list while you talk, shows which there are."
    )
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, DatabaseError> + Send + 'static,
) -> Result<T> {
    Ok(tokio::task::spawn_blocking(work).await.context("the database cannot be waited for")??)
}
