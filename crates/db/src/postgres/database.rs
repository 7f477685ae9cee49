//! Reads and writes, with retries.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Runtime;

use super::connector::Connector;
use super::explain::explain;
use super::listener::{Listener, TopicMessages};
use super::migrations::{self, NewerSchema, PostgresMigrations};
use super::options::PostgresOptions;
use super::pool::Pool;
use super::query_error::{QueryError, QueryResult};
use super::transaction::PostgresTransaction;
use crate::change_watch::ChangeWatch;
use crate::{DatabaseError, DbResult, Durability};

/// How often a transaction runs again that lost against another one.
const MAX_CONFLICTS: u32 = 5;

/// The first pause before that. It doubles each time.
const CONFLICT_PAUSE: Duration = Duration::from_millis(5);

/// How much longer than the server a caller waits for the end of a statement.
const GRACE: Duration = Duration::from_secs(5);

/// A database in PostgreSQL. Cheap to clone; all clones share its connections.
///
/// Opens nothing until it is used. The first use migrates the database; after a failure, the next use tries again. Blocks:
/// asynchronous callers use [`crate::spawn_blocking`].
#[derive(Clone)]
pub struct PostgresDatabase {
    inner: Arc<Inner>,
}

struct Inner {
    pool: Pool,
    listener: Listener,
    migrations: &'static [PostgresMigrations],
    is_migrated: AtomicBool,
    /// One thread of this process migrates.
    migrating: Mutex<()>,
}

/// How a transaction begins and ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    Read,
    Write(Durability),
}

impl Mode {
    fn begin(self) -> &'static str {
        match self {
            Mode::Read => "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY",
            // Without READ WRITE, so that an administrator can make the database read-only.
            Mode::Write(Durability::PowerCut) => "BEGIN ISOLATION LEVEL READ COMMITTED",
            Mode::Write(Durability::ProcessEnd) => {
                "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL synchronous_commit = off"
            }
        }
    }
}

/// Why a transaction did not happen.
enum Failure {
    /// There is no connection.
    Connecting(DatabaseError),
    /// Nothing was written.
    RolledBack(QueryError),
    /// The connection broke while the server may have committed.
    Unknown(QueryError),
}

impl PostgresDatabase {
    pub fn new(options: PostgresOptions, migrations: &'static [PostgresMigrations]) -> DbResult<Self> {
        let connector = Connector::new(options)?;
        let server = connector.server().to_owned();
        let pool = Pool::new(connector).map_err(|source| DatabaseError::ClientThread { server, source })?;
        let inner = Inner {
            pool,
            listener: Listener::default(),
            migrations,
            is_migrated: AtomicBool::new(false),
            migrating: Mutex::new(()),
        };
        Ok(PostgresDatabase { inner: Arc::new(inner) })
    }

    /// The hosts and the name of the database, for messages.
    pub fn server(&self) -> &str {
        self.inner.pool.connector().server()
    }

    /// Fails if the last attempt to connect found no server. Asks nothing, so it is fast.
    pub fn check_known_state(&self) -> DbResult<()> {
        let pool = &self.inner.pool;
        if pool.is_away() { Err(pool.away()) } else { Ok(()) }
    }

    /// Adds the server to an error, and what to do. Reads and writes do it themselves.
    pub fn explain(&self, error: QueryError) -> DatabaseError {
        explain(self.server(), error)
    }

    /// Reads a consistent snapshot. `work` may run again after a broken connection. It must not use the database again.
    pub fn read<T>(&self, work: impl FnMut(&mut PostgresTransaction<'_>) -> QueryResult<T>) -> DbResult<T> {
        self.migrate()?;
        self.run(Mode::Read, work)
    }

    /// Runs `work` in a transaction, which is on the disk when this returns. `work` runs again if the transaction lost against
    /// another one, or if the connection broke before the commit. It must not use the database again.
    ///
    /// Other transactions run at the same time: a row that is read and then changed must be read with `FOR UPDATE`, or the change
    /// must be one statement.
    pub fn write<T>(&self, work: impl FnMut(&mut PostgresTransaction<'_>) -> QueryResult<T>) -> DbResult<T> {
        self.write_with(Durability::PowerCut, work)
    }

    /// The same with another durability.
    pub fn write_with<T>(
        &self,
        durability: Durability,
        work: impl FnMut(&mut PostgresTransaction<'_>) -> QueryResult<T>,
    ) -> DbResult<T> {
        self.migrate()?;
        self.run(Mode::Write(durability), work)
    }

    /// How many other connections with the name of this application use the database.
    pub fn count_others(&self) -> DbResult<u64> {
        self.read(|transaction| {
            let sql = "
                SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()
                    AND application_name = current_setting('application_name')";
            Ok(transaction.query_one(sql, &[])?.try_get::<_, i64>(0)?.unsigned_abs())
        })
    }

    /// A watch for changes that transactions announce with `notify`.
    pub fn watch(&self, topic: &str) -> DbResult<ChangeWatch> {
        self.migrate()?;
        let Inner { pool, listener, .. } = &*self.inner;
        Ok(ChangeWatch::of_topic(listener.watch(topic, pool.connector(), self.runtime()?)))
    }

    /// The messages that transactions send with `send_message`, from now on.
    pub fn messages(&self, topic: &str) -> DbResult<TopicMessages> {
        self.migrate()?;
        let Inner { pool, listener, .. } = &*self.inner;
        Ok(listener.messages(topic, pool.connector(), self.runtime()?))
    }

    fn runtime(&self) -> DbResult<&Runtime> {
        let stopped = || explain(self.server(), QueryError::NoAnswer);
        self.inner.pool.runtime().ok_or_else(stopped)
    }

    pub(super) fn migrations(&self) -> &'static [PostgresMigrations] {
        self.inner.migrations
    }

    pub(super) fn max_connections(&self) -> usize {
        self.inner.pool.connector().options().max_connections
    }

    pub(super) fn newer(&self, NewerSchema { found, known }: NewerSchema) -> DatabaseError {
        DatabaseError::NewerSchema { server: self.server().to_owned(), found, known }
    }

    /// Creates the tables, if that has not been done. Every use does it first.
    pub fn migrate(&self) -> DbResult<()> {
        let Inner { migrations, is_migrated, migrating, .. } = &*self.inner;
        if is_migrated.load(Ordering::Acquire) {
            return Ok(());
        }
        // Before the lock, so that a server that does not answer holds one caller at a time.
        drop(self.inner.pool.take()?);
        let _migrating = migrating.lock();
        if is_migrated.load(Ordering::Acquire) {
            return Ok(());
        }
        let newer = |newer| self.newer(newer);
        let steps_behind =
            |transaction: &mut PostgresTransaction<'_>| migrations::steps_behind(transaction, migrations);
        // A database that is up to date needs no lock.
        if self.run(Mode::Read, steps_behind)?.map_err(newer)? > 0 {
            let migrate =
                |transaction: &mut PostgresTransaction<'_>| migrations::migrate(transaction, migrations);
            self.run(Mode::Write(Durability::PowerCut), migrate)?.map_err(newer)?;
        }
        is_migrated.store(true, Ordering::Release);
        Ok(())
    }

    pub(super) fn run<T>(
        &self,
        mode: Mode,
        mut work: impl FnMut(&mut PostgresTransaction<'_>) -> QueryResult<T>,
    ) -> DbResult<T> {
        let (mut conflicts, mut has_reconnected) = (0, false);
        loop {
            let error = match self.attempt(mode, &mut work) {
                Ok(done) => return Ok(done),
                Err(Failure::Connecting(error)) => return Err(error),
                Err(Failure::Unknown(error)) => return Err(explain(self.server(), error)),
                Err(Failure::RolledBack(error)) => error,
            };
            if error.is_conflict() && conflicts < MAX_CONFLICTS {
                thread::sleep(CONFLICT_PAUSE * 2_u32.pow(conflicts));
                conflicts += 1;
            } else if error.breaks_connection() && !has_reconnected && !matches!(error, QueryError::NoAnswer)
            {
                has_reconnected = true;
            } else {
                return Err(explain(self.server(), error));
            }
        }
    }

    fn attempt<T>(
        &self,
        mode: Mode,
        work: &mut impl FnMut(&mut PostgresTransaction<'_>) -> QueryResult<T>,
    ) -> Result<T, Failure> {
        let pool = &self.inner.pool;
        let mut lent = pool.take().map_err(Failure::Connecting)?;
        let Some(connection) = lent.connection() else {
            return Err(Failure::RolledBack(QueryError::NoAnswer));
        };
        let patience = pool.connector().options().statement_timeout + GRACE;
        let mut transaction = PostgresTransaction::new(connection, mode.begin(), Some(patience));
        let ended = match work(&mut transaction) {
            Err(error) => {
                transaction.roll_back();
                Err(Failure::RolledBack(error))
            }
            Ok(done) if mode == Mode::Read => {
                transaction.roll_back();
                Ok(done)
            }
            Ok(done) => match transaction.commit() {
                Ok(()) => Ok(done),
                Err(error) if error.breaks_connection() => Err(Failure::Unknown(error)),
                Err(error) => Err(Failure::RolledBack(error)),
            },
        };
        if let Err(Failure::RolledBack(error) | Failure::Unknown(error)) = &ended
            && error.breaks_connection()
        {
            lent.discard();
            pool.renew();
        }
        ended
    }
}

#[cfg(test)]
#[path = "migrations_tests.rs"]
mod migrations_tests;
#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
