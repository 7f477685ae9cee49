//! Starts the subprocess, reads its events, and restarts it when it ends.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::StreamExt;
use hob_core::Backoff;
use hob_process::{Supervised, supervise};
use serde_json::Map;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use tokio_util::sync::CancellationToken;

use super::event::{self, Event, Order, Received, ReportedStatus};
use super::install::{InstallError, WhatsappInstaller};
use super::jid::{self, CHANNEL};
use super::link_code::LinkCode;
use super::mention::MentionRule;
use super::process::{Lines, Process, Session, WhatsappProgram, WhatsappStartError};
use super::sender::WhatsappSender;
use crate::listener::Listener;
use crate::message_queue::{FORWARDED, MessageQueue};
use crate::status::StatusCell;
use crate::status_transitions::Trigger;
use crate::types::{ChannelMessage, ChannelStatus};

const LONGEST_DELAY: Duration = Duration::from_secs(60);

/// How long the last messages of a subprocess wait for each other. A database that takes longer saves them in any order.
const SAVE_TIMEOUT: Duration = Duration::from_millis(100);

/// Owns the subprocess from its first start to the end.
pub(super) struct WhatsappSupervisor {
    pub program: WhatsappProgram,
    pub installer: Option<WhatsappInstaller>,
    pub restart_delay: Duration,
    pub mention_rule: MentionRule,
    pub status: StatusCell,
    pub sender: Arc<WhatsappSender>,
    pub queue: MessageQueue,
    pub link_code: LinkCode,
}

#[async_trait]
impl Listener for WhatsappSupervisor {
    async fn listen(&self, stop: CancellationToken) {
        let resumed = self.queue.resume(|message| message.channel == CHANNEL);
        if stop.run_until_cancelled(resumed).await.is_none() {
            return;
        }
        let backoff = Backoff { first: self.restart_delay, longest: LONGEST_DELAY };
        supervise(self, backoff, &stop).await;
    }
}

impl WhatsappSupervisor {
    async fn refresh(&self) -> Result<(), InstallError> {
        match &self.installer {
            Some(installer) => installer.refresh().await,
            None => Ok(()),
        }
    }

    fn start(&self) -> Result<(Session, Process, Lines), WhatsappStartError> {
        let session = Session::claim(&self.program.auth_dir)?;
        let (process, lines) = Process::spawn(&self.program)?;
        Ok((session, process, lines))
    }

    /// Reads the events of the subprocess and sends it orders. Returns how it ended, or `None` after `stop`.
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
                    Some(Ok(line)) => tokio::select! {
                        // First, so that a message that was read gets into the queue also after a stop. The queue saves it.
                        biased;
                        () = self.handle_line(&line) => {}
                        // A message may wait for the database.
                        () = stop.cancelled() => break None,
                    },
                    Some(Err(error)) => break Some(format!("its output cannot be read: {error}")),
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
        self.link_code.set(None);
        process.stop(&Order::Disconnect.line(), self.receive_rest(lines)).await;
        how
    }

    /// Receives the messages that the subprocess still writes: WhatsApp does not send them again.
    async fn receive_rest(&self, mut lines: Lines) {
        while let Some(Ok(line)) = lines.next().await {
            if let Ok(Event::Message(received)) = event::read(&line) {
                let _ = timeout(SAVE_TIMEOUT, self.receive(received)).await;
            }
        }
    }

    async fn handle_line(&self, line: &str) {
        match event::read(line) {
            Ok(Event::Status { status: ReportedStatus::Connected }) => {
                tracing::info!("connected to WhatsApp");
                self.link_code.set(None);
                self.status.note(Trigger::SaysConnected);
            }
            Ok(Event::Status { status: ReportedStatus::Disconnected }) => {
                self.status.note(Trigger::SaysDisconnected)
            }
            Ok(Event::Qr { data }) => {
                self.link_code.set(Some(data));
                let advice = "WhatsApp is not linked. Run 'hob channel login whatsapp' and scan the code that it shows";
                if self.status.problem(Trigger::SaysDisconnected, advice) {
                    tracing::warn!("{advice}");
                }
            }
            Ok(Event::Message(received)) => self.receive(received).await,
            Ok(Event::Sent { id }) => self.sender.sent(&id),
            Ok(Event::Error { message, id: Some(id), unsent }) => self.sender.failed(&id, message, unsent),
            Ok(Event::Error { message, id: None, .. }) => {
                if self.status.problem(Trigger::SaysError, &message) {
                    tracing::error!(
                        %message,
                        "WhatsApp reports an error. If it persists, link the account again with 'hob channel \
                         login whatsapp'"
                    );
                }
            }
            Err(reason) => {
                tracing::warn!(
                    bytes = line.len(),
                    %reason,
                    "a line of the WhatsApp bridge is not understood and is skipped. Restart Hob to renew \
                     the bridge"
                )
            }
        }
    }

    /// A message that is not meant for the assistant is private, and is dropped.
    async fn receive(&self, received: Received) {
        let is_group = jid::is_group(&received.jid);
        if received.from_me && self.sender.sent_recently(&received.text) {
            return;
        }
        let Some(asked) = self.mention_rule.question(&received.text, is_group, received.from_me) else {
            return;
        };
        let mut metadata = Map::new();
        if received.forwarded {
            metadata.insert(FORWARDED.to_owned(), true.into());
        }
        let message = ChannelMessage {
            channel: CHANNEL.to_owned(),
            sender: received.sender,
            content: asked.to_owned(),
            message_id: received.message_id,
            conversation_id: received.jid,
            is_group,
            metadata,
            ..ChannelMessage::default()
        };
        self.queue.accept(message).await;
    }
}

impl Supervised for &WhatsappSupervisor {
    async fn run(&mut self, stop: &CancellationToken) -> Duration {
        match stop.run_until_cancelled(self.refresh()).await {
            Some(Ok(())) => {}
            Some(Err(error)) => {
                if self.status.problem(Trigger::RuntimeMissing, &error.to_string()) {
                    tracing::error!(%error, "the WhatsApp bridge cannot be updated; Hob tries again");
                }
                return Duration::ZERO;
            }
            None => return Duration::ZERO,
        }
        let (session, process, lines) = match self.start() {
            Ok(started) => started,
            Err(error) => {
                if self.status.problem(Trigger::RuntimeMissing, &error.to_string()) {
                    tracing::error!(%error, "the WhatsApp bridge cannot be started; Hob tries again");
                }
                return Duration::ZERO;
            }
        };
        let since = Instant::now();
        let ended = self.attend(process, lines, stop).await;
        drop(session);
        if let Some(how) = ended {
            let problem = match self.status.get().problem {
                // What the subprocess reported itself says more than how it ended.
                Some(reported) if self.status.get().status == ChannelStatus::Error => reported,
                _ => format!("the WhatsApp bridge ended: {how}"),
            };
            if self.status.problem(Trigger::SaysError, &problem) {
                tracing::warn!(%how, "the WhatsApp bridge ended; Hob restarts it");
            }
        }
        since.elapsed()
    }
}

async fn next(orders: &mut mpsc::Receiver<Order>) -> Order {
    match orders.recv().await {
        Some(order) => order,
        None => std::future::pending().await,
    }
}
