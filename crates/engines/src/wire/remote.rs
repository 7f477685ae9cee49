//! Requests to an engine on another machine, by `reqwest`.

use std::error::Error;
use std::io;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use hob_net::{HttpClientOptions, ProxyUse, http_client};
use reqwest::header::HeaderMap;
use tokio::time::Instant;

use super::response::Response;
use super::transport_error::TransportError;

/// A connection to another machine that ends this soon after a request, without a byte of an answer, was most likely closed while
/// it was idle: its end and our request crossed on the way. An engine that reads a request answers it or works on it.
/// Where asking twice costs only time, the request is sent again then, as browsers and nginx do.
const CLOSED_WHILE_IDLE: Duration = Duration::from_secs(2);

/// Whether a question whose answer was lost may be asked again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Resend {
    /// It costs time and nothing else, as on a server of one's own.
    Unanswered,
    /// Somebody may have been paid for it already, as behind a proxy to the cloud.
    Never,
}

/// An engine on another machine.
#[derive(Debug, Clone)]
pub(super) struct RemoteClient {
    options: RemoteClientOptions,
    pub(super) client: reqwest::Client,
    /// Keeps no connections, so that a request goes out on a new one. Made when it is first needed: certificates take time.
    unpooled: Arc<OnceLock<reqwest::Client>>,
}

#[derive(Debug, Clone)]
pub(super) struct RemoteClientOptions {
    pub(super) headers: HeaderMap,
    pub(super) connect_timeout: Duration,
    pub(super) read_timeout: Duration,
    pub(super) idle_timeout: Duration,
    pub(super) proxy: ProxyUse,
    pub(super) resend: Resend,
}

impl RemoteClientOptions {
    fn client(&self, most_idle: usize) -> reqwest::Result<reqwest::Client> {
        http_client(HttpClientOptions {
            headers: self.headers.clone(),
            proxy: self.proxy,
            connect_timeout: self.connect_timeout,
            read_timeout: Some(self.read_timeout),
            pool_idle_timeout: self.idle_timeout,
            max_idle_per_host: most_idle,
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

    /// Sends a request, and once more if it met the end of a kept connection. The client does not say whether it used a kept
    /// one, and mends what it notices before the request goes out.
    pub(super) async fn send(&self, request: reqwest::Request) -> Result<Response, TransportError> {
        let again = request.try_clone();
        let asked = Instant::now();
        let error = match self.client.execute(request).await {
            Ok(response) => return Ok(response.into()),
            Err(error) => error,
        };
        // A connection that was closed before turns a request away at once. One that breaks later has been at work on it.
        let at_once = asked.elapsed() < CLOSED_WHILE_IDLE;
        let met_the_end = at_once
            && match EarlyClose::of(&error) {
                Some(EarlyClose::Reset) => true,
                Some(EarlyClose::Closed) => self.options.resend == Resend::Unanswered,
                None => false,
            };
        match again {
            Some(again) if met_the_end => match self.unpooled()?.execute(again).await {
                // Whoever would ask elsewhere has to know that the question may have gone out.
                Err(second) if second.is_connect() => Err(error.into()),
                other => other.map(Response::from).map_err(TransportError::from),
            },
            _ => Err(error.into()),
        }
    }
}

/// How a connection ended before the head of an answer came.
enum EarlyClose {
    /// The engine's machine turned the request away, as it does once the connection is closed.
    Reset,
    /// Somebody closed it, who may have read the request.
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
