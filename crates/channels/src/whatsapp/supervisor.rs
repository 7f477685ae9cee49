//! Starts the subprocess, reads its events, and starts it again when it ends.

use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt;
use hob_core::Backoff;
use hob_process::{Supervised, supervise};
use tokio::sync::mpsc;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::event::{self, Event, Order, Received, Said};
use super::mention::MentionRule;
use super::process::{Lines, Process, Session, WhatsappProgram, WhatsappStartError};
use super::sender::WhatsappSender;
use super::{CHANNEL, jid};
use crate::inbox::Inbox;
use crate::status::StatusCell;
use crate::status_transitions::Trigger;
use crate::types::{ChannelMessage, ChannelStatus};

/// The longest wait before a dead subprocess is started again.
const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// The owner of the subprocess.
pub(super) struct WhatsappSupervisor {
    pub program: WhatsappProgram,
    pub restart_delay: Duration,
    pub mention_rule: MentionRule,
    pub status: StatusCell,
    pub sender: Arc<WhatsappSender>,
    pub inbox: Inbox,
}

impl WhatsappSupervisor {
    /// Owns the subprocess from its first start to the end.
    pub async fn supervise(self: Arc<Self>, stop: CancellationToken) {
        self.inbox.resume(|message| message.channel == CHANNEL).await;
        let backoff = Backoff { first: self.restart_delay, longest: LONGEST_DELAY };
        supervise(&*self, backoff, &stop).await;
    }

    fn start(&self) -> Result<(Session, Process, Lines), WhatsappStartError> {
        let session = Session::claim(&self.program.auth_dir)?;
        let (process, lines) = Process::spawn(&self.program)?;
        Ok((session, process, lines))
    }

    /// Listens to the subprocess and tells it what to send; how it ended, or `None` when it was told to.
    async fn attend(
        &self,
        mut process: Process,
        mut lines: Lines,
        stop: &CancellationToken,
    ) -> Option<String> {
        let mut orders = self.sender.attach();
        let how = loop {
            tokio::select! {
                () = stop.cancelled() => break None,
                line = lines.next() => match line {
                    Some(Ok(line)) => self.hear(&line).await,
                    Some(Err(error)) => break Some(format!("what it says cannot be read: {error}")),
                    None => break Some(process.ended().await),
                },
                order = next(&mut orders) => {
                    if let Err(reason) = process.write(&order.line()).await {
                        break Some(reason);
                    }
                }
            }
        };
        self.sender.detach();
        process.stop(&Order::Disconnect.line()).await;
        how
    }

    async fn hear(&self, line: &str) {
        match event::read(line) {
            Ok(Event::Status { status: Said::Connected }) => {
                tracing::info!("connected to WhatsApp");
                self.status.note(Trigger::SaysConnected);
            }
            Ok(Event::Status { status: Said::Disconnected }) => self.status.note(Trigger::SaysDisconnected),
            Ok(Event::Qr { .. }) => {
                let advice =
                    "WhatsApp is not linked. Run 'hob channel login whatsapp' and scan the code it shows";
                if self.status.trouble(Trigger::SaysDisconnected, advice) {
                    tracing::warn!("{advice}");
                }
            }
            Ok(Event::Message(received)) => self.receive(received).await,
            Ok(Event::Sent { id }) => self.sender.sent(&id),
            Ok(Event::Error { message, id: Some(id), unsent }) => self.sender.failed(&id, message, unsent),
            Ok(Event::Error { message, id: None, .. }) => {
                if self.status.trouble(Trigger::SaysError, &message) {
                    tracing::error!(%message, "WhatsApp reports an error");
                }
            }
            Err(reason) => {
                tracing::warn!(bytes = line.len(), %reason, "a line of the WhatsApp bridge is skipped")
            }
        }
    }

    /// What is not meant for the assistant is its owner's private matter, and goes no further.
    async fn receive(&self, received: Received) {
        let is_group = jid::is_group(&received.jid);
        if received.from_me && self.sender.said(&received.text) {
            return;
        }
        let Some(asked) = self.mention_rule.asked(&received.text, is_group, received.from_me) else { return };
        let message = ChannelMessage {
            channel: CHANNEL.to_owned(),
            sender: received.sender,
            content: asked.to_owned(),
            message_id: received.message_id,
            conversation_id: received.jid,
            metadata: serde_json::Map::new(),
        };
        self.inbox.accept(message).await;
    }
}

impl Supervised for &WhatsappSupervisor {
    async fn run(&mut self, stop: &CancellationToken) -> Duration {
        let (session, process, lines) = match self.start() {
            Ok(started) => started,
            Err(error) => {
                if self.status.trouble(Trigger::RuntimeMissing, &error.to_string()) {
                    tracing::error!(%error, "WhatsApp is not available");
                }
                return Duration::ZERO;
            }
        };
        let since = Instant::now();
        let ended = self.attend(process, lines, stop).await;
        drop(session);
        if let Some(how) = ended {
            let trouble = match self.status.get().trouble {
                // What the subprocess reported itself says more than how it ended.
                Some(reported) if self.status.get().status == ChannelStatus::Error => reported,
                _ => format!("the WhatsApp bridge ended: {how}"),
            };
            if self.status.trouble(Trigger::SaysError, &trouble) {
                tracing::warn!(%how, "the WhatsApp bridge ended; restarting it");
            }
        }
        since.elapsed()
    }
}

/// The next order. Those who give orders outlive those who take them.
async fn next(orders: &mut mpsc::Receiver<Order>) -> Order {
    match orders.recv().await {
        Some(order) => order,
        None => std::future::pending().await,
    }
}
