//! The short way to an engine on this machine: plain HTTP/1.1 connections that are driven by whoever reads the answer.
//!
//! A usual client gives every connection a task of its own and hands each piece of an answer from task to task. That costs more
//! than all we do with a piece, and tears apart pieces that came together. Here one task asks, reads and passes on, so what
//! arrives in one read leaves in one write. Encrypted and proxied engines go through `reqwest`; see [`super::client`].

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http_body::Body as _;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, Connection, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap, HeaderValue};
use hyper::{Method, Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep_until};
use url::Url;

use super::response::{Body, Broken, Response};
use super::trace;

/// Connections that wait for the next request. More than this in flight at once is served, but not kept.
const MOST_IDLE: usize = 256;

/// How to reach one engine.
pub(super) struct DirectOptions {
    pub(super) headers: HeaderMap,
    pub(super) connect_timeout: Duration,
    /// The longest wait for the next bytes.
    pub(super) read_timeout: Duration,
    /// A connection that idled longer than this is let go.
    pub(super) idle_timeout: Duration,
}

/// One engine on this machine and the connections to it. Cheap to clone; all clones share them.
#[derive(Clone)]
pub(super) struct Direct {
    shared: Arc<Shared>,
}

struct Shared {
    authority: HeaderValue,
    /// What stands before the path of each request.
    base_path: String,
    host: String,
    port: u16,
    options: DirectOptions,
    idle: Mutex<Vec<Idle>>,
}

struct Idle {
    link: Link,
    since: Instant,
}

type PlainConnection = Connection<TokioIo<TcpStream>, Full<Bytes>>;

/// A connection and the way to give it requests.
struct Link {
    sender: SendRequest<Full<Bytes>>,
    /// `None` once it is over.
    connection: Option<Pin<Box<PlainConnection>>>,
}

/// A request that was not answered.
struct Failed {
    broken: Broken,
    /// The request itself, when nothing of it was sent.
    unsent: Option<Box<Request<Full<Bytes>>>>,
}

impl From<Broken> for Failed {
    fn from(broken: Broken) -> Self {
        Failed { broken, unsent: None }
    }
}

impl std::fmt::Debug for Direct {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // The headers hold the engine's key.
        formatter.debug_struct("Direct").field("host", &self.shared.host).finish_non_exhaustive()
    }
}

impl Direct {
    /// `None` when the address is not one of plain HTTP.
    pub(super) fn new(url: &Url, options: DirectOptions) -> Option<Self> {
        if url.scheme() != "http" {
            return None;
        }
        let shared = Shared {
            authority: HeaderValue::from_str(url.authority()).ok()?,
            base_path: url.path().trim_end_matches('/').to_owned(),
            // A socket wants the bare address, without the brackets of a URL.
            host: url.host_str()?.trim_start_matches('[').trim_end_matches(']').to_owned(),
            port: url.port_or_known_default()?,
            options,
            idle: Mutex::default(),
        };
        Some(Direct { shared: Arc::new(shared) })
    }

    pub(super) async fn get(&self, path: &str) -> Result<Response, Broken> {
        self.send(self.request(Method::GET, path, Bytes::new())?).await
    }

    pub(super) async fn post(&self, path: &str, json: Vec<u8>) -> Result<Response, Broken> {
        let mut request = self.request(Method::POST, path, json.into())?;
        request.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        if let Some(parent) = trace::header() {
            request.headers_mut().insert(trace::TRACEPARENT, parent);
        }
        self.send(request).await
    }

    fn request(&self, method: Method, path: &str, body: Bytes) -> Result<Request<Full<Bytes>>, Broken> {
        let shared = &self.shared;
        let uri = if shared.base_path.is_empty() {
            Uri::try_from(path)
        } else {
            Uri::try_from(format!("{}{path}", shared.base_path))
        };
        let mut request = Request::new(Full::new(body));
        *request.method_mut() = method;
        *request.uri_mut() = uri.map_err(|error| Broken::Lost(error.to_string()))?;
        request.headers_mut().insert(HOST, shared.authority.clone());
        for (name, value) in &shared.options.headers {
            request.headers_mut().insert(name, value.clone());
        }
        Ok(request)
    }

    async fn send(&self, mut request: Request<Full<Bytes>>) -> Result<Response, Broken> {
        let mut patience = Patience::new(self.shared.options.read_timeout);
        while let Some(mut link) = self.take_idle() {
            match link.exchange(request, &mut patience).await {
                Ok(answer) => return Ok(self.response(link, answer, patience)),
                // The engine closed the connection while nobody used it. Nothing was sent, so this is no second try.
                Err(Failed { unsent: Some(unsent), .. }) => request = *unsent,
                Err(Failed { broken, unsent: None }) => return Err(broken),
            }
        }
        let mut link = self.connect().await?;
        patience.restart();
        match link.exchange(request, &mut patience).await {
            Ok(answer) => Ok(self.response(link, answer, patience)),
            Err(failed) => Err(failed.broken),
        }
    }

    fn response(&self, link: Link, answer: hyper::Response<Incoming>, mut patience: Patience) -> Response {
        patience.restart();
        let (head, incoming) = answer.into_parts();
        let body = DirectBody { incoming, link: Some(link), pool: self.clone(), patience };
        Response { status: head.status, headers: head.headers, body: Body::Direct(Box::new(body)) }
    }

    async fn connect(&self) -> Result<Link, Broken> {
        let shared = &self.shared;
        let connecting = TcpStream::connect((shared.host.as_str(), shared.port));
        let socket = tokio::time::timeout(shared.options.connect_timeout, connecting)
            .await
            .map_err(|_| Broken::Lost("it took no connection in time".to_owned()))?
            .map_err(|error| Broken::Lost(error.to_string()))?;
        socket.set_nodelay(true).map_err(|error| Broken::Lost(error.to_string()))?;
        let (sender, connection) = http1::handshake(TokioIo::new(socket)).await?;
        Ok(Link { sender, connection: Some(Box::pin(connection)) })
    }

    /// The connection used last, which is the likeliest to be still open.
    fn take_idle(&self) -> Option<Link> {
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let last = idle.pop()?;
        if last.since.elapsed() > self.shared.options.idle_timeout {
            // The others idle even longer.
            idle.clear();
            return None;
        }
        Some(last.link)
    }

    fn keep(&self, link: Link) {
        let mut idle = self.shared.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if idle.len() < MOST_IDLE {
            idle.push(Idle { link, since: Instant::now() });
        }
    }
}

impl Link {
    /// Sends a request and waits for the head of its answer. On failure the request comes back if nothing of it was sent.
    async fn exchange(
        &mut self,
        request: Request<Full<Bytes>>,
        patience: &mut Patience,
    ) -> Result<hyper::Response<Incoming>, Failed> {
        let mut answer = std::pin::pin!(self.sender.try_send_request(request));
        std::future::poll_fn(|context| {
            // The connection first: it has the request to send and the answer to read.
            drive(&mut self.connection, context);
            match answer.as_mut().poll(context) {
                Poll::Ready(Ok(answer)) => Poll::Ready(Ok(answer)),
                Poll::Ready(Err(mut failed)) => {
                    let unsent = failed.take_message().map(Box::new);
                    Poll::Ready(Err(Failed { broken: failed.into_error().into(), unsent }))
                }
                Poll::Pending if self.connection.is_none() => {
                    Poll::Ready(Err(Broken::Lost("it hung up".to_owned()).into()))
                }
                Poll::Pending => patience.poll_gone(context).map(|()| Err(Broken::TimedOut.into())),
            }
        })
        .await
    }

    /// Reads and writes what can be read and written now. How it ended, if it did, is told by the answer it carries.
    fn drive(&mut self, context: &mut Context<'_>) {
        drive(&mut self.connection, context);
    }
}

/// A connection that has ended is dropped at once: only then does a request that still waits in it come back.
fn drive<F: Future>(connection: &mut Option<Pin<Box<F>>>, context: &mut Context<'_>) {
    if connection.as_mut().is_some_and(|connection| connection.as_mut().poll(context).is_ready()) {
        *connection = None;
    }
}

/// How long to wait for the next bytes. Starts anew with each of them, and costs nothing while they keep coming.
struct Patience {
    limit: Duration,
    since: Instant,
    /// Set when there was nothing to read, and then left where it is until it rings.
    alarm: Option<Pin<Box<Sleep>>>,
}

impl Patience {
    fn new(limit: Duration) -> Self {
        Patience { limit, since: Instant::now(), alarm: None }
    }

    fn restart(&mut self) {
        self.since = Instant::now();
    }

    /// Ready when nothing came for too long.
    fn poll_gone(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let deadline = self.since + self.limit;
        let alarm = self.alarm.get_or_insert_with(|| Box::pin(sleep_until(deadline)));
        loop {
            ready!(alarm.as_mut().poll(context));
            if alarm.deadline() >= deadline {
                return Poll::Ready(());
            }
            // It was set before the latest bytes came.
            alarm.as_mut().reset(deadline);
        }
    }
}

/// The body of an answer. Read to its end, its connection is kept for the next request; dropped before, it is closed, which
/// tells the engine to stop.
pub(super) struct DirectBody {
    incoming: Incoming,
    /// `None` once the answer is over.
    link: Option<Link>,
    pool: Direct,
    patience: Patience,
}

impl DirectBody {
    pub(super) fn poll_chunk(&mut self, context: &mut Context<'_>) -> Poll<Option<Result<Bytes, Broken>>> {
        let Some(link) = &mut self.link else { return Poll::Ready(None) };
        let mut is_driven = false;
        loop {
            match Pin::new(&mut self.incoming).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => {
                    self.patience.restart();
                    // What follows a body tells us nothing.
                    if let Ok(data) = frame.into_data() {
                        return Poll::Ready(Some(Ok(data)));
                    }
                }
                Poll::Ready(Some(Err(error))) => {
                    self.link = None;
                    return Poll::Ready(Some(Err(error.into())));
                }
                Poll::Ready(None) => {
                    self.put_back(context);
                    return Poll::Ready(None);
                }
                Poll::Pending if is_driven => break,
                // The look has shown that we want more, which is what makes the connection read it.
                Poll::Pending => {
                    link.drive(context);
                    is_driven = true;
                }
            }
        }
        ready!(self.patience.poll_gone(context));
        self.link = None;
        Poll::Ready(Some(Err(Broken::TimedOut)))
    }

    fn put_back(&mut self, context: &mut Context<'_>) {
        let Some(mut link) = self.link.take() else { return };
        // A connection that has ended, or that the engine wants closed, is of no more use.
        link.drive(context);
        if link.connection.is_some() && link.sender.is_ready() {
            self.pool.keep(link);
        }
    }
}
