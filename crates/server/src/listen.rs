//! The socket: accepts connections, keeps slow peers from holding them, and stops without cutting answers off.

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Request, Version, header};
use axum::response::Response;
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

use crate::door::Door;
use crate::hands::Hands;
use crate::router::{ServerParts, router};
use crate::trust::Peer;

/// After a failed accept (too many open files, mostly) a moment's rest lets connections end.
const ACCEPT_REST: Duration = Duration::from_millis(100);

/// How long connections that were cut may take to end. One that takes longer has a thread that something holds up, for which the
/// end of the program does not wait.
const CUT_WITHIN: Duration = Duration::from_secs(5);

/// Sent with every answer.
const SERVER_NAME: HeaderValue = HeaderValue::from_static(concat!("hob/", env!("CARGO_PKG_VERSION")));

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
    hands: Hands,
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
    _hands: Hands,
}

/// What every connection needs.
struct Shared {
    door: Door,
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
            door: router(parts.into(), config, stopping.clone()),
            header_timeout: config.header_timeout,
            write_timeout: config.write_timeout,
        };
        Ok(Server {
            listener,
            address,
            hands: Hands::start().map_err(ServeError::Threads)?,
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

    /// Serves until `shutdown`, then lets running answers end within the grace period, and cuts those that do not.
    pub async fn run(self, shutdown: CancellationToken) -> Stopped {
        let connections = TaskTracker::new();
        let cut = CancellationToken::new();
        // No connection outlives this future, however it ends.
        let cut_at_the_end = cut.clone().drop_guard();
        let room = Arc::new(Semaphore::new(self.max_connections.min(Semaphore::MAX_PERMITS)));
        loop {
            let accepted = tokio::select! {
                () = shutdown.cancelled() => break,
                accepted = accept(&self.listener, &room) => accepted,
            };
            match accepted {
                Ok((socket, peer, permit)) => {
                    let connection = serve(socket, peer, Arc::clone(&self.shared), shutdown.clone());
                    let cut = cut.clone();
                    self.hands.give(&connections, async move {
                        cut.run_until_cancelled(connection).await;
                        drop(permit);
                    });
                }
                Err(error) => {
                    tracing::warn!(%error, "cannot accept a connection");
                    tokio::time::sleep(ACCEPT_REST).await;
                }
            }
        }
        drop(self.listener);
        self.stopping.cancel();
        connections.close();
        match tokio::time::timeout(self.shutdown_grace, connections.wait()).await {
            Ok(()) => Stopped { cut: 0, _hands: self.hands },
            Err(_) => {
                let cut = connections.len();
                drop(cut_at_the_end);
                if tokio::time::timeout(CUT_WITHIN, connections.wait()).await.is_err() {
                    tracing::warn!(left = connections.len(), "connections do not end, and are left behind");
                }
                Stopped { cut, _hands: self.hands }
            }
        }
    }
}

/// The next connection, once there is room for it.
async fn accept(
    listener: &TcpListener,
    room: &Arc<Semaphore>,
) -> io::Result<(std::net::TcpStream, Peer, OwnedSemaphorePermit)> {
    let permit = Arc::clone(room).acquire_owned().await.map_err(io::Error::other)?;
    let (socket, peer) = listener.accept().await?;
    // Another runtime is going to watch it.
    Ok((socket.into_std()?, Peer(peer.ip()), permit))
}

async fn serve(socket: std::net::TcpStream, peer: Peer, shared: Arc<Shared>, shutdown: CancellationToken) {
    let socket = match TcpStream::from_std(socket) {
        Ok(socket) => socket,
        Err(error) => return tracing::warn!(%error, "cannot serve a connection"),
    };
    // Without this a stream's first token waits for an acknowledgement, 40 ms.
    if let Err(error) = socket.set_nodelay(true) {
        tracing::debug!(%error, "cannot switch Nagle's algorithm off");
    }
    let mut socket = TimeoutStream::new(socket);
    socket.set_write_timeout(Some(shared.write_timeout));

    let service = service_fn(|request: Request<Incoming>| answer(&shared, peer, request));
    let mut builder = http1::Builder::new();
    // The time-out also ends connections on which no request comes.
    builder.timer(TokioTimer::new()).header_read_timeout(shared.header_timeout);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Box::pin(socket)), service));
    let outcome = tokio::select! {
        outcome = connection.as_mut() => outcome,
        () = shutdown.cancelled() => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = outcome {
        tracing::debug!(%error, "a connection ended badly");
    }
}

async fn answer(shared: &Shared, peer: Peer, mut request: Request<Incoming>) -> Result<Response, Infallible> {
    let version = request.version();
    request.extensions_mut().insert(peer);
    let mut response = shared.door.answer(request.map(Body::new)).await;
    if version == Version::HTTP_10 {
        // Only the end of the connection ends a stream of HTTP/1.0, so nothing may promise to keep it.
        response.headers_mut().remove(header::CONNECTION);
    }
    response.headers_mut().insert(header::SERVER, SERVER_NAME);
    Ok(response)
}
