//! The channel of a messaging gateway: connects, listens, and reconnects without end.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hob_core::EventBus;
use hob_core::backoff::jittered;
use hob_core::defaults::GATEWAY_RECONNECT_INTERVAL;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::channel::{Channel, ChannelParts};
use crate::gateway::address::Address;
use crate::gateway::sender::{GatewayConnector, GatewaySender};
use crate::gateway::shared::GatewayTimeouts;
use crate::listener::Listener;
use crate::message_queue::{MessageQueue, MessageQueueLimits, MessageQueueParts};
use crate::outgoing::MessageSender;
use crate::seen_messages::{RecentMessages, SeenMessages};
use crate::sharing::ChannelSharing;
use crate::status::StatusCell;
use crate::status_transitions::Trigger;
use crate::types::{ChannelError, ChannelMessage};
use crate::whatsapp;

/// The options of [`Channel::gateway`].
#[derive(Clone)]
pub struct GatewayOptions {
    /// WebSocket address of the gateway.
    pub url: String,
    pub token: Option<SecretString>,
    /// The average pause between two attempts to connect.
    pub reconnect_interval: Duration,
    pub timeouts: GatewayTimeouts,
    pub limits: MessageQueueLimits,
    pub events: EventBus,
    pub seen_messages: Arc<dyn SeenMessages>,
    /// Channels that Hob connects to itself. Their messages of an earlier process are not the gateway's.
    pub direct_channels: Vec<&'static str>,
    /// `None` if no other process connects to this gateway.
    pub sharing: Option<ChannelSharing>,
}

impl GatewayOptions {
    pub fn new(url: impl Into<String>) -> Self {
        GatewayOptions {
            url: url.into(),
            token: None,
            reconnect_interval: GATEWAY_RECONNECT_INTERVAL,
            timeouts: GatewayTimeouts::default(),
            limits: MessageQueueLimits::default(),
            events: EventBus::new(),
            seen_messages: Arc::new(RecentMessages::default()),
            direct_channels: vec![whatsapp::CHANNEL],
            sharing: None,
        }
    }
}

impl Channel {
    /// The channels of a messaging gateway. They are reached over its socket, else over HTTP, else, while Hob does not listen, over a
    /// connection for one message.
    pub fn gateway(options: GatewayOptions) -> Result<Self, ChannelError> {
        let address = Address::parse(&options.url)?;
        let connector = GatewayConnector { address, token: options.token, timeouts: options.timeouts };
        let sender =
            GatewaySender::new(connector.clone()).map_err(|reason| ChannelError::Invalid { reason })?;
        let (sender, status) = (Arc::new(sender), StatusCell::default());
        let queue = MessageQueueParts {
            sender: Arc::clone(&sender) as Arc<dyn MessageSender>,
            seen_messages: options.seen_messages,
            events: options.events,
            limits: options.limits,
        };
        let parts = ChannelParts {
            name: format!("gateway {}", options.url),
            sharing: options.sharing,
            gateway_url: options.url,
            queue,
            status: status.clone(),
        };
        let interval = options.reconnect_interval;
        let direct_channels = options.direct_channels;
        Ok(Channel::new(parts, |queue| GatewayListener {
            connector,
            interval,
            direct_channels,
            status,
            sender,
            queue,
        }))
    }
}

struct GatewayListener {
    connector: GatewayConnector,
    /// The pause between two attempts, roughly.
    interval: Duration,
    direct_channels: Vec<&'static str>,
    status: StatusCell,
    sender: Arc<GatewaySender>,
    queue: MessageQueue,
}

#[async_trait]
impl Listener for GatewayListener {
    async fn listen(&self, stop: CancellationToken) {
        let is_ours = |message: &ChannelMessage| !self.direct_channels.contains(&message.channel.as_str());
        if stop.run_until_cancelled(self.queue.resume(is_ours)).await.is_none() {
            return;
        }
        let gateway = &self.connector.address.socket;
        while !stop.is_cancelled() {
            self.status.note(Trigger::Connect);
            let Some(opened) = stop.run_until_cancelled(self.connector.open()).await else { return };
            match opened {
                Ok(connection) => {
                    self.sender.attach(connection.handle());
                    self.status.note(Trigger::Reached);
                    tracing::info!(%gateway, "connected to the gateway");
                    let reason = connection.run(Some(&self.queue), &stop).await;
                    self.sender.detach();
                    if stop.is_cancelled() {
                        return;
                    }
                    self.status.note(Trigger::Dropped);
                    tracing::warn!(
                        %gateway,
                        %reason,
                        "the connection to the gateway is lost; Hob connects again"
                    );
                }
                Err(reason) => {
                    let problem = format!("cannot connect to the gateway at {gateway}: {reason}");
                    if self.status.problem(Trigger::Unreachable, &problem) {
                        tracing::warn!(
                            %gateway,
                            %reason,
                            "the gateway cannot be reached; Hob tries again. Check that it runs, and \
                             [channel] gateway_url and token"
                        );
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
