//! Remembers messages in the database.

use std::sync::Arc;
use std::time::SystemTime;

use async_trait::async_trait;
use hob_db::DbResult;

use crate::blocking::blocking;
use crate::received_file::stored;
use crate::seen_messages::{EntryId, RecentMessages, SeenMessages, Settled, TakeOutcome, identity};
use crate::store::ChannelStore;
use crate::types::ChannelMessage;

/// Remembers messages after the end of the process. While a database of one process fails, it remembers them in memory.
pub(crate) struct StoredMessages {
    store: Arc<dyn ChannelStore>,
    /// Whether other processes answer messages of this database too.
    is_shared: bool,
    recent: RecentMessages,
}

impl StoredMessages {
    pub fn new(store: Arc<dyn ChannelStore>, is_shared: bool) -> Self {
        StoredMessages { store, is_shared, recent: RecentMessages::default() }
    }

    async fn try_take(&self, message: &ChannelMessage) -> DbResult<Option<EntryId>> {
        let (store, identity, text) = (Arc::clone(&self.store), identity(message), text(message));
        blocking(move || store.take(identity.as_deref(), &text, SystemTime::now())).await.unwrap_or(Ok(None))
    }
}

fn text(message: &ChannelMessage) -> String {
    let stored = ChannelMessage { files: stored(&message.files), ..message.clone() };
    // A message can always be serialised.
    serde_json::to_string(&stored).unwrap_or_default()
}

#[async_trait]
impl SeenMessages for StoredMessages {
    async fn take(&self, message: &ChannelMessage) -> TakeOutcome {
        match self.try_take(message).await {
            Ok(Some(entry)) => TakeOutcome::New(entry),
            Ok(None) => TakeOutcome::Known,
            Err(error) if self.is_shared => {
                tracing::warn!(
                    %error,
                    "a message cannot be saved; Hob tries again. 'hob doctor' checks the database"
                );
                TakeOutcome::Failed
            }
            Err(error) => {
                tracing::warn!(
                    %error,
                    "a message is not saved, and is lost if Hob stops before it is answered. 'hob doctor' \
                     checks the database"
                );
                match self.recent.take(message).await {
                    // Negative, like no row of the database.
                    TakeOutcome::New(entry) => TakeOutcome::New(-entry),
                    known => known,
                }
            }
        }
    }

    async fn settle(&self, entry: EntryId) -> Settled {
        if entry <= 0 {
            return Settled::Yes;
        }
        let store = Arc::clone(&self.store);
        match blocking(move || store.settle(entry)).await {
            Some(Ok(true)) => Settled::Yes,
            // A row that was deleted since, because there are many others, is not answered by another process.
            Some(Ok(false)) if !self.is_shared => Settled::Yes,
            Some(Ok(false)) => Settled::ByOther,
            Some(Err(error)) if self.is_shared => {
                tracing::warn!(
                    %error,
                    "a message cannot be marked as answered; Hob tries again. 'hob doctor' checks the \
                     database"
                );
                Settled::Failed
            }
            Some(Err(error)) => {
                tracing::warn!(
                    %error,
                    "a message is not marked as answered, and may be answered again after a restart. 'hob \
                     doctor' checks the database"
                );
                Settled::Yes
            }
            None => Settled::Yes,
        }
    }

    async fn reopen(&self, entry: EntryId, message: &ChannelMessage) {
        if entry <= 0 {
            return;
        }
        let (store, text) = (Arc::clone(&self.store), text(message));
        if let Some(Err(error)) = blocking(move || store.reopen(entry, &text)).await {
            tracing::warn!(
                %error,
                "a waiting reply is not saved, and is lost if Hob restarts. 'hob doctor' checks the database"
            );
        }
    }

    async fn unsettled(&self) -> Option<Vec<(EntryId, ChannelMessage)>> {
        let store = Arc::clone(&self.store);
        let left = match blocking(move || store.unsettled()).await {
            Some(Ok(left)) => left,
            Some(Err(error)) if self.is_shared => {
                tracing::warn!(
                    %error,
                    "the unanswered messages of the last run cannot be read; Hob tries again. 'hob doctor' \
                     checks the database"
                );
                return None;
            }
            Some(Err(error)) => {
                tracing::warn!(
                    %error,
                    "the unanswered messages of the last run cannot be read. Repair the database ('hob \
                     doctor' checks it), then restart Hob"
                );
                Vec::new()
            }
            None => Vec::new(),
        };
        let read =
            left.into_iter().filter_map(|left| Some((left.id, serde_json::from_str(&left.message).ok()?)));
        Some(read.collect())
    }
}
