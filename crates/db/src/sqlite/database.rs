//! The file and its connections.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::change_watch::ChangeWatch;
use crate::error::{DatabaseError, DbResult};
use crate::sqlite::migrations::{Migrations, migrate, user_version};
use crate::sqlite::private_file;

/// How long to wait for the lock of another process.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// Read connections that stay open between uses.
const MAX_IDLE: usize = 4;

/// The write-ahead log is truncated to this size after a burst.
const LOG_LIMIT: i64 = 64 * 1024 * 1024;

/// A database. Cheap to clone; all clones share it.
///
/// There is one connection for writing, and one for each concurrent reader, so that a long report does not block a write. Blocks:
/// asynchronous callers use [`crate::spawn_blocking`].
#[derive(Clone)]
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    /// `None` in memory, where there is one connection. Declared before the writer, because fields are dropped in this order: the
    /// last connection to close moves the log into the database, and a read-only connection cannot.
    idle_readers: Option<Mutex<Vec<Connection>>>,
    writer: Mutex<Connection>,
}

/// What a write survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: the write is on the disk.
    PowerCut,
    /// The end of the process. After a power cut, the last writes may be missing, back to the last write of the other kind or the
    /// last checkpoint. The rest is consistent.
    ProcessEnd,
}

impl Durability {
    /// The value of SQLite's `synchronous`.
    fn synchronous(self) -> &'static str {
        match self {
            Durability::PowerCut => "FULL",
            Durability::ProcessEnd => "NORMAL",
        }
    }
}

impl Database {
    /// Opens the database at `path`, creates it if it does not exist, and migrates it.
    pub fn open(path: &Path, migrations: &[Migrations]) -> DbResult<Database> {
        private_file::create(path)?;
        let writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .and_then(|writer| enable_write_ahead_log(&writer).map(|()| writer))
            .map_err(|error| DatabaseError::explain(path, error))?;
        Database::over(path, migrations, writer, Some(Mutex::default()))
    }

    /// A private database in memory.
    pub fn in_memory(migrations: &[Migrations]) -> DbResult<Database> {
        let path = Path::new(":memory:");
        let writer = Connection::open_in_memory().map_err(|error| DatabaseError::explain(path, error))?;
        Database::over(path, migrations, writer, None)
    }

    fn over(
        path: &Path,
        migrations: &[Migrations],
        mut writer: Connection,
        idle_readers: Option<Mutex<Vec<Connection>>>,
    ) -> DbResult<Database> {
        migrate(&mut writer, migrations, path)?;
        let inner = Inner { path: path.to_owned(), idle_readers, writer: Mutex::new(writer) };
        Ok(Database { inner: Arc::new(inner) })
    }

    /// Its file.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Reads a consistent snapshot. `work` must not use the database again.
    pub fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> DbResult<T> {
        let Some(idle) = &self.inner.idle_readers else {
            return in_snapshot(&self.writer(), work).map_err(|error| self.explain(error));
        };
        let waiting = idle.lock().pop();
        let reader = match waiting {
            Some(reader) => reader,
            None => connect(&self.inner.path, OpenFlags::SQLITE_OPEN_READ_ONLY)
                .map_err(|error| self.explain(error))?,
        };
        let found = in_snapshot(&reader, work);
        let mut idle = idle.lock();
        if idle.len() < MAX_IDLE {
            idle.push(reader);
        }
        found.map_err(|error| self.explain(error))
    }

    /// Runs `work` in a transaction, which is on the disk when this returns. `work` must not use the database again.
    pub fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> DbResult<T> {
        self.write_with(Durability::PowerCut, work)
    }

    /// The same with another durability.
    pub fn write_with<T>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> DbResult<T> {
        let mut writer = self.writer();
        writer
            .pragma_update(None, "synchronous", durability.synchronous())
            .map_err(|error| self.explain(error))?;
        // Immediate, because a transaction that begins with a read cannot wait for another process.
        let written =
            writer.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
                let done = work(&transaction)?;
                transaction.commit()?;
                Ok(done)
            });
        written.map_err(|error| self.explain(error))
    }

    /// Flushes earlier writes to the disk.
    pub fn sync(&self) -> DbResult<()> {
        // A commit syncs the whole log. It must write something, so it writes a value that is already there.
        self.write(|transaction| {
            let version = user_version(transaction)?;
            transaction.pragma_update(None, "user_version", version)
        })
    }

    /// Moves the log into the database, except for pages that are still read. Does not wait.
    pub fn checkpoint(&self) -> DbResult<()> {
        let moved = self.writer().query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        moved.map_err(|error| self.explain(error))
    }

    /// A watch for changes; `None` in memory.
    pub fn watch(&self) -> DbResult<Option<ChangeWatch>> {
        if self.inner.idle_readers.is_none() {
            return Ok(None);
        }
        let connection = connect(&self.inner.path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(|error| self.explain(error))?;
        Ok(Some(ChangeWatch::of_file(self.inner.path.clone(), connection)))
    }

    /// The write connection, for settings of SQLite. No other write runs while it is held.
    pub fn writer(&self) -> MutexGuard<'_, Connection> {
        self.inner.writer.lock()
    }

    /// Adds the path to an error of SQLite.
    pub fn explain(&self, error: rusqlite::Error) -> DatabaseError {
        DatabaseError::explain(&self.inner.path, error)
    }
}

fn in_snapshot<T>(
    connection: &Connection,
    work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
) -> rusqlite::Result<T> {
    let snapshot = connection.unchecked_transaction()?;
    work(&snapshot)
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // Each connection is used by one thread at a time, so SQLite needs no mutex.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    connection.pragma_update(None, "foreign_keys", true)?;
    Ok(connection)
}

/// The write-ahead log lets readers and the writer work concurrently.
fn enable_write_ahead_log(connection: &Connection) -> rusqlite::Result<()> {
    let deadline = Instant::now() + BUSY_TIMEOUT;
    // SQLite does not wait when two processes change the mode at once.
    loop {
        match connection.pragma_update_and_check(None, "journal_mode", "WAL", |_| Ok(())) {
            Err(error) if is_busy(&error) && Instant::now() < deadline => {
                thread::sleep(Duration::from_millis(10));
            }
            switched => break switched?,
        }
    }
    // For the migrations. Each later write sets its own durability.
    connection.pragma_update(None, "synchronous", Durability::PowerCut.synchronous())?;
    connection.pragma_update(None, "journal_size_limit", LOG_LIMIT)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
