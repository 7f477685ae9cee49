//! A bounded number of connections, made when they are needed.

use std::io;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Runtime;
use tokio_postgres::{Client, Socket};

use super::connection::{Connection, wait_until};
use super::explain::{explain, explain_connect};
use super::options::PostgresOptions;
use super::query_error::QueryError;
use super::tls::{Tls, TlsStream};
use crate::{DatabaseError, DbResult};

/// A session that holds locks and does nothing is ended by the server, so that a process that hangs does not stop the others.
const IDLE_IN_TRANSACTION: Duration = Duration::from_secs(60);

/// How long a caller waits for another one that connects to a server that was away. It fails then, so that a server that does not
/// answer at all holds one caller at a time.
const SHORT_WAIT: Duration = Duration::from_millis(500);

/// Makes connections.
#[derive(Clone)]
pub(super) struct Connector {
    options: PostgresOptions,
    tls: Tls,
    server: Arc<str>,
}

impl Connector {
    pub(super) fn new(options: PostgresOptions) -> DbResult<Self> {
        let server: Arc<str> = options.server().into();
        let tls = Tls::new(options.tls, &options.roots)
            .map_err(|source| DatabaseError::Tls { server: server.to_string(), source })?;
        Ok(Connector { options, tls, server })
    }

    pub(super) fn server(&self) -> &str {
        &self.server
    }

    pub(super) fn options(&self) -> &PostgresOptions {
        &self.options
    }

    /// A client, and the connection that the caller must drive.
    pub(super) async fn connect(&self) -> DbResult<(Client, tokio_postgres::Connection<Socket, TlsStream>)> {
        // The limit of the client library ends with the socket. A server that then says nothing must not hold us either, nor keep us
        // from the next one.
        let limit = self.options.connect_timeout * 2;
        let mut failed = explain(&self.server, QueryError::NoAnswer);
        for login in self.options.logins()? {
            failed = match tokio::time::timeout(limit, login.connect(self.tls.clone())).await {
                Ok(Ok(connected)) => return Ok(connected),
                Ok(Err(error)) => explain_connect(&self.server, error),
                Err(_elapsed) => explain(&self.server, QueryError::NoAnswer),
            };
        }
        Err(failed)
    }

    async fn open(&self) -> DbResult<Client> {
        let (client, connection) = self.connect().await?;
        // Ends with its client, or with the server. The client then returns the error.
        tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to PostgreSQL ended");
            }
        });
        let settings = format!(
            "SET statement_timeout = {}; SET idle_in_transaction_session_timeout = {}; SET TimeZone = 'UTC'",
            self.options.statement_timeout.as_millis(),
            IDLE_IN_TRANSACTION.as_millis(),
        );
        // A server that hangs after the login must not hold the caller either.
        match tokio::time::timeout(self.options.connect_timeout, client.batch_execute(&settings)).await {
            Ok(set) => set.map_err(|error| explain_connect(&self.server, error))?,
            Err(_elapsed) => return Err(explain(&self.server, QueryError::NoAnswer)),
        }
        Ok(client)
    }
}

/// The connections of one database.
pub(super) struct Pool {
    connector: Connector,
    state: Mutex<State>,
    freed: Condvar,
    /// Drives all sockets, from one thread.
    runtime: Option<Runtime>,
}

#[derive(Default)]
struct State {
    idle: Vec<Connection>,
    /// Idle or in use.
    open: usize,
    generation: u64,
    /// Callers that connect.
    connecting: usize,
    /// The last attempt to connect found no server.
    is_away: bool,
}

impl Pool {
    pub(super) fn new(connector: Connector) -> io::Result<Self> {
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .thread_name("hob-postgres")
            .enable_all()
            .build()?;
        Ok(Pool { connector, state: Mutex::default(), freed: Condvar::new(), runtime: Some(runtime) })
    }

    pub(super) fn connector(&self) -> &Connector {
        &self.connector
    }

    /// `None` only while it is dropped.
    pub(super) fn runtime(&self) -> Option<&Runtime> {
        self.runtime.as_ref()
    }

    /// A connection that is free, or a new one. Waits for a bounded time while all are in use.
    pub(super) fn take(&self) -> DbResult<Lent<'_>> {
        let deadline = Instant::now() + self.connector.options.connect_timeout;
        let short_deadline = Instant::now() + SHORT_WAIT;
        let mut state = self.state.lock();
        let generation = loop {
            if let Some(connection) = state.idle.pop() {
                if connection.is_closed() {
                    state.open -= 1;
                    continue;
                }
                return Ok(Lent { pool: self, connection: Some(connection) });
            }
            if state.is_away && state.connecting > 0 {
                if self.freed.wait_until(&mut state, short_deadline).timed_out() {
                    return Err(self.away());
                }
                continue;
            }
            if state.open < self.connector.options.max_connections.max(1) {
                state.open += 1;
                state.connecting += 1;
                break state.generation;
            }
            if self.freed.wait_until(&mut state, deadline).timed_out() {
                return Err(DatabaseError::NoConnection {
                    server: self.connector.server().to_owned(),
                    max: self.connector.options.max_connections,
                });
            }
        };
        drop(state);
        // Gives the place back if connecting fails or panics.
        let mut lent = Lent { pool: self, connection: None };
        let mut attempt = Attempt { pool: self, found_none: false };
        let opened = self.open();
        attempt.found_none = opened.as_ref().is_err_and(is_absence);
        drop(attempt);
        lent.connection = Some(Connection::new(opened?, generation));
        Ok(lent)
    }

    /// Whether the last attempt to connect found no server. Asks nothing.
    pub(super) fn is_away(&self) -> bool {
        self.state.lock().is_away
    }

    pub(super) fn away(&self) -> DatabaseError {
        let server = self.connector.server().to_owned();
        DatabaseError::Unreachable { server, source: Box::new(QueryError::NoAnswer) }
    }

    fn open(&self) -> DbResult<Client> {
        let stopped = || explain(self.connector.server(), QueryError::NoAnswer);
        let runtime = self.runtime().ok_or_else(stopped)?;
        let connector = self.connector.clone();
        let opening = runtime.spawn(async move { connector.open().await });
        wait_until(None, opening)
            .map_err(|error| explain(self.connector.server(), error))?
            .unwrap_or_else(|_| Err(stopped()))
    }

    /// Closes idle connections, and those in use when they come back: the server was restarted or replaced.
    pub(super) fn renew(&self) {
        let mut state = self.state.lock();
        state.generation += 1;
        let closed = std::mem::take(&mut state.idle);
        state.open -= closed.len();
        drop(state);
        self.freed.notify_all();
    }

    fn give_back(&self, connection: Option<Connection>) {
        let mut state = self.state.lock();
        match connection {
            Some(connection) if connection.generation == state.generation && !connection.is_closed() => {
                state.is_away = false;
                state.idle.push(connection);
            }
            _ => state.open -= 1,
        }
        drop(state);
        self.freed.notify_one();
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // Waits for nothing, because the last owner may be asynchronous.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

/// Whether there is no server, rather than one that refuses.
fn is_absence(error: &DatabaseError) -> bool {
    match error {
        DatabaseError::Unreachable { .. } => true,
        DatabaseError::Overloaded { source, .. } => matches!(**source, QueryError::NoAnswer),
        _ => false,
    }
}

/// A caller that connects.
struct Attempt<'a> {
    pool: &'a Pool,
    found_none: bool,
}

impl Drop for Attempt<'_> {
    fn drop(&mut self) {
        let mut state = self.pool.state.lock();
        state.connecting -= 1;
        state.is_away = self.found_none;
        drop(state);
        self.pool.freed.notify_all();
    }
}

/// A connection in use. Its place is free when this is dropped.
pub(super) struct Lent<'a> {
    pool: &'a Pool,
    connection: Option<Connection>,
}

impl Lent<'_> {
    /// `None` never, while it is lent.
    pub(super) fn connection(&mut self) -> Option<&mut Connection> {
        self.connection.as_mut()
    }

    /// Closes it instead of giving it back.
    pub(super) fn discard(mut self) {
        self.connection = None;
    }
}

impl Drop for Lent<'_> {
    fn drop(&mut self) {
        // A panic may have left a transaction open.
        let connection = self.connection.take().filter(|_| !std::thread::panicking());
        self.pool.give_back(connection);
    }
}
