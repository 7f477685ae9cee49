//! Queues messages for the handlers: in order within a conversation, several conversations concurrently, and within limits.
//!
//! Knows no socket and no process: replies go out through a [`MessageSender`].

mod queues;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::join_all;
use hob_core::{Backoff, Event, EventBus};
use parking_lot::{Mutex, RwLock};
use serde_json::{Map, Value};
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::{Instant, sleep};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::blocking::STORE_BACKOFF;
use crate::live_reply::LiveReply;
use crate::outgoing::{MessageSender, Outgoing, SendFailure, deliver};
use crate::seen_messages::{EntryId, SeenMessages, Settled, TakeOutcome, identity};
use crate::types::{ChannelError, ChannelMessage};
pub use queues::MessageQueueLimits;
use queues::{Admission, ConversationKey, Queues, Waiting};

/// The pauses between attempts to send a reply.
const REPLY_BACKOFF: Backoff = Backoff { first: Duration::from_secs(2), longest: Duration::from_secs(30) };

/// How long a reply that is being sent may take after a stop.
const STOP_GRACE: Duration = Duration::from_secs(2);

/// The reply to a sender whose messages were dropped.
const DROPPED_NOTE: &str =
    "I did not get your last messages: too many are waiting. Please send them again later.";

/// The name under which a channel notes what a message is about.
pub(crate) const SUBJECT: &str = "subject";

/// The name under which a channel notes that someone else than its sender wrote a message.
pub(crate) const FORWARDED: &str = "forwarded";

/// Whether that is noted. A gateway may note it in another way than with `true`, such as with the name of that person.
pub(crate) fn is_forwarded(metadata: &Map<String, Value>) -> bool {
    metadata.get(FORWARDED).is_some_and(|noted| *noted != false && !noted.is_null())
}

/// Ends the key of the first reply to a message.
const FIRST: &str = "-0";

/// The reply of a handler, if any.
pub type HandlerResult = Result<Option<String>, Box<dyn std::error::Error + Send + Sync>>;

/// Gets every message. Its reply is sent to the conversation of the message.
#[async_trait]
pub trait MessageHandler: Send + Sync {
    async fn handle(&self, message: &ChannelMessage, live: &dyn LiveReply) -> HandlerResult;
}

/// The parts of a message queue.
#[derive(Clone)]
pub(crate) struct MessageQueueParts {
    pub sender: Arc<dyn MessageSender>,
    pub seen_messages: Arc<dyn SeenMessages>,
    pub events: EventBus,
    pub limits: MessageQueueLimits,
}

/// The queue of one channel. Clones share it.
#[derive(Clone)]
pub(crate) struct MessageQueue {
    shared: Arc<Shared>,
}

struct Shared {
    parts: MessageQueueParts,
    handlers: RwLock<Vec<Arc<dyn MessageHandler>>>,
    queues: Queues,
    answer_slots: Semaphore,
    waiting_replies: Semaphore,
    /// Whether the messages of an earlier process were queued.
    resumed: AtomicBool,
    stop: CancellationToken,
    answering: Mutex<Answering>,
}

/// The tasks that answer, until the queue stops or pauses.
#[derive(Clone)]
struct Answering {
    stop: CancellationToken,
    tasks: TaskTracker,
}

impl Answering {
    fn new(stop: &CancellationToken) -> Self {
        Answering { stop: stop.child_token(), tasks: TaskTracker::new() }
    }

    async fn ended(&self) {
        self.tasks.close();
        self.tasks.wait().await;
    }
}

impl MessageQueue {
    pub fn new(parts: MessageQueueParts) -> Self {
        let stop = CancellationToken::new();
        let shared = Shared {
            queues: Queues::new(parts.limits),
            answer_slots: Semaphore::new(parts.limits.concurrent),
            waiting_replies: Semaphore::new(parts.limits.waiting_replies),
            parts,
            handlers: RwLock::default(),
            resumed: AtomicBool::new(false),
            answering: Mutex::new(Answering::new(&stop)),
            stop,
        };
        MessageQueue { shared: Arc::new(shared) }
    }

    pub fn on_message(&self, handler: Arc<dyn MessageHandler>) {
        self.shared.handlers.write().push(handler);
    }

    /// Queues the messages that an earlier process did not answer, if they are `ours`. Only the first call does it, and the first one
    /// after a pause: later, unanswered messages are in the queues. Waits for a shared database.
    pub async fn resume(&self, ours: impl Fn(&ChannelMessage) -> bool) {
        if self.shared.resumed.load(Ordering::Relaxed) {
            return;
        }
        let mut delays = STORE_BACKOFF.delays();
        let left = loop {
            if let Some(left) = self.shared.parts.seen_messages.unsettled().await {
                break left;
            }
            if stops_within(&self.shared.stop, delays.next_delay()).await {
                return;
            }
        };
        // Only now: a caller that stops waiting has resumed nothing.
        self.shared.resumed.store(true, Ordering::Relaxed);
        let answering = self.shared.answering();
        for (entry, message) in left.into_iter().filter(|(_, message)| ours(message)) {
            if self.shared.queues.reserve(&message) == Admission::Admitted {
                self.enqueue(entry, message, &answering);
            }
        }
    }

    /// Queues a message, or drops it if it was seen before or the queue is full. Waits for a shared database, and not for an answer.
    /// Returns `false` if Hob stops before the message is saved: then its service must send it again.
    pub async fn accept(&self, message: ChannelMessage) -> bool {
        self.accept_until(message, self.shared.stop.clone()).await
    }

    /// The same for a service that sends a message again until it is confirmed. A pause ends the wait for the database: the process that
    /// is connected then gets the message again, and would take one that is saved later for one that is answered.
    pub async fn accept_repeated(&self, message: ChannelMessage) -> bool {
        let pause = self.shared.answering().stop;
        self.accept_until(message, pause).await
    }

    async fn accept_until(&self, message: ChannelMessage, stop: CancellationToken) -> bool {
        match self.shared.queues.reserve(&message) {
            Admission::Admitted => {}
            Admission::Full { dropped } => {
                // Logged at powers of two, so that a flood does not fill the log.
                if dropped.is_power_of_two() {
                    tracing::warn!(
                        channel = %message.channel,
                        dropped,
                        "messages are dropped: too many wait for an answer. Use a faster model"
                    );
                }
                return true;
            }
        }
        // In a separate task, because a lost connection drops this future, and a message that is in the store must get into a
        // queue.
        let (queue, answering) = (self.clone(), self.shared.answering());
        let tasks = answering.tasks.clone();
        let taking = tasks.spawn(async move { queue.take_in(message, &answering, &stop).await });
        // It fails only when the runtime ends, or after a panic, which is logged and would happen again.
        taking.await.unwrap_or_else(|error| error.is_panic())
    }

    async fn take_in(
        &self,
        message: ChannelMessage,
        answering: &Answering,
        stop: &CancellationToken,
    ) -> bool {
        let mut delays = STORE_BACKOFF.delays();
        let entry = loop {
            match self.shared.parts.seen_messages.take(&message).await {
                TakeOutcome::New(entry) => break entry,
                TakeOutcome::Known => {
                    tracing::debug!(channel = %message.channel, id = %message.message_id, "ignored a message that was received before");
                    self.shared.queues.release(&message);
                    return true;
                }
                TakeOutcome::Failed => {
                    if stops_within(stop, delays.next_delay()).await {
                        self.shared.queues.release(&message);
                        return false;
                    }
                }
            }
        };
        let received = Event::ChannelMessageReceived {
            channel: message.channel.clone(),
            sender: message.sender.clone(),
            content: message.content.clone(),
            message_id: message.message_id.clone(),
        };
        self.shared.parts.events.publish(&"".into(), received);
        self.enqueue(entry, message, answering);
        true
    }

    fn enqueue(&self, entry: EntryId, message: ChannelMessage, answering: &Answering) {
        // After a pause, this process or another one finds it in the store. In the queue it would run a second time.
        if answering.stop.is_cancelled() {
            self.shared.queues.release(&message);
            return;
        }
        let conversation = ConversationKey::of(&message);
        if self.shared.queues.push(&conversation, entry, message) {
            let (shared, stop) = (Arc::clone(&self.shared), answering.stop.clone());
            answering.tasks.spawn(async move { shared.attend(&conversation, &stop).await });
        }
    }

    /// The number of tasks that answer or wait.
    #[cfg(test)]
    pub fn tasks(&self) -> usize {
        self.shared.answering().tasks.len()
    }

    /// Stops answering. Unanswered messages stay in the store.
    pub fn stop(&self) {
        self.shared.stop.cancel();
    }

    /// Stops answering, and waits until all tasks have ended.
    pub async fn close(&self) {
        self.stop();
        self.shared.answering().ended().await;
    }

    /// Stops answering for now: another process answers what is in the store.
    pub fn interrupt(&self) {
        self.shared.answering().stop.cancel();
    }

    /// Waits until nothing is answered, and empties the queues. Nothing may be accepted meanwhile.
    pub async fn pause(&self) {
        self.interrupt();
        let before = std::mem::replace(&mut *self.shared.answering.lock(), Answering::new(&self.shared.stop));
        before.ended().await;
        self.shared.queues.clear();
        self.shared.resumed.store(false, Ordering::Relaxed);
    }
}

impl Shared {
    fn answering(&self) -> Answering {
        self.answering.lock().clone()
    }

    /// Answers the messages of one conversation until none waits.
    async fn attend(&self, conversation: &ConversationKey, stop: &CancellationToken) {
        loop {
            // The slot is released after each message, so that one long conversation does not block the others.
            let slot = stop.run_until_cancelled(self.answer_slots.acquire()).await;
            let Some(Ok(slot)) = slot else { return };
            let mut turn = Turn { stop, slot: Some(slot) };
            match self.queues.pop(conversation) {
                Some(Waiting::Message { entry, message }) => self.answer(entry, &message, &mut turn).await,
                Some(Waiting::Dropped { like }) => {
                    let reply = Reply { content: DROPPED_NOTE, suffix: "-dropped", entry: None };
                    self.reply(&like, reply, &mut turn).await;
                }
                None => return,
            }
        }
    }

    /// Answers a message. After a stop, a message without a reply stays in the store.
    async fn answer(&self, entry: EntryId, message: &ChannelMessage, turn: &mut Turn<'_>) {
        let Some(replies) = turn.stop.run_until_cancelled(self.replies(message)).await else { return };
        if replies.is_empty() {
            self.parts.seen_messages.settle(entry).await;
        }
        for (number, content) in replies.iter().enumerate() {
            let suffix = if number == 0 { FIRST.to_owned() } else { format!("-{number}") };
            let reply = Reply { content, suffix: &suffix, entry: (number == 0).then_some(entry) };
            if !self.reply(message, reply, turn).await {
                return;
            }
        }
    }

    /// The replies of all handlers.
    async fn replies(&self, message: &ChannelMessage) -> Vec<String> {
        let handlers = self.handlers.read().clone();
        let live = self.parts.sender.live(message, &reply_key(message, FIRST).unwrap_or_default());
        let handled = handlers
            .iter()
            .map(|handler| AssertUnwindSafe(handler.handle(message, live.as_ref())).catch_unwind());
        join_all(handled)
            .await
            .into_iter()
            .filter_map(|handled| match handled {
                Ok(Ok(reply)) => reply.filter(|reply| !reply.trim().is_empty()),
                Ok(Err(error)) => {
                    tracing::warn!(
                        channel = %message.channel,
                        %error,
                        "a message is not answered. 'hob doctor' checks the engines and the database"
                    );
                    None
                }
                // The panic hook has logged it.
                Err(_) => None,
            })
            .collect()
    }

    /// Sends a reply, and retries while the channel is not connected or does not take it. A reply that waits does not hold up other
    /// conversations: a stranger can give an address that nothing can be sent to. The message is settled before each attempt, not
    /// after it: a process that ends in between must not answer again. Returns `false` if another process answers the message.
    async fn reply(&self, message: &ChannelMessage, reply: Reply<'_>, turn: &mut Turn<'_>) -> bool {
        let Reply { content, suffix, entry } = reply;
        let outgoing = match outgoing(message, content, suffix) {
            Ok(outgoing) => outgoing,
            Err(error) => {
                tracing::warn!(
                    channel = %message.channel,
                    %error,
                    "a reply cannot be sent and is dropped. 'hob channel status' tests the channels"
                );
                // It would fail again after a restart.
                return match entry {
                    Some(entry) => self.parts.seen_messages.settle(entry).await != Settled::ByOther,
                    None => true,
                };
            }
        };
        let deadline = Instant::now() + self.parts.limits.reply_timeout;
        let (mut delays, mut waiting) = (REPLY_BACKOFF.delays(), None);
        loop {
            let settled = match entry {
                Some(entry) => self.parts.seen_messages.settle(entry).await,
                None => Settled::Yes,
            };
            let failed = match settled {
                Settled::ByOther => {
                    tracing::debug!(channel = %message.channel, "another process answers this message");
                    return false;
                }
                Settled::Failed => SendFailure::NotSent("the database does not answer".to_owned()),
                Settled::Yes => tokio::select! {
                    attempt = deliver(self.parts.sender.as_ref(), &self.parts.events, &outgoing) => match attempt {
                        Ok(()) => return true,
                        Err(failed) => failed,
                    },
                    () = grace_ended(turn.stop) => SendFailure::Unknown("Hob stopped".to_owned()),
                },
            };
            if !matches!(failed, SendFailure::NotSent(_)) || Instant::now() >= deadline {
                tracing::warn!(
                    channel = %message.channel,
                    error = %failed,
                    "a reply is not delivered. 'hob channel status' tests the channels"
                );
                return true;
            }
            if let Some(entry) = entry.filter(|_| settled == Settled::Yes) {
                self.parts.seen_messages.reopen(entry, message).await;
            }
            if waiting.is_none()
                && let Ok(permit) = self.waiting_replies.try_acquire()
            {
                waiting = Some(permit);
                drop(turn.slot.take());
            }
            if turn.stop.run_until_cancelled(sleep(delays.next_delay())).await.is_none() {
                return true;
            }
        }
    }
}

/// Waits. Returns whether there was a stop meanwhile.
async fn stops_within(stop: &CancellationToken, pause: Duration) -> bool {
    stop.run_until_cancelled(sleep(pause)).await.is_none()
}

/// The time of one message: until the queue stops, and as one of those that are answered concurrently while it has a slot.
struct Turn<'a> {
    stop: &'a CancellationToken,
    slot: Option<SemaphorePermit<'a>>,
}

/// What is sent for a message.
#[derive(Clone, Copy)]
struct Reply<'a> {
    content: &'a str,
    /// Distinguishes the replies to one message.
    suffix: &'a str,
    /// The message that is answered with it.
    entry: Option<EntryId>,
}

/// Ends shortly after the stop, so that a reply that is being sent may still arrive.
async fn grace_ended(stop: &CancellationToken) {
    stop.cancelled().await;
    sleep(STOP_GRACE).await;
}

fn outgoing(message: &ChannelMessage, content: &str, suffix: &str) -> Result<Outgoing, ChannelError> {
    let outgoing = Outgoing::new(&message.channel, content, reply_to(message))?;
    Ok(Outgoing {
        account_id: noted(message, "account_id"),
        subject: noted(message, SUBJECT),
        reply_to: Some(message.message_id.clone()).filter(|id| !id.is_empty()),
        // Derived from the message, so that the same message gets the same key.
        key: reply_key(message, suffix).unwrap_or(outgoing.key),
        ..outgoing
    })
}

/// A text that the channel noted with a message.
fn noted(message: &ChannelMessage, name: &str) -> Option<String> {
    message.metadata.get(name).and_then(|text| text.as_str()).map(str::to_owned)
}

/// The key of a reply; `None` if the channel gives the message no id.
fn reply_key(message: &ChannelMessage, suffix: &str) -> Option<String> {
    identity(message).map(|identity| format!("hob-reply:{}{suffix}", identity.replace('\u{1f}', ":")))
}

/// The conversation of a reply; `None` if the channel has none.
fn reply_to(message: &ChannelMessage) -> Option<&str> {
    Some(message.conversation_id.as_str()).filter(|id| !id.is_empty())
}

#[cfg(test)]
#[path = "message_queue_tests.rs"]
mod tests;
