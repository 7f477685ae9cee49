//! The bridge to a messaging gateway: connects, listens, reconnects for ever, and sends over whatever way is open.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use hob_core::{ChannelError, ChannelReport, ChannelStatus, EventBus};
use secrecy::SecretString;
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::gateway::address::Address;
use crate::gateway::outlet::{Door, Outlet};
use crate::inbox::{Handler, Inbox, InboxLimits, InboxParts};
use crate::ledger::{Ledger, Recent};
use crate::line::{Line, Outgoing, deliver};
use crate::standing::Standing;
use crate::state::Trigger;
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
    outlet: Arc<Outlet>,
    inbox: Inbox,
    events: EventBus,
    link: Arc<Link>,
    listening: Mutex<Option<Listening>>,
}

struct Listening {
    stop: DropGuard,
    task: JoinHandle<()>,
}

impl Bridge {
    pub fn new(options: BridgeOptions) -> Result<Self, ChannelError> {
        let address = Address::parse(&options.url)?;
        let door = Door { address, token: options.token, timing: options.timing };
        let outlet = Outlet::new(door.clone()).map_err(|reason| ChannelError::Invalid { reason })?;
        let outlet = Arc::new(outlet);
        let inbox = Inbox::new(InboxParts {
            line: Arc::clone(&outlet) as Arc<dyn Line>,
            ledger: options.ledger,
            events: options.events.clone(),
            limits: options.limits,
        });
        let link = Link { door, interval: options.reconnect_interval, standing: Standing::default() };
        Ok(Bridge {
            url: options.url,
            outlet,
            inbox,
            events: options.events,
            link: Arc::new(link),
            listening: Mutex::default(),
        })
    }

    /// Gets every message from now on. All handlers are called for every message.
    pub fn on_message(&self, handler: Arc<dyn Handler>) {
        self.inbox.on_message(handler);
    }

    /// Begins to listen, without waiting for the connection. Does nothing when it listens already.
    pub fn start(&self) {
        let mut listening = lock(&self.listening);
        if listening.as_ref().is_some_and(|listening| !listening.task.is_finished()) {
            return;
        }
        self.link.standing.note(Trigger::Connect);
        self.outlet.set_listening(true);
        let stop = CancellationToken::new();
        let (link, outlet, inbox) = (Arc::clone(&self.link), Arc::clone(&self.outlet), self.inbox.clone());
        let task = tokio::spawn(link.listen(outlet, inbox, stop.clone()));
        *listening = Some(Listening { stop: stop.drop_guard(), task });
    }

    /// Begins to listen, and waits until the first attempt to connect has succeeded or failed. One that failed is followed
    /// by others.
    pub async fn connect(&self) -> ChannelStatus {
        self.start();
        self.link.standing.settled().await.status
    }

    /// Stops listening at once and closes the socket. What was received is still answered, over HTTP.
    pub async fn disconnect(&self) {
        let listening = lock(&self.listening).take();
        if let Some(Listening { stop, task }) = listening {
            drop(stop);
            if let Err(error) = task.await {
                tracing::error!(%error, "the listener of the gateway failed");
            }
        }
        self.outlet.set_listening(false);
        self.link.standing.note(Trigger::Disconnect);
    }

    /// Stops everything. Messages that were not answered stay in the ledger.
    pub async fn close(&self) {
        // First, so that a reply that is ready still finds its way.
        self.inbox.close().await;
        self.disconnect().await;
    }

    /// Sends a message: over the socket, or else over HTTP, or else, when nobody listens, over a connection for this one
    /// message.
    pub async fn send(
        &self,
        channel: &str,
        content: &str,
        conversation_id: Option<&str>,
    ) -> Result<(), ChannelError> {
        let message = Outgoing::new(channel, content, conversation_id)?;
        deliver(self.outlet.as_ref(), &self.events, &message).await.map_err(|error| error.explain(channel))
    }

    /// The channels of the gateway.
    pub async fn list_channels(&self) -> Result<Vec<String>, ChannelError> {
        self.outlet
            .channels()
            .await
            .map_err(|reason| ChannelError::Unlisted { gateway: self.url.clone(), reason })
    }

    pub fn status(&self) -> ChannelStatus {
        self.link.standing.get().status
    }

    pub fn report(&self) -> ChannelReport {
        let stand = self.link.standing.get();
        ChannelReport { status: stand.status, gateway_url: self.url.clone(), trouble: stand.trouble }
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        self.inbox.stop();
    }
}

/// What the listener knows.
struct Link {
    door: Door,
    interval: Duration,
    standing: Standing,
}

impl Link {
    /// Connects, listens, and does so again for ever.
    async fn listen(self: Arc<Self>, outlet: Arc<Outlet>, inbox: Inbox, stop: CancellationToken) {
        inbox.resume(|message| message.channel != whatsapp::CHANNEL).await;
        let gateway = &self.door.address.socket;
        while !stop.is_cancelled() {
            self.standing.note(Trigger::Connect);
            let Some(opened) = stop.run_until_cancelled(self.door.open()).await else { return };
            match opened {
                Ok(connection) => {
                    outlet.attach(connection.wire());
                    self.standing.note(Trigger::Reached);
                    tracing::info!(%gateway, "connected to the gateway");
                    let reason = connection.run(Some(&inbox), &stop).await;
                    outlet.detach();
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

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
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
