//! An HTTP/1.1 client for engines on this machine, without a task per connection.
//!
//! A general client runs a task for every connection and passes each piece of a body between tasks. That costs more
//! than all other work on a piece, and splits pieces that arrived together. Here the task that sends the request also
//! reads the response, so bytes that arrive in one read leave in one write. Engines on other machines are reached by
//! `reqwest`; see [`super::remote`].
//!
//! Measured (`./dev bench proxy --cpu`, November 2026, medians of four runs of the same build): with
//! `hyper::client::conn::http1` driven in the caller's task instead, Hob uses 1.28 times the processor time for a request,
//! 1.17 times for a stream with one event per read, and 1.83 times for a stream that arrives at once. hyper passes each
//! piece through a channel, which wakes the task once more.

mod chunked;
mod connection;
mod connection_pool;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod head;
mod read_timeout;

use std::borrow::Cow;
use std::io::Write;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use hob_net::tcp::TcpStream;
use hob_net::{retry_after, trace_context};
use reqwest::StatusCode;
use reqwest::header::HeaderMap;
use tokio::time::Instant;
use url::Url;

use self::connection::Connection;
use self::connection_pool::ConnectionPool;
use self::head::Head;
use self::read_timeout::ReadTimeout;
use super::resend::{CLOSED_WHILE_IDLE, Resend};
use super::transport_error::TransportError;

/// Options of the client.
pub(super) struct DirectOptions {
    pub(super) headers: HeaderMap,
    pub(super) connect_timeout: Duration,
    /// The longest wait for the next bytes.
    pub(super) read_timeout: Duration,
    /// A connection that is idle for longer is closed.
    pub(super) idle_timeout: Duration,
    pub(super) resend: Resend,
}

/// The client of one engine, with its connections. Clones share them.
#[derive(Clone)]
pub(super) struct Direct {
    shared: Arc<Shared>,
}

struct Shared {
    host: String,
    port: u16,
    /// The path before the path of each request.
    base_path: String,
    /// The headers of every request, as they are sent. Contains the engine's API key.
    headers: Vec<u8>,
    connect_timeout: Duration,
    read_timeout: Duration,
    resend: Resend,
    idle: Arc<ConnectionPool>,
}

impl std::fmt::Debug for Direct {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("Direct").field("host", &self.shared.host).finish_non_exhaustive()
    }
}

impl Direct {
    /// `None` when the address is not plain HTTP.
    pub(super) fn new(url: &Url, options: DirectOptions) -> Option<Self> {
        if url.scheme() != "http" {
            return None;
        }
        let authority = match url.port() {
            Some(port) => format!("{}:{port}", url.host_str()?),
            None => url.host_str()?.to_owned(),
        };
        let mut headers = format!("host: {authority}\r\n").into_bytes();
        for (name, value) in &options.headers {
            headers.extend_from_slice(name.as_str().as_bytes());
            headers.extend_from_slice(b": ");
            headers.extend_from_slice(value.as_bytes());
            headers.extend_from_slice(b"\r\n");
        }
        let shared = Shared {
            // A socket address has no brackets.
            host: url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: url.port_or_known_default()?,
            base_path: url.path().trim_end_matches('/').to_owned(),
            headers,
            connect_timeout: options.connect_timeout,
            read_timeout: options.read_timeout,
            resend: options.resend,
            idle: ConnectionPool::new(options.idle_timeout),
        };
        Some(Direct { shared: Arc::new(shared) })
    }

    pub(super) async fn get(&self, path: &str) -> Result<DirectResponse, TransportError> {
        let mut request = self.begin("GET", path, 0);
        request.extend_from_slice(b"\r\n");
        self.send(&request).await
    }

    pub(super) async fn send_json(
        &self,
        method: &str,
        path: &str,
        json: Vec<u8>,
    ) -> Result<DirectResponse, TransportError> {
        let request = self.with_body(method, path, "application/json", &json);
        drop(json);
        self.send(&request).await
    }

    /// Posts a body of another type than JSON.
    pub(super) async fn post_as(
        &self,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Result<DirectResponse, TransportError> {
        self.send(&self.with_body("POST", path, content_type, body)).await
    }

    fn with_body(&self, method: &str, path: &str, content_type: &str, body: &[u8]) -> Vec<u8> {
        let mut request = self.begin(method, path, body.len());
        if let Some(parent) = trace_context::current() {
            push(&mut request, format_args!("{}: {parent}\r\n", trace_context::TRACEPARENT));
        }
        push(
            &mut request,
            format_args!("content-type: {content_type}\r\ncontent-length: {}\r\n\r\n", body.len()),
        );
        request.extend_from_slice(body);
        request
    }

    /// The start of a request, with capacity for the rest.
    fn begin(&self, method: &str, path: &str, body: usize) -> Vec<u8> {
        let Shared { base_path, headers, .. } = &*self.shared;
        let mut request = Vec::with_capacity(256 + headers.len() + body);
        push(&mut request, format_args!("{method} {base_path}{path} HTTP/1.1\r\n"));
        request.extend_from_slice(headers);
        request
    }

    async fn send(&self, request: &[u8]) -> Result<DirectResponse, TransportError> {
        let (connection, head) = match self.shared.idle.take() {
            Some(connection) => self.exchange_on_kept(connection, request).await?,
            None => exchange_on(self.connect().await?, request).await?,
        };
        let (status, mut head) = (head.status, head);
        let retry_after = head.retry_after.take().and_then(|value| retry_after(&value, SystemTime::now()));
        let content_type = head.content_type.take();
        let body = DirectBody { head, connection: Some(connection), client: self.clone() };
        Ok(DirectResponse { status, retry_after, content_type, body })
    }

    /// An engine may close an idle connection while a request is on its way. The request is then sent once more, on a
    /// new connection: always if the engine has certainly not read it, and else as [`Resend`] says.
    async fn exchange_on_kept(
        &self,
        mut connection: Connection,
        request: &[u8],
    ) -> Result<(Connection, Head), TransportError> {
        let asked = Instant::now();
        let lost = match connection.exchange(request).await {
            Ok(head) => return Ok((connection, head)),
            Err(lost @ TransportError::MaybeSent(_)) => lost,
            Err(other) => return Err(other),
        };
        let closed_while_idle = !connection.is_answered() && asked.elapsed() < CLOSED_WHILE_IDLE;
        let may_resend = (closed_while_idle && self.shared.resend == Resend::Unanswered)
            || connection.was_reset_unread().await;
        if !may_resend {
            return Err(lost);
        }
        let next = match self.connect().await {
            Ok(next) => next,
            // Callers that would try another host must know that the first request may have been sent.
            Err(_) if !connection.was_reset_unread().await => return Err(lost),
            Err(not_sent) => return Err(not_sent),
        };
        // The answer may take minutes.
        drop(connection);
        exchange_on(next, request).await
    }

    async fn connect(&self) -> Result<Connection, TransportError> {
        let shared = &self.shared;
        let connecting = TcpStream::connect((shared.host.as_str(), shared.port));
        let socket = tokio::time::timeout(shared.connect_timeout, connecting)
            .await
            .map_err(|_| TransportError::NotSent("the connection attempt timed out".into()))?
            .map_err(|error| TransportError::NotSent(error.to_string().into()))?;
        socket.set_nodelay(true).map_err(|error| TransportError::NotSent(error.to_string().into()))?;
        Ok(Connection::new(socket, ReadTimeout::new(shared.read_timeout)))
    }
}

async fn exchange_on(
    mut connection: Connection,
    request: &[u8],
) -> Result<(Connection, Head), TransportError> {
    let head = connection.exchange(request).await?;
    Ok((connection, head))
}

/// Writing to memory cannot fail.
fn push(request: &mut Vec<u8>, words: std::fmt::Arguments<'_>) {
    let written = request.write_fmt(words);
    debug_assert!(written.is_ok());
}

/// A response whose head has arrived.
pub(super) struct DirectResponse {
    pub(super) status: StatusCode,
    /// In seconds.
    pub(super) retry_after: Option<u64>,
    pub(super) content_type: Option<Cow<'static, str>>,
    pub(super) body: DirectBody,
}

/// The body of a response. After its end the connection is kept for the next request. Dropped earlier, the connection
/// is closed, which stops the engine's work.
pub(super) struct DirectBody {
    head: Head,
    /// `None` once the body has ended.
    connection: Option<Connection>,
    client: Direct,
}

impl DirectBody {
    /// The bytes that arrived since the last call, in one piece; `None` at the end.
    pub(super) fn poll_chunk(
        &mut self,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Bytes, TransportError>>> {
        let mut out = Vec::new();
        let read = ready!(self.poll_read(context, &mut out));
        Poll::Ready(read.map(|read| read.map(|()| out.into())))
    }

    /// Appends the bytes that arrived since the last call; `None` at the end.
    pub(super) fn poll_read(
        &mut self,
        context: &mut Context<'_>,
        out: &mut Vec<u8>,
    ) -> Poll<Option<Result<(), TransportError>>> {
        let before = out.len();
        while let Some(connection) = &mut self.connection {
            if self.head.length.is_reached() {
                self.put_back();
                break;
            }
            if let Err(broken) = ready!(connection.poll_body(context, &mut self.head, out)) {
                self.connection = None;
                return Poll::Ready(Some(Err(broken)));
            }
            if out.len() > before {
                return Poll::Ready(Some(Ok(())));
            }
        }
        Poll::Ready(None)
    }

    fn put_back(&mut self) {
        if let Some(connection) = self.connection.take()
            && self.head.reusable
        {
            ConnectionPool::keep(&self.client.shared.idle, connection);
        }
    }
}
