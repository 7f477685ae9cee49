//! The file and its connections. Knows nothing of what is kept in it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use parking_lot::{Mutex, MutexGuard};
use rusqlite::{Connection, ErrorCode, OpenFlags, Transaction, TransactionBehavior};

use crate::error::DatabaseError;
use crate::sqlite::migrations::{Migrations, migrate, user_version};
use crate::sqlite::private_file;

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
pub struct Database {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    /// `None` in memory, where there is only the one connection. Stands before the writer, because fields are dropped in
    /// this order: the last connection that closes moves the log into the database, and one that may only read cannot.
    idle_readers: Option<Mutex<Vec<Connection>>>,
    writer: Mutex<Connection>,
}

/// What a write survives once it has returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// A power cut: the write is on the disk.
    PowerCut,
    /// The end of the process. A power cut may take what was written since the last write of the other kind, or since the
    /// log was last moved into the database; what is left is whole.
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

/// Notices that another connection has changed the database, be it of this process or of another one.
pub struct ChangeWatch {
    path: PathBuf,
    connection: Connection,
    last: Option<i64>,
}

impl ChangeWatch {
    /// Whether something was committed since the last call. The first call says yes. Reads no page of the database.
    pub fn has_changed(&mut self) -> Result<bool, DatabaseError> {
        let version = self
            .connection
            .pragma_query_value(None, "data_version", |row| row.get(0))
            .map_err(|error| DatabaseError::explain(&self.path, error))?;
        Ok(self.last.replace(version) != Some(version))
    }
}

impl Database {
    /// Opens the database at `path`, creates it where there is none, and brings it up to date.
    pub fn open(path: &Path, migrations: &[Migrations]) -> Result<Database, DatabaseError> {
        private_file::create(path)?;
        let writer = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE)
            .and_then(|writer| log_ahead(&writer).map(|()| writer))
            .map_err(|error| DatabaseError::explain(path, error))?;
        Database::over(path, migrations, writer, Some(Mutex::default()))
    }

    /// A database that nobody else sees and that ends with its last clone.
    pub fn in_memory(migrations: &[Migrations]) -> Result<Database, DatabaseError> {
        let path = Path::new(":memory:");
        let writer = Connection::open_in_memory().map_err(|error| DatabaseError::explain(path, error))?;
        Database::over(path, migrations, writer, None)
    }

    fn over(
        path: &Path,
        migrations: &[Migrations],
        mut writer: Connection,
        idle_readers: Option<Mutex<Vec<Connection>>>,
    ) -> Result<Database, DatabaseError> {
        migrate(&mut writer, migrations, path)?;
        let inner = Inner { path: path.to_owned(), idle_readers, writer: Mutex::new(writer) };
        Ok(Database { inner: Arc::new(inner) })
    }

    /// Reads; all that `work` sees is of one moment. `work` must not use the database again.
    pub fn read<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, DatabaseError> {
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

    /// Writes all of what `work` does or, when it fails, nothing. It is on the disk when this returns. `work` must not use the
    /// database again.
    pub fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        self.write_with(Durability::PowerCut, work)
    }

    /// The same, with a choice of what the write survives.
    pub fn write_with<T>(
        &self,
        durability: Durability,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        let mut writer = self.writer();
        writer
            .pragma_update(None, "synchronous", durability.synchronous())
            .map_err(|error| self.explain(error))?;
        // Immediate: a transaction that begins by reading could not wait for another process to finish its own.
        let written =
            writer.transaction_with_behavior(TransactionBehavior::Immediate).and_then(|transaction| {
                let done = work(&transaction)?;
                transaction.commit()?;
                Ok(done)
            });
        written.map_err(|error| self.explain(error))
    }

    /// Brings to the disk what earlier writes have left with the operating system.
    pub fn sync(&self) -> Result<(), DatabaseError> {
        // A commit syncs the whole log. It has to write something, and this writes what is there already.
        self.write(|transaction| {
            let version = user_version(transaction)?;
            transaction.pragma_update(None, "user_version", version)
        })
    }

    /// Moves the log into the database, as far as nobody reads older pages. Waits for nobody.
    pub fn checkpoint(&self) -> Result<(), DatabaseError> {
        let moved = self.writer().query_row("PRAGMA wal_checkpoint(PASSIVE)", [], |_| Ok(()));
        moved.map_err(|error| self.explain(error))
    }

    /// For noticing what others write; `None` in memory, where there are no others.
    pub fn watch(&self) -> Result<Option<ChangeWatch>, DatabaseError> {
        if self.inner.idle_readers.is_none() {
            return Ok(None);
        }
        let connection = connect(&self.inner.path, OpenFlags::SQLITE_OPEN_READ_ONLY)
            .map_err(|error| self.explain(error))?;
        Ok(Some(ChangeWatch { path: self.inner.path.clone(), connection, last: None }))
    }

    /// The connection that writes, for what is no transaction: settings of SQLite. Nothing else is written while it is held.
    pub fn writer(&self) -> MutexGuard<'_, Connection> {
        lock(&self.inner.writer)
    }

    /// An error of SQLite, with the name of this file.
    pub fn explain(&self, error: rusqlite::Error) -> DatabaseError {
        DatabaseError::explain(&self.inner.path, error)
    }
}

/// Someone who panicked with the lock has left no half-done work: their transaction was rolled back on the way out.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock()
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
    // Each write says anew what it has to survive; this is for the steps that make the tables.
    connection.pragma_update(None, "synchronous", Durability::PowerCut.synchronous())?;
    connection.pragma_update(None, "journal_size_limit", LOG_LIMIT)
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

#[cfg(test)]
#[path = "database_tests.rs"]
mod tests;
