//! The bridge to a messaging gateway: connects, listens, reconnects for ever, and sends over whatever way is open.

use std::sync::Arc;
use std::time::Duration;

use hob_core::EventBus;
use secrecy::SecretString;
use tokio_util::sync::CancellationToken;

use crate::channel_base::Station;
use crate::gateway::address::Address;
use crate::gateway::sender::{Door, Outlet};
use crate::inbox::{Handler, Inbox, InboxLimits, InboxParts};
use crate::outgoing::Line;
use crate::seen_messages::{Ledger, Recent};
use crate::status::Standing;
use crate::status_transitions::Trigger;
use crate::types::{ChannelError, ChannelReport, ChannelStatus};
use crate::whatsapp;

pub use crate::gateway::connection::Timing;

/// What a bridge needs to know.
#[derive(Clone)]
pub struct BridgeOptions {
    /// WebSocket address of the gateway.
    pub url: String,
    pub token: Option<SecretString>,
    /// The pause between two attempts to connect, more or less.
    pub reconnect_interval: Duration,
    pub timing: Timing,
    pub limits: InboxLimits,
    pub events: EventBus,
    pub ledger: Arc<dyn Ledger>,
}

impl BridgeOptions {
    pub fn new(url: impl Into<String>) -> Self {
        BridgeOptions {
            url: url.into(),
            token: None,
            reconnect_interval: Duration::from_secs(5),
            timing: Timing::default(),
            limits: InboxLimits::default(),
            events: EventBus::new(),
            ledger: Arc::new(Recent::default()),
        }
    }
}

/// The bridge. It stops listening when it is dropped; [`Self::close`] also waits for that.
pub struct Bridge {
    url: String,
    station: Station,
    link: Arc<Link>,
}

impl Bridge {
    pub fn new(options: BridgeOptions) -> Result<Self, ChannelError> {
        let address = Address::parse(&options.url)?;
        let door = Door { address, token: options.token, timing: options.timing };
        let outlet = Outlet::new(door.clone()).map_err(|reason| ChannelError::Invalid { reason })?;
        let outlet = Arc::new(outlet);
        let parts = InboxParts {
            line: Arc::clone(&outlet) as Arc<dyn Line>,
            ledger: options.ledger,
            events: options.events,
            limits: options.limits,
        };
        let standing = Standing::default();
        let station = Station::new(parts, standing.clone());
        let inbox = station.inbox().clone();
        let link = Link { door, interval: options.reconnect_interval, standing, outlet, inbox };
        Ok(Bridge { url: options.url, station, link: Arc::new(link) })
    }

    /// Gets every message from now on. All handlers are called for every message.
    pub fn on_message(&self, handler: Arc<dyn Handler>) {
        self.station.on_message(handler);
    }

    /// Begins to listen, without waiting for the connection. Does nothing when it listens already.
    pub fn start(&self) {
        self.station.start(|stop| Arc::clone(&self.link).listen(stop));
    }

    /// Begins to listen, and waits until the first attempt to connect has succeeded or failed. One that failed is followed
    /// by others.
    pub async fn connect(&self) -> ChannelStatus {
        self.start();
        self.station.settled().await
    }

    /// Stops listening at once and closes the socket. What was received is still answered, over HTTP.
    pub async fn disconnect(&self) {
        self.station.disconnect().await;
    }

    /// Stops everything. Messages that were not answered stay in the ledger.
    pub async fn close(&self) {
        self.station.close().await;
    }

    /// Sends a message: over the socket, or else over HTTP, or else, when nobody listens, over a connection for this one
    /// message.
    pub async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError> {
        self.station.send(channel, content, conversation_id).await
    }

    /// The channels of the gateway.
    pub async fn list_channels(&self) -> Result<Vec<String>, ChannelError> {
        let listed = self.link.outlet.channels().await;
        listed.map_err(|reason| ChannelError::Unlisted { gateway: self.url.clone(), reason })
    }

    pub fn status(&self) -> ChannelStatus {
        self.station.status()
    }

    pub fn report(&self) -> ChannelReport {
        self.station.report(&self.url)
    }
}

/// What the listener knows.
struct Link {
    door: Door,
    interval: Duration,
    standing: Standing,
    outlet: Arc<Outlet>,
    inbox: Inbox,
}

impl Link {
    /// Connects, listens, and does so again for ever.
    async fn listen(self: Arc<Self>, stop: CancellationToken) {
        self.inbox.resume(|message| message.channel != whatsapp::CHANNEL).await;
        let gateway = &self.door.address.socket;
        while !stop.is_cancelled() {
            self.standing.note(Trigger::Connect);
            let Some(opened) = stop.run_until_cancelled(self.door.open()).await else { return };
            match opened {
                Ok(connection) => {
                    self.outlet.attach(connection.wire());
                    self.standing.note(Trigger::Reached);
                    tracing::info!(%gateway, "connected to the gateway");
                    let reason = connection.run(Some(&self.inbox), &stop).await;
                    self.outlet.detach();
                    if stop.is_cancelled() {
                        return;
                    }
                    self.standing.note(Trigger::Dropped);
                    tracing::warn!(%gateway, %reason, "the connection to the gateway broke");
                }
                Err(reason) => {
                    let trouble = format!("cannot connect to the gateway at {gateway}: {reason}");
                    if self.standing.trouble(Trigger::Unreachable, &trouble) {
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

/// A quarter more or less, so that many houses do not all knock at the same moment. `chance` is between 0 and 1.
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
