//! The HTTP client for engines on other machines, by `reqwest`.

use std::error::Error;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hob_net::{CertificateCheck, FixedAddress, HttpClientOptions, ProxyUse, http_client};
use reqwest::header::HeaderMap;
use tokio::time::Instant;

use super::resend::{CLOSED_WHILE_IDLE, Resend};
use super::response::Response;
use super::transport_error::TransportError;

/// The client of one engine.
#[derive(Debug, Clone)]
pub(super) struct RemoteClient {
    options: RemoteClientOptions,
    pub(super) client: reqwest::Client,
    /// Keeps no idle connections, so that every request uses a new one. Created on first use, because loading
    /// certificates takes time.
    unpooled: Arc<OnceLock<reqwest::Client>>,
}

#[derive(Debug, Clone)]
pub(super) struct RemoteClientOptions {
    pub(super) headers: HeaderMap,
    pub(super) connect_timeout: Duration,
    pub(super) read_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) proxy: ProxyUse,
    pub(super) fixed_address: Option<FixedAddress>,
    pub(super) resend: Resend,
    pub(super) certificates: CertificateCheck,
}

impl RemoteClientOptions {
    fn client(&self, most_idle: usize) -> reqwest::Result<reqwest::Client> {
        http_client(HttpClientOptions {
            headers: self.headers.clone(),
            proxy: self.proxy,
            fixed_address: self.fixed_address.clone(),
            connect_timeout: self.connect_timeout,
            read_timeout: Some(self.read_timeout),
            pool_idle_timeout: self.idle_timeout,
            max_idle_per_host: most_idle,
            certificates: self.certificates,
            ..HttpClientOptions::default()
        })
    }
}

impl RemoteClient {
    pub(super) fn new(options: RemoteClientOptions) -> reqwest::Result<Self> {
        Ok(RemoteClient { client: options.client(usize::MAX)?, options, unpooled: Arc::default() })
    }

    fn unpooled(&self) -> reqwest::Result<&reqwest::Client> {
        match self.unpooled.get() {
            Some(client) => Ok(client),
            None => {
                let client = self.options.client(0)?;
                Ok(self.unpooled.get_or_init(|| client))
            }
        }
    }

    /// Sends a request, and once more if the engine had closed the idle connection. `reqwest` does not report whether
    /// it reused a connection; it retries automatically if the request was not sent at all.
    pub(super) async fn send(&self, request: reqwest::Request) -> Result<Response, TransportError> {
        let again = request.try_clone();
        let asked = Instant::now();
        let error = match self.client.execute(request).await {
            Ok(response) => return Ok(response.into()),
            Err(error) => error,
        };
        // A request on a closed connection fails at once. If the connection breaks later, the engine worked on the
        // request.
        let early = asked.elapsed() < CLOSED_WHILE_IDLE;
        let closed_while_idle = early
            && match EarlyClose::of(&error) {
                Some(EarlyClose::Reset) => true,
                Some(EarlyClose::Closed) => self.options.resend == Resend::Unanswered,
                None => false,
            };
        match again {
            Some(again) if closed_while_idle => match self.unpooled()?.execute(again).await {
                // Callers that would try another host must know that the first request may have been sent.
                Err(second) if second.is_connect() => Err(error.into()),
                other => other.map(Response::from).map_err(TransportError::from),
            },
            _ => Err(error.into()),
        }
    }
}

/// How a connection ended before the head of a response arrived.
enum EarlyClose {
    /// The engine's machine reset the connection, because the engine had closed it.
    Reset,
    /// The engine or a proxy closed the connection, and may have read the request.
    Closed,
}

impl EarlyClose {
    fn of(error: &reqwest::Error) -> Option<Self> {
        let is_reset = |error: &io::Error| {
            matches!(error.kind(), io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe)
        };
        let mut cause: Option<&dyn Error> = Some(error);
        while let Some(error) = cause {
            if error.downcast_ref::<io::Error>().is_some_and(is_reset) {
                return Some(EarlyClose::Reset);
            }
            if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_incomplete_message) {
                return Some(EarlyClose::Closed);
            }
            cause = error.source();
        }
        None
    }
}
