//! The client of a messaging gateway: connects, listens, reconnects without end, and sends over the socket or HTTP.

use std::sync::Arc;
use std::time::Duration;

use hob_core::EventBus;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::channel_base::ChannelBase;
use crate::gateway::address::Address;
use crate::gateway::sender::{GatewayConnector, GatewaySender};
use crate::gateway::shared::GatewayTimeouts;
use crate::inbox::{Inbox, InboxLimits, InboxParts, MessageHandler};
use crate::outgoing::MessageSender;
use crate::seen_messages::{RecentMessages, SeenMessages};
use crate::status::StatusCell;
use crate::status_transitions::Trigger;
use crate::types::{ChannelError, ChannelReport, ChannelStatus};
use crate::whatsapp;

/// The options of a [`GatewayClient`].
#[derive(Clone)]
pub struct GatewayOptions {
    /// WebSocket address of the gateway.
    pub url: String,
    pub token: Option<SecretString>,
    /// The pause between two attempts to connect, more or less.
    pub reconnect_interval: Duration,
    pub timeouts: GatewayTimeouts,
    pub limits: InboxLimits,
    pub events: EventBus,
    pub seen_messages: Arc<dyn SeenMessages>,
}

impl GatewayOptions {
    pub fn new(url: impl Into<String>) -> Self {
        GatewayOptions {
            url: url.into(),
            token: None,
            reconnect_interval: Duration::from_secs(5),
            timeouts: GatewayTimeouts::default(),
            limits: InboxLimits::default(),
            events: EventBus::new(),
            seen_messages: Arc::new(RecentMessages::default()),
        }
    }
}

/// The client. It stops listening when it is dropped; [`Self::close`] also waits for that.
pub struct GatewayClient {
    url: String,
    base: ChannelBase,
    listener: Arc<GatewayListener>,
}

impl GatewayClient {
    pub fn new(options: GatewayOptions) -> Result<Self, ChannelError> {
        let address = Address::parse(&options.url)?;
        let connector = GatewayConnector { address, token: options.token, timeouts: options.timeouts };
        let sender =
            GatewaySender::new(connector.clone()).map_err(|reason| ChannelError::Invalid { reason })?;
        let sender = Arc::new(sender);
        let parts = InboxParts {
            sender: Arc::clone(&sender) as Arc<dyn MessageSender>,
            seen_messages: options.seen_messages,
            events: options.events,
            limits: options.limits,
        };
        let status = StatusCell::default();
        let base = ChannelBase::new(parts, status.clone());
        let inbox = base.inbox().clone();
        let listener =
            GatewayListener { connector, interval: options.reconnect_interval, status, sender, inbox };
        Ok(GatewayClient { url: options.url, base, listener: Arc::new(listener) })
    }

    /// Gets every message from now on. All handlers are called for every message.
    pub fn on_message(&self, handler: Arc<dyn MessageHandler>) {
        self.base.on_message(handler);
    }

    /// Begins to listen, without waiting for the connection. Does nothing when it listens already.
    pub fn start(&self) {
        self.base.start(|stop| Arc::clone(&self.listener).listen(stop));
    }

    /// Begins to listen, and waits until the first attempt to connect has succeeded or failed. One that failed is followed
    /// by others.
    pub async fn connect(&self) -> ChannelStatus {
        self.start();
        self.base.settled().await
    }

    /// Stops listening at once and closes the socket. What was received is still answered, over HTTP.
    pub async fn disconnect(&self) {
        self.base.disconnect().await;
    }

    /// Stops everything. Messages that were not answered stay in the store.
    pub async fn close(&self) {
        self.base.close().await;
    }

    /// Sends a message: over the socket, or else over HTTP, or else, when the client does not listen, over a connection for this one
    /// message.
    pub async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError> {
        self.base.send(channel, content, conversation_id).await
    }

    /// The channels of the gateway.
    pub async fn list_channels(&self) -> Result<Vec<String>, ChannelError> {
        let listed = self.listener.sender.channels().await;
        listed.map_err(|reason| ChannelError::Unlisted { gateway: self.url.clone(), reason })
    }

    pub fn status(&self) -> ChannelStatus {
        self.base.status()
    }

    pub fn report(&self) -> ChannelReport {
        self.base.report(&self.url)
    }
}

/// The task that listens.
struct GatewayListener {
    connector: GatewayConnector,
    interval: Duration,
    status: StatusCell,
    sender: Arc<GatewaySender>,
    inbox: Inbox,
}

impl GatewayListener {
    /// Connects, listens, and does so again for ever.
    async fn listen(self: Arc<Self>, stop: CancellationToken) {
        self.inbox.resume(|message| message.channel != whatsapp::CHANNEL).await;
        let gateway = &self.connector.address.socket;
        while !stop.is_cancelled() {
            self.status.note(Trigger::Connect);
            let Some(opened) = stop.run_until_cancelled(self.connector.open()).await else { return };
            match opened {
                Ok(connection) => {
                    self.sender.attach(connection.handle());
                    self.status.note(Trigger::Reached);
                    tracing::info!(%gateway, "connected to the gateway");
                    let reason = connection.run(Some(&self.inbox), &stop).await;
                    self.sender.detach();
                    if stop.is_cancelled() {
                        return;
                    }
                    self.status.note(Trigger::Dropped);
                    tracing::warn!(%gateway, %reason, "the connection to the gateway broke");
                }
                Err(reason) => {
                    let trouble = format!("cannot connect to the gateway at {gateway}: {reason}");
                    if self.status.trouble(Trigger::Unreachable, &trouble) {
                        tracing::warn!(%gateway, %reason, "cannot connect to the gateway; trying again");
                    }
                }
            }
            let pause = jittered(self.interval, fastrand::f64());
            if stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
                return;
            }
        }
    }
}

/// A quarter more or less, so that many clients do not all connect at the same moment. `chance` is between 0 and 1.
fn jittered(interval: Duration, chance: f64) -> Duration {
    interval.mul_f64(0.75 + chance / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attempts_are_spread_around_the_interval() {
        let interval = Duration::from_secs(4);
        assert_eq!(jittered(interval, 0.0), Duration::from_secs(3));
        assert_eq!(jittered(interval, 0.5), Duration::from_secs(4));
        assert_eq!(jittered(interval, 1.0), Duration::from_secs(5));
    }
}
