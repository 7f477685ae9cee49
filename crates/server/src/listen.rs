//! The socket: accepts connections, keeps slow peers from holding them, and stops without cutting answers off.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::http::{HeaderValue, Request, Version, header};
use axum::response::{IntoResponse, Response};
use hob_config::ServerConfig;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use thiserror::Error;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tracing::Instrument;

use crate::caller::RequestOrigin;
use crate::connection::{ClientSocket, ConnectionState, LastBody};
use crate::error::ApiError;
use crate::limits::log_limit::LogLimit;
use crate::limits::peer_share::{ConnectionShare, ConnectionShares};
use crate::pipeline::Pipeline;
use crate::reload::ServerControl;
use crate::request_context::RequestContext;
use crate::request_id::{REQUEST_ID, RequestId};
use crate::router::router;
use crate::state::ServerParts;
use crate::worker_threads::WorkerThreads;

/// After a failed accept (too many open files, mostly) a moment's rest lets connections end.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// How long a connection that is cut has to say so to its client.
const ERROR_EVENT_TIME: Duration = Duration::from_secs(1);

/// What a client hears whose address has too many connections. It has sent nothing that could be answered in any other way.
const TOO_MANY_CONNECTIONS: &[u8] =
    b"HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\nretry-after: 5\r\n\
    connection: close\r\ncontent-length: 48\r\n\r\nyour address has too many connections already.\r\n";

/// How long connections that were cut may take to end. One that takes longer has a thread that something holds up, for which the
/// end of the program does not wait.
const CUT_WITHIN: Duration = Duration::from_secs(5);

/// Sent with every answer.
const SERVER_HEADER: HeaderValue = HeaderValue::from_static(concat!("hob/", env!("CARGO_PKG_VERSION")));

#[derive(Debug, Error)]
pub enum ServeError {
    #[error("cannot listen on {host}:{port}: {source}{}", advice(source))]
    Bind { host: String, port: u16, source: io::Error },
    /// A process may have too many already.
    #[error("cannot start the threads that serve connections: {0}")]
    Threads(io::Error),
}

fn advice(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AddrInUse => ". Something else listens there; choose another port with --port",
        io::ErrorKind::PermissionDenied => ". Ports below 1024 need more rights; choose another with --port",
        io::ErrorKind::AddrNotAvailable => ". This machine does not have that address; see [server] host",
        _ => "",
    }
}

/// A server that listens, ready to run.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    workers: WorkerThreads,
    shared: Arc<Shared>,
    max_connections: usize,
    shutdown_grace: Duration,
    /// Tells answers that never end by themselves that it is time.
    stopping: CancellationToken,
}

/// A server that serves no more. What requests have begun and left to itself, such as a task that was started, goes on until
/// this is dropped.
pub struct Stopped {
    /// Answers that were cut off.
    pub cut: usize,
    _workers: WorkerThreads,
}

/// What every connection needs.
struct Shared {
    pipeline: Pipeline,
    header_timeout: Duration,
    write_timeout: Duration,
}

impl Server {
    /// Binds the address of `config`.
    pub async fn bind(parts: impl Into<ServerParts>, config: &ServerConfig) -> Result<Self, ServeError> {
        let failed = |source| ServeError::Bind { host: config.host.clone(), port: config.port, source };
        let listener = TcpListener::bind((config.host.as_str(), config.port)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stopping = CancellationToken::new();
        let shared = Shared {
            pipeline: router(parts.into(), config, stopping.clone()),
            header_timeout: config.header_timeout,
            write_timeout: config.write_timeout,
        };
        Ok(Server {
            listener,
            address,
            workers: WorkerThreads::start().map_err(ServeError::Threads)?,
            shared: Arc::new(shared),
            // Idle connections are cheap, so there may be more of them than requests; but not without end.
            max_connections: config
                .max_in_flight
                .saturating_add(config.max_waiting)
                .max(32)
                .saturating_mul(2),
            shutdown_grace: config.shutdown_grace,
            stopping,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// For changing it while it runs.
    pub fn control(&self) -> ServerControl {
        ServerControl { rules: Arc::clone(&self.shared.pipeline.rules) }
    }

    /// Serves until `shutdown`, then lets running answers end within the grace period, and cuts those that do not.
    pub async fn run(self, shutdown: CancellationToken) -> Stopped {
        let connections = TaskTracker::new();
        let cut = CancellationToken::new();
        // No connection outlives this future, however it ends.
        let cut_at_the_end = cut.clone().drop_guard();
        let room = Arc::new(Semaphore::new(self.max_connections.min(Semaphore::MAX_PERMITS)));
        let shares = ConnectionShares::new(self.max_connections);
        let refusal_log = LogLimit::new();
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = accept(&self.listener, &room) => accepted,
            };
            match accepted {
                Ok((socket, peer, permit)) => {
                    let Some(share) = shares.acquire(peer) else {
                        refuse_connection(socket, peer, &refusal_log);
                        continue;
                    };
                    let stop = StopSignals { shutdown: shutdown.clone(), cut: cut.clone() };
                    let connection = serve(socket, peer, Arc::clone(&self.shared), stop);
                    self.workers.spawn(&connections, counted(connection, permit, share));
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
        drop(self.listener);
        self.stopping.cancel();
        connections.close();
        match tokio::time::timeout(self.shutdown_grace, connections.wait()).await {
            Ok(()) => Stopped { cut: 0, _workers: self.workers },
            Err(_) => {
                let cut = connections.len();
                drop(cut_at_the_end);
                if tokio::time::timeout(CUT_WITHIN, connections.wait()).await.is_err() {
                    tracing::warn!(left = connections.len(), "connections do not end, and are left behind");
                }
                Stopped { cut, _workers: self.workers }
            }
        }
    }
}

/// How a connection hears of the end.
struct StopSignals {
    /// Take no further requests.
    shutdown: CancellationToken,
    /// End the answers under way.
    cut: CancellationToken,
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(std::net::TcpStream, IpAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
    let (socket, peer) = listener.accept().await?;
    // Another runtime is going to watch it.
    Ok((socket.into_std()?, peer.ip(), permit))
}

/// One address must not take all connections.
fn refuse_connection(mut socket: std::net::TcpStream, peer: IpAddr, log: &LogLimit) {
    if let Some(suppressed) = log.allow(Instant::now()) {
        tracing::warn!(%peer, suppressed, "refused a connection: this address has too many already");
    }
    // The socket does not block, and whoever does not hear it sees the connection end.
    let _ = socket.write(TOO_MANY_CONNECTIONS);
}

async fn counted(connection: impl Future<Output = ()>, permit: OwnedSemaphorePermit, share: ConnectionShare) {
    connection.await;
    drop((permit, share));
}

async fn serve(socket: std::net::TcpStream, peer: IpAddr, shared: Arc<Shared>, stop: StopSignals) {
    let socket = match TcpStream::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return tracing::warn!(%error, "cannot serve a connection"),
    };
    // Without this a stream's first token waits for an acknowledgement, 40 ms.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot switch Nagle's algorithm off");
    }
    let state = Arc::new(ConnectionState::default());
    let mut socket = TimeoutStream::new(ClientSocket { socket, state: Arc::clone(&state) });
    socket.set_write_timeout(Some(shared.write_timeout));

    let service = service_fn(|request: Request<Incoming>| answer(&shared, &state, peer, request));
    let mut builder = http1::Builder::new();
    // The time-out also ends connections on which no request comes.
    builder.timer(TokioTimer::new()).header_read_timeout(shared.header_timeout);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Box::pin(socket)), service));
    let stopped = async {
        stop.shutdown.cancelled().await;
        None
    };
    let cut = async {
        stop.cut.cancelled().await;
        None
    };
    let mut cut = pin!(cut);
    let mut outcome = tokio::select! {
        outcome = connection.as_mut() => Some(outcome),
        none = stopped => none,
        // The server itself is gone, so there is nothing to wait for.
        _ = cut.as_mut() => return,
    };
    if outcome.is_none() {
        connection.as_mut().graceful_shutdown();
        outcome = tokio::select! {
            outcome = connection.as_mut() => Some(outcome),
            none = cut => none,
        };
    }
    if outcome.is_none() {
        state.cut();
        outcome = tokio::time::timeout(ERROR_EVENT_TIME, connection).await.ok();
    }
    if let Some(Err(error)) = outcome {
        tracing::debug!(%error, "a connection ended badly");
    }
}

/// Answers a request. What it needs at once is done before the future is first polled: hyper reads on in between.
fn answer<'a>(
    shared: &'a Shared,
    state: &'a Arc<ConnectionState>,
    peer: IpAddr,
    request: Request<Incoming>,
) -> impl Future<Output = Result<Response, Infallible>> + use<'a> {
    let is_last = state.begin(&request);
    async move {
        let version = request.version();
        let id = RequestId::of(request.headers());
        // Of a level that is always on: it is no line of its own, but part of all others.
        let span = tracing::error_span!("request", request_id = %id);
        let header = id.header();
        let connection = Arc::clone(state);
        let request = request.map(|body| match is_last {
            true => Body::new(LastBody { body, state: Arc::clone(state) }),
            false => Body::new(body),
        });
        let context = RequestContext { id, peer, origin: RequestOrigin::Direct, is_keyed: false, connection };
        let mut answering = pin!(shared.pipeline.answer(request, context).instrument(span));
        let mut response = poll_fn(|polled| match answering.as_mut().poll(polled) {
            Poll::Pending if state.is_cut() => Poll::Ready(ApiError::shutting_down().into_response()),
            answer => answer,
        })
        .await;
        if version == Version::HTTP_10 {
            // Only the end of the connection ends a stream of HTTP/1.0, so nothing may promise to keep it.
            response.headers_mut().remove(header::CONNECTION);
        }
        response.headers_mut().insert(header::SERVER, SERVER_HEADER);
        response.headers_mut().insert(REQUEST_ID, header);
        Ok(response)
    }
}
