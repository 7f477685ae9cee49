//! The listening socket: accepts connections within limits, and stops as `shutdown.rs` says.

use std::io::{self, Write};
use std::net::{IpAddr, SocketAddr};
use std::pin::pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use axum::http::HeaderMap;
use hob_config::ServerConfig;
use hob_core::LogScope;
use hob_net::tcp::{TcpListener, UnregisteredStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::access_log::AccessLogWriter;
use crate::connection::{ConnectionParts, serve};
use crate::limits::log_limit::LogLimit;
use crate::limits::peer_share::{ConnectionShare, ConnectionShares};
use crate::pages::change_relay::ChangeRelay;
use crate::reload::{ConnectionTimeouts, ServerControl};
use crate::request_id::{REQUEST_ID, RequestId};
use crate::responses::BackgroundRuns;
use crate::router::router;
use crate::secure_connection::{read_certificate, watch_certificate};
use crate::serve_error::ServeError;
use crate::shutdown::{ServerShutdown, ServerStop, StopSignals};
use crate::state::ServerParts;
use crate::worker_threads::WorkerThreads;

/// The pause after a failed accept, which is mostly caused by too many open files.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(100);

/// What a client reads whose address has too many connections.
const TOO_MANY_CONNECTIONS: &str = "your address has too many connections already.\r\n";

/// A server that is bound to its address and ready to run.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    workers: WorkerThreads,
    shared: Arc<ConnectionParts>,
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
        let shared = ConnectionParts {
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
        let ConnectionParts { pipeline, timeouts, certificate } = &*self.shared;
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
