//! Sends to the gateway: over the socket if it is open, else over HTTP, else over a connection for a single request.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use parking_lot::Mutex;
use secrecy::SecretString;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::address::Address;
use super::connection::Connection;
use super::handle::{ConnectionHandle, Protocol};
use super::http::Http;
use super::shared::GatewayTimeouts;
use crate::outgoing::{MessageSender, Outgoing, SendFailure};

#[derive(Clone)]
pub(crate) struct GatewayConnector {
    pub address: Address,
    pub token: Option<SecretString>,
    pub timeouts: GatewayTimeouts,
}

impl GatewayConnector {
    pub async fn open(&self) -> Result<Connection, String> {
        // Boxed, because the future that opens TLS is large.
        Box::pin(Connection::open(&self.address, self.token.as_ref(), self.timeouts)).await
    }
}

pub(crate) struct GatewaySender {
    connector: GatewayConnector,
    http: Http,
    handle: Mutex<Option<ConnectionHandle>>,
    /// Whether the gateway last used OpenClaw's protocol, which has no `/send`.
    is_openclaw: AtomicBool,
    /// Whether a connection is open or being opened.
    is_listening: AtomicBool,
}

impl GatewaySender {
    pub fn new(connector: GatewayConnector) -> Result<Self, String> {
        Ok(GatewaySender {
            http: Http::new(&connector.address, connector.token.as_ref())?,
            connector,
            handle: Mutex::default(),
            is_openclaw: AtomicBool::new(false),
            is_listening: AtomicBool::new(false),
        })
    }

    pub fn attach(&self, handle: ConnectionHandle) {
        self.is_openclaw.store(handle.protocol == Protocol::OpenClaw, Ordering::Relaxed);
        *self.handle.lock() = Some(handle);
    }

    pub fn detach(&self) {
        *self.handle.lock() = None;
    }

    /// Opens a connection for a single request. Only gateways without an HTTP API need that.
    async fn single_use(&self) -> Result<SingleUse, String> {
        if self.is_listening.load(Ordering::Relaxed) {
            return Err("the gateway is not connected".to_owned());
        }
        let connection = self.connector.open().await?;
        let handle = connection.handle();
        if handle.protocol == Protocol::Simple {
            return Err("there is no gateway API at its address. Check [channel] gateway_url".to_owned());
        }
        let stop = CancellationToken::new();
        let stopped = stop.clone();
        tokio::spawn(async move { connection.run(None, &stopped).await });
        Ok(SingleUse { handle, _stop: stop.drop_guard() })
    }
}

/// A connection for a single request, which ends when this is dropped.
struct SingleUse {
    handle: ConnectionHandle,
    _stop: DropGuard,
}

#[async_trait]
impl MessageSender for GatewaySender {
    async fn deliver(&self, message: &Outgoing) -> Result<(), SendFailure> {
        let handle = self.handle.lock().clone();
        let not_sent = match handle {
            Some(handle) => match handle.send(message).await {
                Err(SendFailure::NotSent(reason)) => reason,
                outcome => return outcome,
            },
            None => "the gateway is not connected".to_owned(),
        };
        let has_no_http = self.is_openclaw.load(Ordering::Relaxed);
        if has_no_http && self.is_listening.load(Ordering::Relaxed) {
            return Err(SendFailure::NotSent(not_sent));
        }
        if !has_no_http && self.http.send(message).await? {
            return Ok(());
        }
        let single_use = self.single_use().await.map_err(SendFailure::NotSent)?;
        single_use.handle.send(message).await
    }

    async fn channels(&self) -> Result<Vec<String>, String> {
        let handle = self.handle.lock().clone();
        if let Some(handle) = handle.filter(|handle| handle.protocol == Protocol::OpenClaw) {
            return handle.channels().await;
        }
        match self.http.channels().await? {
            Some(names) => Ok(names),
            None => self.single_use().await?.handle.channels().await,
        }
    }

    fn set_listening(&self, is_listening: bool) {
        self.is_listening.store(is_listening, Ordering::Relaxed);
    }
}
