//! Which messages were received, so that none is answered twice and none is lost.

use std::collections::{HashSet, VecDeque};

use async_trait::async_trait;
use parking_lot::Mutex;

use crate::types::ChannelMessage;

/// The number of a received message.
pub type EntryId = i64;

/// Remembers messages. If it is shared by processes, callers wait for it; otherwise one that fails reports a message as new, because
/// answering twice is better than not at all.
#[async_trait]
pub trait SeenMessages: Send + Sync {
    /// Adds a message.
    async fn take(&self, message: &ChannelMessage) -> TakeOutcome;

    /// Marks a message as answered. [`Self::unsettled`] does not return it anymore.
    async fn settle(&self, entry: EntryId) -> Settled;

    /// Marks a message as not answered, because its reply was not sent.
    async fn reopen(&self, entry: EntryId, message: &ChannelMessage);

    /// The messages that were not settled when the last process ended, oldest first; `None` if that is not known now, and is asked
    /// again later.
    async fn unsettled(&self) -> Option<Vec<(EntryId, ChannelMessage)>>;
}

/// What became of a message that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakeOutcome {
    New(EntryId),
    /// It was added before.
    Known,
    /// The database that processes share does not answer. The message is neither saved nor known.
    Failed,
}

/// Whether a message may be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settled {
    Yes,
    /// Another process answers it.
    ByOther,
    /// The database that processes share does not answer. Another process may answer the message.
    Failed,
}

const REMEMBERED: usize = 10_000;

/// The identity of a message. Some services number their messages by conversation, so the number alone is not enough.
pub fn identity(message: &ChannelMessage) -> Option<String> {
    let ChannelMessage { channel, conversation_id, message_id, .. } = message;
    // No identifier contains this separator, so two identities are never the same text.
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
    /// Oldest first.
    order: VecDeque<String>,
    next: EntryId,
}

#[async_trait]
impl SeenMessages for RecentMessages {
    async fn take(&self, message: &ChannelMessage) -> TakeOutcome {
        let mut seen = self.seen.lock();
        if let Some(identity) = identity(message) {
            if !seen.identities.insert(identity.clone()) {
                return TakeOutcome::Known;
            }
            seen.order.push_back(identity);
            if seen.order.len() > REMEMBERED
                && let Some(oldest) = seen.order.pop_front()
            {
                seen.identities.remove(&oldest);
            }
        }
        seen.next += 1;
        TakeOutcome::New(seen.next)
    }

    async fn settle(&self, _entry: EntryId) -> Settled {
        Settled::Yes
    }

    async fn reopen(&self, _entry: EntryId, _message: &ChannelMessage) {}

    async fn unsettled(&self) -> Option<Vec<(EntryId, ChannelMessage)>> {
        Some(Vec::new())
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
    async fn a_message_is_accepted_once_and_one_without_an_id_always() {
        let messages = RecentMessages::default();
        assert_eq!(messages.take(&message("a", "1")).await, TakeOutcome::New(1));
        assert_eq!(messages.take(&message("a", "1")).await, TakeOutcome::Known);
        // Numbers are those of a conversation.
        assert_eq!(messages.take(&message("b", "1")).await, TakeOutcome::New(2));
        assert_eq!(messages.take(&message("a", "")).await, TakeOutcome::New(3));
        assert_eq!(messages.take(&message("a", "")).await, TakeOutcome::New(4));
    }

    #[tokio::test]
    async fn the_oldest_are_forgotten() {
        let messages = RecentMessages::default();
        for number in 0..=REMEMBERED {
            messages.take(&message("a", &number.to_string())).await;
        }
        assert_eq!(messages.take(&message("a", &REMEMBERED.to_string())).await, TakeOutcome::Known);
        assert_ne!(messages.take(&message("a", "0")).await, TakeOutcome::Known);
        assert_eq!(messages.seen.lock().identities.len(), REMEMBERED);
    }
}
