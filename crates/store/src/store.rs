//! The file and its connections. Knows nothing of what is kept in it.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::error::StoreError;
use crate::migrations::{Schema, migrate};
use crate::private_file;

/// How long to wait for another process to let go of the file.
const PATIENCE: Duration = Duration::from_secs(5);

/// Connections for reading that are kept open between uses.
const MOST_IDLE: usize = 4;

/// The write-ahead log is cut back to this many bytes after a burst.
const LOG_LIMIT: i64 = 64 * 1024 * 1024;

/// The database. Cheap to clone; all clones are the same one.
///
/// There is one connection for writing and as many for reading as are in use at once, so that a long report holds up no
/// record. Blocks while it works: asynchronous callers use `spawn_blocking`.
#[derive(Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    writer: Mutex<Connection>,
    /// `None` in memory, where there is only the one connection.
    idle_readers: Option<Mutex<Vec<Connection>>>,
}

impl Store {
    /// Opens the database at `path`, creates it where there is none, and brings it up to date.
    pub fn open(path: &Path, schema: Schema) -> Result<Store, StoreError> {
        private_file::create(path)?;
        let writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .and_then(|writer| log_ahead(&writer).map(|()| writer))
            .map_err(|error| StoreError::explain(path, error))?;
        Store::over(path, schema, writer, Some(Mutex::default()))
    }

    /// A database that nobody else sees and that ends with its last clone.
    pub fn in_memory(schema: Schema) -> Result<Store, StoreError> {
        let path = Path::new(":memory:");
        let writer = Connection::open_in_memory().map_err(|error| StoreError::explain(path, error))?;
        Store::over(path, schema, writer, None)
    }

    fn over(
        path: &Path,
        schema: Schema,
        mut writer: Connection,
        idle_readers: Option<Mutex<Vec<Connection>>>,
    ) -> Result<Store, StoreError> {
        migrate(&mut writer, schema, path)?;
        let inner = Inner { path: path.to_owned(), writer: Mutex::new(writer), idle_readers };
        Ok(Store { inner: Arc::new(inner) })
    }

    /// Reads; all that `work` sees is of one moment. `work` must not use the store again.
    pub(crate) fn read<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let Some(idle) = &self.inner.idle_readers else {
            return at_one_moment(&self.writer(), work).map_err(|error| self.explain(error));
        };
        let waiting = lock(idle).pop();
        let reader = match waiting {
            Some(reader) => reader,
            None => connect(&self.inner.path, OpenFlags::SQLITE_OPEN_READ_ONLY)
                .map_err(|error| self.explain(error))?,
        };
        let found = at_one_moment(&reader, work);
        let mut idle = lock(idle);
        if idle.len() < MOST_IDLE {
            idle.push(reader);
        }
        found.map_err(|error| self.explain(error))
    }

    /// Writes all of what `work` does or, when it fails, nothing. `work` must not use the store again.
    pub(crate) fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        let mut writer = self.writer();
        // Immediate: a transaction that begins by reading could not wait for another process to finish its own.
        let written =
            writer.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
                let done = work(&transaction)?;
                transaction.commit()?;
                Ok(done)
            });
        written.map_err(|error| self.explain(error))
    }

    pub(crate) fn writer(&self) -> MutexGuard<'_, Connection> {
        lock(&self.inner.writer)
    }

    fn explain(&self, error: rusqlite::Error) -> StoreError {
        StoreError::explain(&self.inner.path, error)
    }
}

/// Someone who panicked with the lock has left no half-done work: their transaction was rolled back on the way out.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn at_one_moment<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let snapshot = connection.unchecked_transaction()?;
    work(&snapshot)
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, which spares SQLite its own locking.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(PATIENCE)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// Writes go to a log first, so that readers and the writer do not wait for each other.
fn log_ahead(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + PATIENCE;
    // SQLite does not wait by itself when two processes make this change at once.
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(10));
            }
            switched => break switched?,
        }
    }
    // What was committed survives the end of the process; a power cut may take the last moments, never more.
    connection.pragma_update(None, "synchronous", "NORMAL")?;
    connection.pragma_update(None, "journal_size_limit", LOG_LIMIT)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
