//! One channel: a message queue, a sender, a status, and a task that listens. Knows no socket and no process: the gateway and WhatsApp
//! pass in the sender and the listener.

use std::sync::Arc;

use hob_core::EventBus;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::listener::Listener;
use crate::message_queue::{MessageHandler, MessageQueue, MessageQueueParts};
use crate::outgoing::{MessageSender, Outgoing, SendFailure, deliver};
use crate::sharing::{ChannelSharing, Lease, LeasedListener, SharedSender};
use crate::status::StatusCell;
use crate::status_transitions::Trigger;
use crate::types::{ChannelError, ChannelReport, ChannelStatus};

/// A gateway or WhatsApp. It stops listening when it is dropped; [`Self::close`] also waits for that.
pub struct Channel {
    /// Empty where there is no gateway.
    gateway_url: String,
    listener: Arc<dyn Listener>,
    sender: Arc<dyn MessageSender>,
    queue: MessageQueue,
    events: EventBus,
    status: StatusCell,
    listening: Mutex<Option<Listening>>,
}

struct Listening {
    stop: DropGuard,
    task: JoinHandle<()>,
}

/// What a channel consists of.
pub(crate) struct ChannelParts {
    /// The same in all processes that connect to it.
    pub name: String,
    /// `None` if no other process connects to it.
    pub sharing: Option<ChannelSharing>,
    pub gateway_url: String,
    pub queue: MessageQueueParts,
    pub status: StatusCell,
}

impl Channel {
    pub(crate) fn new<L: Listener>(parts: ChannelParts, listener: impl FnOnce(MessageQueue) -> L) -> Self {
        let ChannelParts { name, sharing, gateway_url, queue: mut parts, status } = parts;
        let direct = Arc::clone(&parts.sender);
        let lease = sharing.map(|sharing| Arc::new(Lease::new(sharing, name)));
        if let Some(lease) = &lease {
            parts.sender = Arc::new(SharedSender::new(Arc::clone(&direct), Arc::clone(lease)));
        }
        let (sender, events) = (Arc::clone(&parts.sender), parts.events.clone());
        let queue = MessageQueue::new(parts);
        let listener: Arc<dyn Listener> = Arc::new(listener(queue.clone()));
        let listener: Arc<dyn Listener> = match lease {
            Some(lease) => Arc::new(LeasedListener {
                listener,
                lease,
                direct,
                queue: queue.clone(),
                status: status.clone(),
            }),
            None => listener,
        };
        Channel { gateway_url, listener, sender, queue, events, status, listening: Mutex::default() }
    }

    /// Gets every message from now on. All handlers are called for every message.
    pub fn on_message(&self, handler: Arc<dyn MessageHandler>) {
        self.queue.on_message(handler);
    }

    /// Starts to listen, without waiting for a connection. Does nothing if it listens already.
    pub fn start(&self) {
        let mut listening = self.listening.lock();
        if listening.as_ref().is_some_and(|listening| !listening.task.is_finished()) {
            return;
        }
        self.status.note(Trigger::Connect);
        self.sender.set_listening(true);
        let (stop, listener) = (CancellationToken::new(), Arc::clone(&self.listener));
        let stopped = stop.clone();
        let task = tokio::spawn(async move { listener.listen(stopped).await });
        *listening = Some(Listening { stop: stop.drop_guard(), task });
    }

    /// Starts to listen, and waits until the first attempt to connect has succeeded or failed. After a failure it tries again.
    pub async fn connect(&self) -> ChannelStatus {
        self.start();
        self.status.settled().await.status
    }

    /// Stops listening, and waits for that. Received messages are still answered if the sender can send without listening.
    pub async fn disconnect(&self) {
        let listening = self.listening.lock().take();
        if let Some(Listening { stop, task }) = listening {
            drop(stop);
            if let Err(error) = task.await {
                tracing::error!(
                    %error,
                    "the listener of a channel panicked. Report this bug with the panic message on standard \
                     error"
                );
            }
        }
        self.sender.set_listening(false);
        self.status.note(Trigger::Disconnect);
    }

    /// Stops everything. Messages that were not answered stay in the store.
    pub async fn close(&self) {
        // First, so that a reply that is ready can still be sent.
        self.queue.close().await;
        self.disconnect().await;
        // What came in until then is saved.
        self.queue.close().await;
    }

    pub async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError> {
        let message = Outgoing::new(channel, content, conversation_id)?;
        deliver(self.sender.as_ref(), &self.events, &message).await.map_err(|error| error.explain(channel))
    }

    /// Refuses a recipient that [`Self::send`] cannot send to.
    pub(crate) fn check_recipient(
        &self,
        channel: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), SendFailure> {
        self.sender.check_recipient(channel, conversation_id)
    }

    /// The names that [`Self::send`] can reach.
    pub async fn list_channels(&self) -> Result<Vec<String>, ChannelError> {
        let listed = self.sender.channels().await;
        listed.map_err(|reason| ChannelError::Unlisted { gateway: self.gateway_url.clone(), reason })
    }

    pub fn status(&self) -> ChannelStatus {
        self.status.get().status
    }

    pub fn report(&self) -> ChannelReport {
        let current = self.status.get();
        ChannelReport {
            status: current.status,
            gateway_url: self.gateway_url.clone(),
            problem: current.problem,
        }
    }
}

impl Drop for Channel {
    fn drop(&mut self) {
        self.queue.stop();
    }
}
