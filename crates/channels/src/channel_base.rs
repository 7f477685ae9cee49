//! What all channels have in common: an inbox, a sender, a status, and a task that listens. Knows no socket and no process: the
//! channel passes in the sender and the work of listening.

use std::sync::Arc;

use hob_core::EventBus;
use parking_lot::Mutex;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::inbox::{Inbox, InboxParts, MessageHandler};
use crate::outgoing::{MessageSender, Outgoing, deliver};
use crate::status::StatusCell;
use crate::status_transitions::Trigger;
use crate::types::{ChannelError, ChannelReport, ChannelStatus};

/// One channel. It stops listening when it is dropped; [`Self::close`] also waits for that.
pub(crate) struct ChannelBase {
    sender: Arc<dyn MessageSender>,
    inbox: Inbox,
    events: EventBus,
    status: StatusCell,
    listening: Mutex<Option<Listening>>,
}

struct Listening {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl ChannelBase {
    pub fn new(parts: InboxParts, status: StatusCell) -> Self {
        ChannelBase {
            sender: Arc::clone(&parts.sender),
            events: parts.events.clone(),
            inbox: Inbox::new(parts),
            status,
            listening: Mutex::default(),
        }
    }

    pub fn inbox(&self) -> &Inbox {
        &self.inbox
    }

    pub fn on_message(&self, handler: Arc<dyn MessageHandler>) {
        self.inbox.on_message(handler);
    }

    /// Runs `listen` until its token is cancelled. Does nothing when it runs already.
    pub fn start<F>(&self, listen: impl FnOnce(CancellationToken) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let mut listening = self.listening.lock();
        if listening.as_ref().is_some_and(|listening| !listening.task.is_finished()) {
            return;
        }
        self.status.note(Trigger::Connect);
        self.sender.set_listening(true);
        let stop = CancellationToken::new();
        let task = tokio::spawn(listen(stop.clone()));
        *listening = Some(Listening { stop: stop.drop_guard(), task });
    }

    /// The status once an attempt to connect has succeeded or failed.
    pub async fn settled(&self) -> ChannelStatus {
        self.status.settled().await.status
    }

    /// Stops listening, and waits for that. What was received is still answered, where the sender lets it.
    pub async fn disconnect(&self) {
        let listening = self.listening.lock().take();
        if let Some(Listening { stop, task }) = listening {
            drop(stop);
            if let Err(error) = task.await {
                tracing::error!(%error, "the listener of a channel failed");
            }
        }
        self.sender.set_listening(false);
        self.status.note(Trigger::Disconnect);
    }

    /// Stops everything. Messages that were not answered stay in the store.
    pub async fn close(&self) {
        // First, so that a reply that is ready still finds its way.
        self.inbox.close().await;
        self.disconnect().await;
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

    pub fn status(&self) -> ChannelStatus {
        self.status.get().status
    }

    /// How it is; `gateway_url` is empty where there is no gateway.
    pub fn report(&self, gateway_url: &str) -> ChannelReport {
        let current = self.status.get();
        ChannelReport {
            status: current.status,
            gateway_url: gateway_url.to_owned(),
            trouble: current.trouble,
        }
    }
}

impl Drop for ChannelBase {
    fn drop(&mut self) {
        self.inbox.stop();
    }
}
