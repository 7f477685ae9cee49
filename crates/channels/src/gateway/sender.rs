//! The ways out to the gateway: the socket where there is one, HTTP where not, and a connection for a single errand.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use secrecy::SecretString;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::address::Address;
use super::connection::{Connection, Timing};
use super::handle::{Protocol, Wire};
use super::http::Http;
use crate::outgoing::{Line, Outgoing, Undelivered};

/// What it takes to connect.
#[derive(Clone)]
pub(crate) struct Door {
    pub address: Address,
    pub token: Option<SecretString>,
    pub timing: Timing,
}

impl Door {
    pub async fn open(&self) -> Result<Connection, String> {
        // Boxed: what it takes to open TLS is large, and needed for a moment only.
        Box::pin(Connection::open(&self.address, self.token.as_ref(), self.timing)).await
    }
}

/// The ways out.
pub(crate) struct Outlet {
    door: Door,
    http: Http,
    wire: Mutex<Option<Wire>>,
    /// Whether the gateway was last seen to speak OpenClaw's protocol, which has no `/send`.
    is_openclaw: AtomicBool,
    /// Whether a connection stands or is being made.
    is_listening: AtomicBool,
}

impl Outlet {
    /// The error says why there is none.
    pub fn new(door: Door) -> Result<Self, String> {
        Ok(Outlet {
            http: Http::new(&door.address, door.token.as_ref())?,
            door,
            wire: Mutex::default(),
            is_openclaw: AtomicBool::new(false),
            is_listening: AtomicBool::new(false),
        })
    }

    pub fn attach(&self, wire: Wire) {
        self.is_openclaw.store(wire.protocol == Protocol::OpenClaw, Ordering::Relaxed);
        *self.held() = Some(wire);
    }

    pub fn detach(&self) {
        *self.held() = None;
    }

    fn held(&self) -> MutexGuard<'_, Option<Wire>> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wire(&self) -> Option<Wire> {
        self.held().clone()
    }

    pub async fn channels(&self) -> Result<Vec<String>, String> {
        if let Some(wire) = self.wire().filter(|wire| wire.protocol == Protocol::OpenClaw) {
            return wire.channels().await;
        }
        match self.http.channels().await? {
            Some(names) => Ok(names),
            None => self.errand().await?.wire.channels().await,
        }
    }

    /// Makes a connection for a single errand. Only gateways that have nothing for us over HTTP need that.
    async fn errand(&self) -> Result<Errand, String> {
        if self.is_listening.load(Ordering::Relaxed) {
            return Err("the gateway is not connected".to_owned());
        }
        let connection = self.door.open().await?;
        let wire = connection.wire();
        if wire.protocol == Protocol::Simple {
            return Err("it has nothing for us at its address; is this the gateway?".to_owned());
        }
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { connection.run(None, &stopped).await });
        Ok(Errand { wire, _stop: stop.drop_guard() })
    }
}

/// A connection that ends with its value.
struct Errand {
    wire: Wire,
    _stop: DropGuard,
}

#[async_trait]
impl Line for Outlet {
    async fn deliver(&self, message: &Outgoing) -> Result<(), Undelivered> {
        let not_sent = match self.wire() {
            Some(wire) => match wire.send(message).await {
                Err(Undelivered::NotSent(reason)) => reason,
                outcome => return outcome,
            },
            None => "the gateway is not connected".to_owned(),
        };
        let has_no_http = self.is_openclaw.load(Ordering::Relaxed);
        if has_no_http && self.is_listening.load(Ordering::Relaxed) {
            return Err(Undelivered::NotSent(not_sent));
        }
        if !has_no_http && self.http.send(message).await? {
            return Ok(());
        }
        let errand = self.errand().await.map_err(Undelivered::NotSent)?;
        errand.wire.send(message).await
    }

    fn set_listening(&self, is_listening: bool) {
        self.is_listening.store(is_listening, Ordering::Relaxed);
    }
}
