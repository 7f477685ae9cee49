//! The waiting messages, by conversation, within limits. The lock is never held across an await.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use parking_lot::Mutex;

use crate::seen_messages::EntryId;
use crate::types::ChannelMessage;

/// The limits of a message queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageQueueLimits {
    /// Messages of one conversation.
    pub per_conversation: usize,
    /// Messages of all conversations.
    pub messages: usize,
    /// Their text, in bytes.
    pub bytes: usize,
    /// Their files, in bytes, as far as they are in memory.
    pub file_bytes: usize,
    /// Conversations that are answered concurrently.
    pub concurrent: usize,
    /// Replies that wait for another attempt while other conversations are answered. A further one holds up an answer.
    pub waiting_replies: usize,
    /// How long a reply waits for a channel that is not connected.
    pub reply_timeout: Duration,
}

impl Default for MessageQueueLimits {
    fn default() -> Self {
        MessageQueueLimits {
            per_conversation: 100,
            messages: 16_384,
            bytes: 16 << 20,
            file_bytes: 64 << 20,
            concurrent: 16,
            waiting_replies: 256,
            reply_timeout: Duration::from_secs(600),
        }
    }
}

/// The key of a conversation. Without a thread id, each sender has a conversation.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct ConversationKey {
    channel: String,
    id: String,
}

impl ConversationKey {
    pub fn of(message: &ChannelMessage) -> Self {
        let id = if message.conversation_id.is_empty() {
            // The separator distinguishes senders from thread ids.
            format!("\u{1f}{}", message.sender)
        } else {
            message.conversation_id.clone()
        };
        ConversationKey { channel: message.channel.clone(), id }
    }
}

pub(crate) enum Waiting {
    Message {
        entry: EntryId,
        message: ChannelMessage,
    },
    /// Messages after this point were dropped, and their sender is notified. `like` is one of them, without its text.
    Dropped {
        like: ChannelMessage,
    },
}

/// Whether a message fits.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    Admitted,
    Full {
        /// The number of messages dropped so far.
        dropped: u64,
    },
}

pub(crate) struct Queues {
    limits: MessageQueueLimits,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    conversations: HashMap<ConversationKey, Queue>,
    messages: usize,
    bytes: usize,
    file_bytes: usize,
    dropped: u64,
}

#[derive(Default)]
struct Queue {
    waiting: VecDeque<Waiting>,
    /// The number of messages that wait or have a reservation.
    taken: usize,
    /// Whether a task answers this conversation.
    has_task: bool,
    is_notified: bool,
}

impl Queues {
    pub fn new(limits: MessageQueueLimits) -> Self {
        Queues { limits, held: Mutex::default() }
    }

    /// Reserves space for a message.
    pub fn reserve(&self, message: &ChannelMessage) -> Admission {
        let mut held = self.held.lock();
        let size = size(message);
        let full = held.messages >= self.limits.messages
            || held.bytes + size.text > self.limits.bytes
            || held.file_bytes + size.files > self.limits.file_bytes;
        let queue = held.conversations.entry(ConversationKey::of(message)).or_default();
        if full || queue.taken >= self.limits.per_conversation {
            if queue.has_task && !queue.is_notified {
                queue.is_notified = true;
                queue.waiting.push_back(Waiting::Dropped { like: without_text(message) });
            }
            held.forget_if_empty(&ConversationKey::of(message));
            held.dropped += 1;
            return Admission::Full { dropped: held.dropped };
        }
        queue.taken += 1;
        held.messages += 1;
        held.bytes += size.text;
        held.file_bytes += size.files;
        Admission::Admitted
    }

    /// Releases the space of a message.
    pub fn release(&self, message: &ChannelMessage) {
        let mut held = self.held.lock();
        let conversation = ConversationKey::of(message);
        held.leave(&conversation, size(message));
        held.forget_if_empty(&conversation);
    }

    /// Adds a message with a reservation. Returns whether a task must be started for the conversation.
    pub fn push(&self, conversation: &ConversationKey, entry: EntryId, message: ChannelMessage) -> bool {
        let mut held = self.held.lock();
        let queue = held.conversations.entry(conversation.clone()).or_default();
        queue.waiting.push_back(Waiting::Message { entry, message });
        !std::mem::replace(&mut queue.has_task, true)
    }

    /// The next entry of a conversation; `None` if there is none, and then the conversation has no task anymore.
    pub fn pop(&self, conversation: &ConversationKey) -> Option<Waiting> {
        let mut held = self.held.lock();
        let queue = held.conversations.get_mut(conversation)?;
        let next = queue.waiting.pop_front();
        match &next {
            Some(Waiting::Message { message, .. }) => {
                let size = size(message);
                held.leave(conversation, size);
            }
            Some(Waiting::Dropped { .. }) => queue.is_notified = false,
            None => {
                queue.has_task = false;
                held.forget_if_empty(conversation);
            }
        }
        next
    }

    /// Forgets all that waits.
    pub fn clear(&self) {
        let mut held = self.held.lock();
        *held = Held { dropped: held.dropped, ..Held::default() };
    }

    #[cfg(test)]
    pub fn conversations(&self) -> usize {
        self.held.lock().conversations.len()
    }
}

impl Held {
    fn leave(&mut self, conversation: &ConversationKey, size: Size) {
        if let Some(queue) = self.conversations.get_mut(conversation) {
            queue.taken = queue.taken.saturating_sub(1);
        }
        self.messages = self.messages.saturating_sub(1);
        self.bytes = self.bytes.saturating_sub(size.text);
        self.file_bytes = self.file_bytes.saturating_sub(size.files);
    }

    fn forget_if_empty(&mut self, conversation: &ConversationKey) {
        let empty = self
            .conversations
            .get(conversation)
            .is_some_and(|queue| queue.taken == 0 && queue.waiting.is_empty() && !queue.has_task);
        if empty {
            self.conversations.remove(conversation);
        }
    }
}

/// About the memory that a message uses.
#[derive(Clone, Copy)]
struct Size {
    text: usize,
    files: usize,
}

fn size(message: &ChannelMessage) -> Size {
    let text = message.content.len()
        + message.sender.len()
        + message.conversation_id.len()
        + message.message_id.len()
        + 256;
    Size { text, files: message.files.iter().map(|file| file.bytes.len()).sum() }
}

fn without_text(message: &ChannelMessage) -> ChannelMessage {
    ChannelMessage { content: String::new(), files: Vec::new(), ..message.clone() }
}
