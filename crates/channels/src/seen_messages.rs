//! Which messages were taken in, so that none is answered twice and none that was taken is forgotten.

use std::collections::{HashSet, VecDeque};
use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::types::ChannelMessage;

/// The ledger's number for a message.
pub type Entry = i64;

/// Remembers messages, perhaps beyond the end of the process. It must not fail: one that cannot remember says that a message is
/// new, because answering twice is better than not at all.
#[async_trait]
pub trait Ledger: Send + Sync {
    /// Enters a message; `None` when it was entered before.
    async fn take(&self, message: &ChannelMessage) -> Option<Entry>;

    /// The message has been dealt with, or its answer is about to go out. It is not given back by [`Self::unsettled`].
    async fn settle(&self, entry: Entry);

    /// The answer certainly did not go out, so it is not settled after all.
    async fn reopen(&self, entry: Entry, message: &ChannelMessage);

    /// What was taken and not settled when the process ended, in the order it came.
    async fn unsettled(&self) -> Vec<(Entry, ChannelMessage)>;
}

/// As many messages as are remembered in memory.
const REMEMBERED: usize = 10_000;

/// What a message is known by. Some services number their messages per conversation, so the number alone is not enough.
pub fn identity(message: &ChannelMessage) -> Option<String> {
    let ChannelMessage { channel, conversation_id, message_id, .. } = message;
    // A separator that no identifier has, so that two identities never run together into the same text.
    (!message_id.is_empty()).then(|| format!("{channel}\u{1f}{conversation_id}\u{1f}{message_id}"))
}

/// A ledger that ends with the process.
#[derive(Default)]
pub struct Recent {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    identities: HashSet<String>,
    /// The oldest first, to be forgotten when there is no more room.
    order: VecDeque<String>,
    next: Entry,
}

#[async_trait]
impl Ledger for Recent {
    async fn take(&self, message: &ChannelMessage) -> Option<Entry> {
        let mut seen = self.seen.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(identity) = identity(message) {
            if !seen.identities.insert(identity.clone()) {
                return None;
            }
            seen.order.push_back(identity);
            if seen.order.len() > REMEMBERED
                && let Some(oldest) = seen.order.pop_front()
            {
                seen.identities.remove(&oldest);
            }
        }
        seen.next += 1;
        Some(seen.next)
    }

    async fn settle(&self, _entry: Entry) {}

    async fn reopen(&self, _entry: Entry, _message: &ChannelMessage) {}

    async fn unsettled(&self) -> Vec<(Entry, ChannelMessage)> {
        Vec::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(conversation: &str, id: &str) -> ChannelMessage {
        ChannelMessage {
            channel: "telegram".into(),
            conversation_id: conversation.into(),
            message_id: id.into(),
            ..ChannelMessage::default()
        }
    }

    #[tokio::test]
    async fn a_message_is_taken_once_and_one_without_an_id_always() {
        let ledger = Recent::default();
        assert!(ledger.take(&message("a", "1")).await.is_some());
        assert!(ledger.take(&message("a", "1")).await.is_none());
        assert!(ledger.take(&message("b", "1")).await.is_some(), "numbers are those of a conversation");
        assert!(ledger.take(&message("a", "")).await.is_some());
        assert!(ledger.take(&message("a", "")).await.is_some());
    }

    #[tokio::test]
    async fn the_oldest_are_forgotten() {
        let ledger = Recent::default();
        for number in 0..=REMEMBERED {
            ledger.take(&message("a", &number.to_string())).await;
        }
        assert!(ledger.take(&message("a", &REMEMBERED.to_string())).await.is_none());
        assert!(ledger.take(&message("a", "0")).await.is_some());
        assert_eq!(ledger.seen.lock().unwrap().identities.len(), REMEMBERED);
    }
}
