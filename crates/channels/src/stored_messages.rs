//! The ledger of the channels, in the database.

use std::time::SystemTime;

use async_trait::async_trait;
use hob_db::DatabaseError;

use crate::inbound::blocking;
use crate::seen_messages::{Entry, Ledger, Recent, identity};
use crate::store::Conversations;
use crate::types::ChannelMessage;

/// Remembers messages beyond the end of the process; where the database fails, until then.
pub(crate) struct StoredLedger {
    conversations: Conversations,
    recent: Recent,
}

impl StoredLedger {
    pub fn new(conversations: Conversations) -> Self {
        StoredLedger { conversations, recent: Recent::default() }
    }

    async fn try_take(&self, message: &ChannelMessage) -> Result<Option<Entry>, DatabaseError> {
        let (conversations, identity, text) = (self.conversations.clone(), identity(message), text(message));
        blocking(move || conversations.take(identity.as_deref(), &text, SystemTime::now()))
            .await
            .unwrap_or(Ok(None))
    }
}

fn text(message: &ChannelMessage) -> String {
    // A message of text cannot fail to be JSON.
    serde_json::to_string(message).unwrap_or_default()
}

#[async_trait]
impl Ledger for StoredLedger {
    async fn take(&self, message: &ChannelMessage) -> Option<Entry> {
        match self.try_take(message).await {
            Ok(taken) => taken,
            Err(error) => {
                tracing::warn!(%error, "a message cannot be kept until it is answered");
                // Negative: no row of the database has such a number.
                self.recent.take(message).await.map(|entry| -entry)
            }
        }
    }

    async fn settle(&self, entry: Entry) {
        if entry <= 0 {
            return;
        }
        let conversations = self.conversations.clone();
        if let Some(Err(error)) = blocking(move || conversations.settle(entry)).await {
            tracing::warn!(%error, "a message that was answered may be answered again after a restart");
        }
    }

    async fn reopen(&self, entry: Entry, message: &ChannelMessage) {
        if entry <= 0 {
            return;
        }
        let (conversations, text) = (self.conversations.clone(), text(message));
        if let Some(Err(error)) = blocking(move || conversations.reopen(entry, &text)).await {
            tracing::warn!(%error, "a reply that waits for its channel would not survive a restart");
        }
    }

    async fn unsettled(&self) -> Vec<(Entry, ChannelMessage)> {
        let conversations = self.conversations.clone();
        let left = match blocking(move || conversations.unsettled()).await {
            Some(Ok(left)) => left,
            Some(Err(error)) => {
                tracing::warn!(%error, "messages that were left unanswered cannot be read");
                return Vec::new();
            }
            None => return Vec::new(),
        };
        let read =
            left.into_iter().filter_map(|left| Some((left.id, serde_json::from_str(&left.message).ok()?)));
        read.collect()
    }
}
