//! Queues messages for the handlers: one after the other within a conversation, several conversations at once, and within limits.
//!
//! Knows no socket and no process: replies go out through a [`MessageSender`].

mod queues;

use std::panic::AssertUnwindSafe;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::join_all;
use hob_core::{Event, EventBus};
use parking_lot::RwLock;
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::outgoing::{MessageSender, Outgoing, SendFailure, deliver};
use crate::seen_messages::{EntryId, SeenMessages, identity};
use crate::types::{ChannelError, ChannelMessage};
use queues::{Admission, ConversationKey, Queues, Waiting};

/// How much may wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InboxLimits {
    /// Messages of one conversation.
    pub per_conversation: usize,
    /// Messages of all conversations.
    pub messages: usize,
    /// Their text, in bytes.
    pub bytes: usize,
    /// Conversations that are answered at the same time.
    pub side_by_side: usize,
    /// How long a reply is kept for a channel that is not connected.
    pub reply_patience: Duration,
}

impl Default for InboxLimits {
    fn default() -> Self {
        InboxLimits {
            per_conversation: 100,
            messages: 16_384,
            bytes: 16 << 20,
            side_by_side: 16,
            reply_patience: Duration::from_secs(600),
        }
    }
}

/// The pause between two attempts to send a reply.
const REPLY_PAUSE: Duration = Duration::from_secs(2);

/// How long a reply that is under way may take to arrive when the end was asked for.
const LAST_MOMENT: Duration = Duration::from_secs(2);

/// The reply to a sender whose messages find no room.
const NO_ROOM: &str =
    "I have not got to your last messages: too many are waiting. Please send them again in a while.";

/// What a handler has to say: nothing, or a reply.
pub type HandlerResult = Result<Option<String>, Box<dyn std::error::Error + Send + Sync>>;

/// Gets every message. What it returns is sent to where the message came from.
#[async_trait]
pub trait MessageHandler: Send + Sync {
    async fn handle(&self, message: &ChannelMessage) -> HandlerResult;
}

/// The parts of an inbox.
#[derive(Clone)]
pub(crate) struct InboxParts {
    pub sender: Arc<dyn MessageSender>,
    pub seen_messages: Arc<dyn SeenMessages>,
    pub events: EventBus,
    pub limits: InboxLimits,
}

/// The inbox of one channel. Clones are the same one.
#[derive(Clone)]
pub(crate) struct Inbox {
    shared: Arc<Shared>,
}

struct Shared {
    parts: InboxParts,
    handlers: RwLock<Vec<Arc<dyn MessageHandler>>>,
    queues: Queues,
    answer_slots: Semaphore,
    /// Whether the messages that an earlier process left were taken in.
    resumed: AtomicBool,
    stop: CancellationToken,
    at_work: TaskTracker,
}

impl Inbox {
    pub fn new(parts: InboxParts) -> Self {
        let shared = Shared {
            queues: Queues::new(parts.limits),
            answer_slots: Semaphore::new(parts.limits.side_by_side),
            parts,
            handlers: RwLock::default(),
            resumed: AtomicBool::new(false),
            stop: CancellationToken::new(),
            at_work: TaskTracker::new(),
        };
        Inbox { shared: Arc::new(shared) }
    }

    pub fn on_message(&self, handler: Arc<dyn MessageHandler>) {
        self.shared.handlers.write().push(handler);
    }

    /// Takes in what an earlier process left unanswered, of the channels that are `ours`. The first time only: later on, what is
    /// not settled is in the queues.
    pub async fn resume(&self, ours: impl Fn(&ChannelMessage) -> bool) {
        if self.shared.resumed.swap(true, Ordering::Relaxed) {
            return;
        }
        let left: Vec<_> = self.shared.parts.seen_messages.unsettled().await;
        for (entry, message) in left.into_iter().filter(|(_, message)| ours(message)) {
            if self.shared.queues.reserve(&message) == Admission::Admitted {
                self.enqueue(entry, message);
            }
        }
    }

    /// Takes a message in, or leaves it out when it was seen before or there is no room. Never waits for an answer.
    pub async fn accept(&self, message: ChannelMessage) {
        match self.shared.queues.reserve(&message) {
            Admission::Admitted => {}
            Admission::Full { left_out } => {
                // A flood must not flood the log too.
                if left_out.is_power_of_two() {
                    tracing::warn!(channel = %message.channel, left_out, "messages are left out: too many wait for an answer");
                }
                return;
            }
        }
        // A task of its own: a connection that breaks meanwhile drops this future, and a message that stands in the store as
        // taken must get into a queue.
        let inbox = self.clone();
        let taking = self.shared.at_work.spawn(async move { inbox.take_in(message).await });
        // It fails only with the runtime's end, or by a panic that the hook has told of.
        let _ = taking.await;
    }

    async fn take_in(&self, message: ChannelMessage) {
        let Some(entry) = self.shared.parts.seen_messages.take(&message).await else {
            tracing::debug!(channel = %message.channel, id = %message.message_id, "a message came twice");
            self.shared.queues.release(&message);
            return;
        };
        let received = Event::ChannelMessageReceived {
            channel: message.channel.clone(),
            sender: message.sender.clone(),
            content: message.content.clone(),
            message_id: message.message_id.clone(),
        };
        self.shared.parts.events.publish(&"".into(), received);
        self.enqueue(entry, message);
    }

    fn enqueue(&self, entry: EntryId, message: ChannelMessage) {
        let conversation = ConversationKey::of(&message);
        if self.shared.queues.push(&conversation, entry, message) {
            let shared = Arc::clone(&self.shared);
            self.shared.at_work.spawn(async move { shared.attend(&conversation).await });
        }
    }

    /// Tasks that answer or wait to.
    #[cfg(test)]
    pub fn at_work(&self) -> usize {
        self.shared.at_work.len()
    }

    /// Stops answering. What is unanswered stays in the store.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    /// The same, and waits until all work has ended.
    pub async fn close(&self) {
        self.stop();
        self.shared.at_work.close();
        self.shared.at_work.wait().await;
    }
}

impl Shared {
    /// Answers the messages of one conversation until none waits.
    async fn attend(&self, conversation: &ConversationKey) {
        loop {
            // The place is given up after each message, so that one long conversation does not keep the others waiting.
            let place = self.stop.run_until_cancelled(self.answer_slots.acquire()).await;
            let Some(Ok(_place)) = place else { return };
            match self.queues.pop(conversation) {
                Some(Waiting::Message { entry, message }) => self.answer(entry, &message).await,
                Some(Waiting::LeftOut { like }) => self.reply(&like, NO_ROOM, "-left-out", None).await,
                None => return,
            }
        }
    }

    /// Has a message answered. One that is given up in the middle of a thought stays in the store.
    async fn answer(&self, entry: EntryId, message: &ChannelMessage) {
        let Some(replies) = self.stop.run_until_cancelled(self.replies(message)).await else { return };
        if replies.is_empty() {
            self.parts.seen_messages.settle(entry).await;
        }
        for (number, reply) in replies.iter().enumerate() {
            let entry = (number == 0).then_some(entry);
            self.reply(message, reply, &format!("-{number}"), entry).await;
        }
    }

    /// What the handlers have to say.
    async fn replies(&self, message: &ChannelMessage) -> Vec<String> {
        let handlers = self.handlers.read().clone();
        let handled = handlers.iter().map(|handler| AssertUnwindSafe(handler.handle(message)).catch_unwind());
        join_all(handled)
            .await
            .into_iter()
            .filter_map(|handled| match handled {
                Ok(Ok(reply)) => reply.filter(|reply| !reply.trim().is_empty()),
                Ok(Err(error)) => {
                    tracing::warn!(channel = %message.channel, %error, "a message could not be handled");
                    None
                }
                // The panic hook has told of it already.
                Err(_) => None,
            })
            .collect()
    }

    /// Sends a reply, patiently while the channel is away. The message is settled before each attempt, not after it: a process
    /// that ends in between must not answer again.
    async fn reply(&self, message: &ChannelMessage, content: &str, suffix: &str, entry: Option<EntryId>) {
        let outgoing = match outgoing(message, content, suffix) {
            Ok(outgoing) => outgoing,
            Err(error) => {
                tracing::warn!(channel = %message.channel, %error, "no reply was sent");
                // It would be the same after a restart.
                if let Some(entry) = entry {
                    self.parts.seen_messages.settle(entry).await;
                }
                return;
            }
        };
        let deadline = Instant::now() + self.parts.limits.reply_patience;
        loop {
            if let Some(entry) = entry {
                self.parts.seen_messages.settle(entry).await;
            }
            let failed = tokio::select! {
                attempt = deliver(self.parts.sender.as_ref(), &self.parts.events, &outgoing) => match attempt {
                    Ok(()) => return,
                    Err(failed) => failed,
                },
                () = self.out_of_time() => SendFailure::Unknown("Hob ended".to_owned()),
            };
            if !matches!(failed, SendFailure::NotSent(_)) || Instant::now() >= deadline {
                return tracing::warn!(channel = %message.channel, error = %failed, "a reply was not delivered");
            }
            if let Some(entry) = entry {
                self.parts.seen_messages.reopen(entry, message).await;
            }
            if self.stop.run_until_cancelled(sleep(REPLY_PAUSE)).await.is_none() {
                return;
            }
        }
    }

    /// Comes a moment after the end was asked for: what is under way may still arrive.
    async fn out_of_time(&self) {
        self.stop.cancelled().await;
        sleep(LAST_MOMENT).await;
    }
}

/// A reply on its way.
fn outgoing(message: &ChannelMessage, content: &str, suffix: &str) -> Result<Outgoing, ChannelError> {
    let outgoing = Outgoing::new(&message.channel, content, reply_to(message))?;
    Ok(Outgoing {
        account_id: message.metadata.get("account_id").and_then(|id| id.as_str()).map(str::to_owned),
        // Derived from the message, so that the same message gets the same key.
        key: match identity(message) {
            Some(identity) => format!("hob-reply:{}{suffix}", identity.replace('\u{1f}', ":")),
            None => outgoing.key,
        },
        ..outgoing
    })
}

/// The conversation a reply goes to; where there is none, the channel's own way must do.
fn reply_to(message: &ChannelMessage) -> Option<&str> {
    Some(message.conversation_id.as_str()).filter(|id| !id.is_empty())
}

#[cfg(test)]
#[path = "inbox_tests.rs"]
mod tests;
