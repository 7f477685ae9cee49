//! Which messages were taken in, so that none is answered twice and none is lost.

use std::collections::{HashSet, VecDeque};

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::types::ChannelMessage;

/// The number of a message that was taken in.
pub type EntryId = i64;

/// Remembers messages, perhaps beyond the end of the process. It must not fail: one that cannot remember says that a message is
/// new, because answering twice is better than not at all.
#[async_trait]
pub trait SeenMessages: Send + Sync {
    /// Enters a message; `None` when it was entered before.
    async fn take(&self, message: &ChannelMessage) -> Option<EntryId>;

    /// The message has been dealt with, or its answer is about to go out. It is not given back by [`Self::unsettled`].
    async fn settle(&self, entry: EntryId);

    /// The answer certainly did not go out, so it is not settled after all.
    async fn reopen(&self, entry: EntryId, message: &ChannelMessage);

    /// What was taken and not settled when the process ended, in the order it came.
    async fn unsettled(&self) -> Vec<(EntryId, ChannelMessage)>;
}

/// The number of messages that are remembered.
const REMEMBERED: usize = 10_000;

/// What a message is known by. Some services number their messages per conversation, so the number alone is not enough.
pub fn identity(message: &ChannelMessage) -> Option<String> {
    let ChannelMessage { channel, conversation_id, message_id, .. } = message;
    // A separator that no identifier has, so that two identities never run together into the same text.
    (!message_id.is_empty()).then(|| format!("{channel}\u{1f}{conversation_id}\u{1f}{message_id}"))
}

/// Remembers messages in memory, until the process ends.
#[derive(Default)]
pub struct RecentMessages {
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    identities: HashSet<String>,
    /// The oldest first, to be forgotten when there is no more room.
    order: VecDeque<String>,
    next: EntryId,
}

#[async_trait]
impl SeenMessages for RecentMessages {
    async fn take(&self, message: &ChannelMessage) -> Option<EntryId> {
        let mut seen = self.seen.lock();
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

    async fn settle(&self, _entry: EntryId) {}

    async fn reopen(&self, _entry: EntryId, _message: &ChannelMessage) {}

    async fn unsettled(&self) -> Vec<(EntryId, ChannelMessage)> {
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
        let messages = RecentMessages::default();
        assert!(messages.take(&message("a", "1")).await.is_some());
        assert!(messages.take(&message("a", "1")).await.is_none());
        assert!(messages.take(&message("b", "1")).await.is_some(), "numbers are those of a conversation");
        assert!(messages.take(&message("a", "")).await.is_some());
        assert!(messages.take(&message("a", "")).await.is_some());
    }

    #[tokio::test]
    async fn the_oldest_are_forgotten() {
        let messages = RecentMessages::default();
        for number in 0..=REMEMBERED {
            messages.take(&message("a", &number.to_string())).await;
        }
        assert!(messages.take(&message("a", &REMEMBERED.to_string())).await.is_none());
        assert!(messages.take(&message("a", "0")).await.is_some());
        assert_eq!(messages.seen.lock().unwrap().identities.len(), REMEMBERED);
    }
}
