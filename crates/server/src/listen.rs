//! The listening socket: accepts connections, limits slow peers, and stops as `shutdown.rs` says.

use std::convert::Infallible;
use std::future::poll_fn;
use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::body::Body;
use axum::http::{HeaderMap, HeaderValue, Request, Version, header};
use axum::response::{IntoResponse, Response};
use hob_config::ServerConfig;
use hob_core::LogScope;
use hob_net::ServerCertificate;
use hob_net::tcp::{TcpListener, TcpStream, UnregisteredStream};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_io_timeout::TimeoutStream;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access_log::AccessLogWriter;
use crate::caller_role::{Proof, RequestOrigin};
use crate::connection::{ClientSocket, ConnectionState, LastBody};
use crate::error::{ApiError, ErrorFormat};
use crate::limits::log_limit::LogLimit;
use crate::limits::peer_share::{ConnectionShare, ConnectionShares};
use crate::pages::change_relay::ChangeRelay;
use crate::pipeline::Pipeline;
use crate::poll_gate::PollGate;
use crate::reload::{ConnectionTimeouts, ServerControl};
use crate::request_context::RequestContext;
use crate::request_id::{ANTHROPIC_REQUEST_ID, ANTHROPIC_VERSION, REQUEST_ID, RequestId};
use crate::responses::BackgroundRuns;
use crate::router::router;
use crate::secure_connection::{ClientStream, read_certificate, secure, watch_certificate};
use crate::serve_error::ServeError;
use crate::shutdown::{ServerShutdown, ServerStop, StopSignals};
use crate::state::ServerParts;
use crate::worker_threads::WorkerThreads;

/// The pause after a failed accept, which is mostly caused by too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// How long a connection that is cut has for its last error event.
const ERROR_EVENT_TIME: Duration = Duration::from_secs(1);

/// What a client reads whose address has too many connections.
const TOO_MANY_CONNECTIONS: &str = "your address has too many connections already.\r\n";

/// Sent with every answer.
const SERVER_HEADER: HeaderValue = HeaderValue::from_static(concat!("hob/", env!("CARGO_PKG_VERSION")));

/// A server that is bound to its address and ready to run.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    workers: WorkerThreads,
    shared: Arc<Shared>,
    max_connections: usize,
    drain_delay: Duration,
    shutdown_grace: Duration,
    /// Says that the server is not ready, and later ends answers that would never end by themselves.
    stop: ServerStop,
    /// Responses that no connection waits for.
    background: Arc<BackgroundRuns>,
    /// `None` without other servers.
    relay: Option<ChangeRelay>,
}

/// A server that has stopped. Background work of its requests, such as a started task, continues until this is dropped.
pub struct Stopped {
    /// Answers that were cut off.
    pub cut: usize,
    _workers: WorkerThreads,
}

/// What all connections share.
struct Shared {
    pipeline: Pipeline,
    timeouts: Arc<ArcSwap<ConnectionTimeouts>>,
    /// `None` serves plain HTTP.
    certificate: Option<Arc<ServerCertificate>>,
}

impl Server {
    /// Binds the address of `config`.
    pub async fn bind(parts: impl Into<ServerParts>, config: &ServerConfig) -> Result<Self, ServeError> {
        let certificate = read_certificate(&config.tls)?.map(Arc::new);
        let failed = |source| ServeError::Bind { host: config.host.clone(), port: config.port, source };
        let listener = TcpListener::bind((config.host.as_str(), config.port)).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let stop = ServerStop::default();
        let background = Arc::new(BackgroundRuns::new());
        let mut parts: ServerParts = parts.into();
        let (shared_database, bus) = (parts.shared_database.take(), parts.system.bus().clone());
        let pipeline = router(parts, config, stop.clone(), Arc::clone(&background));
        let changes = &pipeline.changes;
        let relay = shared_database.map(|database| ChangeRelay::new(database, changes.clone(), bus));
        let shared = Shared {
            pipeline,
            timeouts: Arc::new(ArcSwap::from_pointee(ConnectionTimeouts::of(config))),
            certificate,
        };
        Ok(Server {
            listener,
            address,
            workers: WorkerThreads::start().map_err(ServeError::Threads)?,
            shared: Arc::new(shared),
            // Idle connections are cheap, so more of them are allowed than requests.
            max_connections: config
                .max_in_flight
                .saturating_add(config.max_waiting)
                .max(32)
                .saturating_mul(2),
            drain_delay: config.drain_seconds,
            shutdown_grace: config.shutdown_grace,
            stop,
            background,
            relay,
        })
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// A handle for changing settings while the server runs.
    pub fn control(&self) -> ServerControl {
        let Shared { pipeline, timeouts, certificate } = &*self.shared;
        ServerControl {
            rules: Arc::clone(&pipeline.rules),
            access_log: Arc::clone(&pipeline.access_log),
            timeouts: Arc::clone(timeouts),
            certificate: certificate.clone(),
            identity: pipeline.identity.clone(),
            changes: pipeline.changes.clone(),
        }
    }

    /// Serves until `shutdown`. Then the server is not ready, and still accepts requests for the drain delay: a load balancer needs a
    /// moment to notice. After that, running answers have the grace period to end; the rest is cut.
    pub async fn run(self, shutdown: CancellationToken) -> Stopped {
        let connections = TaskTracker::new();
        let signals = StopSignals::default();
        // No connection outlives this future, however it ends.
        let _cut_at_the_end = signals.cut.clone().drop_guard();
        if let Some(certificate) = self.shared.certificate.clone() {
            // Ends with its token.
            tokio::spawn(signals.cut.clone().run_until_cancelled_owned(watch_certificate(certificate)));
        }
        if let Some(relay) = self.relay {
            // Ends with its token.
            tokio::spawn(signals.cut.clone().run_until_cancelled_owned(relay.run()));
        }
        let room = Arc::new(Semaphore::new(self.max_connections.min(Semaphore::MAX_PERMITS)));
        let shares = ConnectionShares::new(self.max_connections);
        let refusal_log = LogLimit::new();
        let mut drained = pin!(self.stop.drained(&shutdown, self.drain_delay));
        loop {
            let accepted = tokio::select! {
                () = drained.as_mut() => break,
                accepted = accept(&self.listener, &room) => accepted,
            };
            match accepted {
                Ok((socket, peer, permit)) => {
                    let Some(share) = shares.acquire(peer) else {
                        refuse_connection(socket, peer, &refusal_log, self.shared.certificate.is_none());
                        continue;
                    };
                    let connection = serve(socket, peer, Arc::clone(&self.shared), signals.clone());
                    self.workers.spawn(&connections, counted(connection, permit, share));
                }
                Err(error) => {
                    tracing::warn!(
                        %error,
                        "a connection cannot be accepted; Hob tries again. Raise the limit on open files \
                         (ulimit -n) if it is reached"
                    );
                    tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
                }
            }
        }
        drop(self.listener);
        let shutdown = ServerShutdown {
            stop: &self.stop,
            signals: &signals,
            connections: &connections,
            background: &self.background,
        };
        let cut = shutdown.finish(self.shutdown_grace).await;
        AccessLogWriter::close(&self.shared.pipeline.access_log).await;
        Stopped { cut, _workers: self.workers }
    }
}

/// Accepts the next connection when the limit allows it.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(UnregisteredStream, IpAddr, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
    let (socket, peer) = listener.accept().await?;
    // A worker thread's runtime registers it.
    Ok((socket.into_std()?, peer.ip(), permit))
}

/// Refuses a connection, so that one address cannot use all of them.
fn refuse_connection(mut socket: UnregisteredStream, peer: IpAddr, log: &LogLimit, is_plain: bool) {
    // The client has sent no request yet, and so no id.
    let id = RequestId::of(&HeaderMap::new());
    if let Some(suppressed) = log.allow(Instant::now()) {
        LogScope::of(id.shared()).run(|| {
            tracing::warn!(
                %peer,
                suppressed,
                "a connection is refused: this address has too many. Let the client close or reuse its \
                 connections"
            );
        });
    }
    // The socket is non-blocking. A client that does not get the message sees the connection end.
    if is_plain {
        let answer = format!(
            "HTTP/1.1 503 Service Unavailable\r\ncontent-type: text/plain\r\nretry-after: 5\r\n{REQUEST_ID}: {id}\r\n\
            connection: close\r\ncontent-length: {}\r\n\r\n{TOO_MANY_CONNECTIONS}",
            TOO_MANY_CONNECTIONS.len()
        );
        let _ = socket.write(answer.as_bytes());
    }
}

async fn counted(connection: impl Future<Output = ()>, permit: OwnedSemaphorePermit, share: ConnectionShare) {
    connection.await;
    drop((permit, share));
}

async fn serve(socket: UnregisteredStream, peer: IpAddr, shared: Arc<Shared>, stop: StopSignals) {
    let socket = match TcpStream::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return tracing::warn!(%error, "a connection cannot be served; Hob closes it"),
    };
    // Otherwise the first token of a stream waits 40 ms for an acknowledgement.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot set TCP_NODELAY");
    }
    let timeouts = **shared.timeouts.load();
    let socket = match &shared.certificate {
        None => ClientStream::Left(socket),
        // Boxed, so that plain connections do not reserve its memory.
        Some(certificate) => tokio::select! {
            secured = Box::pin(secure(socket, certificate, timeouts.header)) => match secured {
                Some(socket) => ClientStream::Right(Box::new(socket)),
                None => return,
            },
            () = stop.closing.cancelled() => return,
            () = stop.cut.cancelled() => return,
        },
    };
    let state = Arc::new(ConnectionState::default());
    let mut socket = TimeoutStream::new(ClientSocket { socket, state: Arc::clone(&state) });
    socket.set_write_timeout(Some(timeouts.write));

    let service = service_fn(|request: Request<Incoming>| answer(&shared, &state, peer, request));
    let mut builder = http1::Builder::new();
    // The timeout also closes idle connections.
    builder.timer(TokioTimer::new()).header_read_timeout(timeouts.header);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Box::pin(socket)), service));
    let stopped = async {
        PollGate::wait(stop.closing.cancelled()).await;
        None
    };
    let cut = async {
        PollGate::wait(stop.cut.cancelled()).await;
        None
    };
    let mut cut = pin!(cut);
    let mut outcome = tokio::select! {
        // In this order: without a grace period, both signals come at once, and the answer still has to say that it ends.
        biased;
        outcome = connection.as_mut() => Some(outcome),
        none = stopped => none,
        // The server was dropped, so there is nothing to wait for.
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
        tracing::debug!(%error, "connection ended with an error");
    }
}

/// Answers a request. The connection state changes before the future is first polled, because hyper reads on in between.
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
        let is_anthropic = is_anthropic(&request);
        let mut log_scope = LogScope::of(id.shared());
        let header = id.header();
        let connection = Arc::clone(state);
        let request = request.map(|body| match is_last {
            true => Body::new(LastBody { body, state: Arc::clone(state) }),
            false => Body::new(body),
        });
        let context = RequestContext {
            id,
            peer,
            origin: RequestOrigin::Direct,
            proof: Proof::None,
            connection,
            tally: None,
        };
        let mut answering = pin!(shared.pipeline.answer(request, context));
        let mut gate = PollGate::new();
        let mut response = poll_fn(|context| {
            match gate.poll(context, |context| log_scope.run(|| answering.as_mut().poll(context))) {
                Poll::Pending if state.is_cut() => Poll::Ready(ApiError::shutting_down().into_response()),
                answer => answer,
            }
        })
        .await;
        if version == Version::HTTP_10 {
            // The end of the connection ends a stream of HTTP/1.0, so no header may promise to keep it alive.
            response.headers_mut().remove(header::CONNECTION);
        }
        response.headers_mut().insert(header::SERVER, SERVER_HEADER);
        if is_anthropic {
            response.headers_mut().insert(ANTHROPIC_REQUEST_ID, header.clone());
        }
        response.headers_mut().insert(REQUEST_ID, header);
        Ok(response)
    }
}

/// Whether the client is one of Anthropic's API, which looks for the id of a request under another name.
fn is_anthropic(request: &Request<Incoming>) -> bool {
    ErrorFormat::of_path(request.uri().path()) == ErrorFormat::Anthropic
        || request.headers().contains_key(ANTHROPIC_VERSION)
}
