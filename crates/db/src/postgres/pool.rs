//! A bounded number of connections, made when they are needed.

use std::io;
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use tokio::runtime::Runtime;
use tokio_postgres::Client;

use super::connection::{Connection, wait_until};
use super::connector::Connector;
use super::explain::explain;
use super::query_error::QueryError;
use crate::{DatabaseError, DbResult};

/// How long a caller waits for another one that connects to a server that was away. It fails then, so that a server that does not
/// answer at all holds one caller at a time.
const SHORT_WAIT: Duration = Duration::from_millis(500);

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
        let deadline = Instant::now() + self.connector.options().connect_timeout;
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
            if state.open < self.connector.options().max_connections.max(1) {
                state.open += 1;
                state.connecting += 1;
                break state.generation;
            }
            if self.freed.wait_until(&mut state, deadline).timed_out() {
                return Err(DatabaseError::NoConnection {
                    server: self.connector.server().to_owned(),
                    max: self.connector.options().max_connections,
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
