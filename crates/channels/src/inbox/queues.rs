//! The messages that wait, by conversation, within limits. Plain data behind a lock that is never held across an await.

use std::collections::{HashMap, VecDeque};

use parking_lot::Mutex;

use super::InboxLimits;
use crate::seen_messages::EntryId;
use crate::types::ChannelMessage;

/// What a conversation is known by. Without a thread id, each sender has a conversation of their own.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ConversationKey {
    channel: String,
    id: String,
}

impl ConversationKey {
    pub fn of(message: &ChannelMessage) -> Self {
        let id = if message.conversation_id.is_empty() {
            // Apart from the ids of threads, which could be the same.
            format!("\u{1f}{}", message.sender)
        } else {
            message.conversation_id.clone()
        };
        ConversationKey { channel: message.channel.clone(), id }
    }
}

/// One that waits.
pub(crate) enum Waiting {
    Message {
        entry: EntryId,
        message: ChannelMessage,
    },
    /// Messages after this point were left out, and their sender should know. `like` is the last one that was taken.
    LeftOut {
        like: ChannelMessage,
    },
}

/// Whether there is room for a message.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    /// There is none.
    Full {
        /// The number of messages that found no room so far.
        left_out: u64,
    },
}

pub(crate) struct Queues {
    limits: InboxLimits,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    conversations: HashMap<ConversationKey, Queue>,
    messages: usize,
    bytes: usize,
    left_out: u64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// The number of messages that wait or are about to.
    taken: usize,
    /// Whether a task answers it.
    attended: bool,
    told: bool,
}

impl Queues {
    pub fn new(limits: InboxLimits) -> Self {
        Queues { limits, held: Mutex::default() }
    }

    /// Takes a place for a message.
    pub fn reserve(&self, message: &ChannelMessage) -> Admission {
        let mut held = self.held.lock();
        let size = size(message);
        let full = held.messages >= self.limits.messages || held.bytes + size > self.limits.bytes;
        let queue = held.conversations.entry(ConversationKey::of(message)).or_default();
        if full || queue.taken >= self.limits.per_conversation {
            if queue.attended && !queue.told {
                queue.told = true;
                queue.waiting.push_back(Waiting::LeftOut { like: without_text(message) });
            }
            held.forget_if_empty(&ConversationKey::of(message));
            held.left_out += 1;
            return Admission::Full { left_out: held.left_out };
        }
        queue.taken += 1;
        held.messages += 1;
        held.bytes += size;
        Admission::Admitted
    }

    /// Gives the place back.
    pub fn release(&self, message: &ChannelMessage) {
        let mut held = self.held.lock();
        let conversation = ConversationKey::of(message);
        held.leave(&conversation, size(message));
        held.forget_if_empty(&conversation);
    }

    /// Puts a message into its place. Says whether a task has to be started that answers the conversation.
    pub fn push(&self, conversation: &ConversationKey, entry: EntryId, message: ChannelMessage) -> bool {
        let mut held = self.held.lock();
        let queue = held.conversations.entry(conversation.clone()).or_default();
        queue.waiting.push_back(Waiting::Message { entry, message });
        !std::mem::replace(&mut queue.attended, true)
    }

    /// The next of a conversation; `None` when there is none, and no task answers it any more.
    pub fn pop(&self, conversation: &ConversationKey) -> Option<Waiting> {
        let mut held = self.held.lock();
        let queue = held.conversations.get_mut(conversation)?;
        let next = queue.waiting.pop_front();
        match &next {
            Some(Waiting::Message { message, .. }) => {
                let size = size(message);
                held.leave(conversation, size);
            }
            Some(Waiting::LeftOut { .. }) => queue.told = false,
            None => {
                queue.attended = false;
                held.forget_if_empty(conversation);
            }
        }
        next
    }

    #[cfg(test)]
    pub fn conversations(&self) -> usize {
        self.held.lock().conversations.len()
    }
}

impl Held {
    fn leave(&mut self, conversation: &ConversationKey, size: usize) {
        if let Some(queue) = self.conversations.get_mut(conversation) {
            queue.taken = queue.taken.saturating_sub(1);
        }
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(size);
    }

    fn forget_if_empty(&mut self, conversation: &ConversationKey) {
        let empty = self
            .conversations
            .get(conversation)
            .is_some_and(|queue| queue.taken == 0 && queue.waiting.is_empty() && !queue.attended);
        if empty {
            self.conversations.remove(conversation);
        }
    }
}

/// Roughly what a message takes in memory.
fn size(message: &ChannelMessage) -> usize {
    message.content.len()
        + message.sender.len()
        + message.conversation_id.len()
        + message.message_id.len()
        + 256
}

fn without_text(message: &ChannelMessage) -> ChannelMessage {
    ChannelMessage { content: String::new(), ..message.clone() }
}
