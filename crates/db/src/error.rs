//! Errors of the database. Every message names the file or the server and says what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

use crate::disk_fault::DiskFault;
use crate::postgres::QueryError;

/// What a call to a database returns.
pub type DbResult<T> = Result<T, DatabaseError>;

#[derive(Debug, Error)]
pub enum DatabaseError {
    #[error("cannot create the directory {}", path.display())]
    Directory { path: PathBuf, source: io::Error },

    #[error("cannot create the database {}", path.display())]
    Create { path: PathBuf, source: io::Error },

    #[error("cannot open the database {}. It must be a file that you may read and write.", path.display())]
    Open { path: PathBuf, source: rusqlite::Error },

    #[error(
        "the database {} was written by a newer Hob: its version is {found}, and this Hob supports versions up to {known}. \
         Update Hob, or set HOB_HOME to another directory.",
        path.display()
    )]
    Newer { path: PathBuf, found: i64, known: i64 },

    #[error(
        "the file {0} is damaged or is not a Hob database. Stop Hob and move it away with its -wal and -shm files; Hob then \
         creates a new one. 'sqlite3 {0} .recover' shows what can still be read.",
        path.display()
    )]
    Damaged { path: PathBuf, source: rusqlite::Error },

    #[error("the database {} is locked by another process. Wait until it is done, or stop it.", path.display())]
    Busy { path: PathBuf, source: rusqlite::Error },

    #[error("there is no space left for the database {}. Free some space on its disk.", path.display())]
    Full { path: PathBuf, source: rusqlite::Error },

    #[error(
        "the database {} cannot be written. Check the permissions of the file and its directory, and whether the disk is \
         mounted read-only.",
        path.display()
    )]
    ReadOnly { path: PathBuf, source: rusqlite::Error },

    #[error("the database {} failed ({source}). Run 'hob doctor' to check it.", path.display())]
    Failed { path: PathBuf, source: rusqlite::Error },

    #[error("cannot read the password of the database from {}", path.display())]
    PasswordFile { path: PathBuf, source: io::Error },

    #[error(
        "cannot set up TLS for PostgreSQL at {server} ({source}). Check sslmode and sslrootcert in the URL of the database."
    )]
    Tls { server: String, source: io::Error },

    #[error("cannot start the thread for PostgreSQL at {server}")]
    ClientThread { server: String, source: io::Error },

    #[error(
        "PostgreSQL at {server} cannot be reached ({source}). Hob tries again by itself; check that the server runs and that its \
         address is right."
    )]
    Unreachable { server: String, source: Box<QueryError> },

    #[error(
        "PostgreSQL at {server} refused the login ({source}). Check the user, the password and the name of the database in the \
         setting database.url."
    )]
    LoginRefused { server: String, source: Box<QueryError> },

    #[error(
        "all {max} connections to PostgreSQL at {server} are in use. Try again; if this happens often, raise database.max_connections."
    )]
    NoConnection { server: String, max: usize },

    #[error("PostgreSQL at {server} is overloaded or blocked ({source}). Try again later.")]
    Overloaded { server: String, source: Box<QueryError> },

    #[error("PostgreSQL at {server} has no space left ({source}). Free some space on its disk.")]
    ServerFull { server: String, source: Box<QueryError> },

    #[error(
        "PostgreSQL at {server} is read-only ({source}). If it is a standby, name all servers in database.url, so that Hob finds the \
         primary; else allow changes again."
    )]
    Standby { server: String, source: Box<QueryError> },

    #[error(
        "the database at {server} was changed by a newer Hob: its version is {found}, and this Hob supports versions up to {known}. \
         Update Hob, or use another database."
    )]
    NewerSchema { server: String, found: i64, known: i64 },

    #[error(
        "PostgreSQL at {server} cannot use {product} ({source}). Install {product} on the server, and run 'CREATE EXTENSION \
         {extension}' in the database as a superuser; if an old version is there, run 'ALTER EXTENSION {extension} UPDATE'."
    )]
    NeedsExtension { server: String, product: &'static str, extension: &'static str, source: Box<QueryError> },

    #[error("the database at {server} failed ({source}). Run 'hob doctor' to check it.")]
    QueryFailed { server: String, source: Box<QueryError> },
}

impl DatabaseError {
    /// Whether the same call may work later without a change by the user: the server is down, busy or full.
    pub fn is_temporary(&self) -> bool {
        match self {
            DatabaseError::Busy { .. }
            | DatabaseError::Full { .. }
            | DatabaseError::Unreachable { .. }
            | DatabaseError::NoConnection { .. }
            | DatabaseError::Overloaded { .. }
            | DatabaseError::ServerFull { .. }
            | DatabaseError::Standby { .. } => true,
            DatabaseError::Directory { .. }
            | DatabaseError::Create { .. }
            | DatabaseError::Open { .. }
            | DatabaseError::Newer { .. }
            | DatabaseError::Damaged { .. }
            | DatabaseError::ReadOnly { .. }
            | DatabaseError::Failed { .. }
            | DatabaseError::PasswordFile { .. }
            | DatabaseError::Tls { .. }
            | DatabaseError::ClientThread { .. }
            | DatabaseError::LoginRefused { .. }
            | DatabaseError::NewerSchema { .. }
            | DatabaseError::NeedsExtension { .. }
            | DatabaseError::QueryFailed { .. } => false,
        }
    }

    /// What is wrong with the disk, if that is the reason.
    pub fn disk_fault(&self) -> Option<DiskFault> {
        match self {
            DatabaseError::Full { .. } | DatabaseError::ServerFull { .. } => Some(DiskFault::Full),
            DatabaseError::ReadOnly { .. } => Some(DiskFault::ReadOnly),
            DatabaseError::Directory { source, .. } | DatabaseError::Create { source, .. } => {
                DiskFault::of_io(source)
            }
            DatabaseError::Open { .. }
            | DatabaseError::Newer { .. }
            | DatabaseError::Damaged { .. }
            | DatabaseError::Busy { .. }
            | DatabaseError::Failed { .. }
            | DatabaseError::PasswordFile { .. }
            | DatabaseError::Tls { .. }
            | DatabaseError::ClientThread { .. }
            | DatabaseError::Unreachable { .. }
            | DatabaseError::LoginRefused { .. }
            | DatabaseError::NoConnection { .. }
            | DatabaseError::Overloaded { .. }
            | DatabaseError::Standby { .. }
            | DatabaseError::NewerSchema { .. }
            | DatabaseError::NeedsExtension { .. }
            | DatabaseError::QueryFailed { .. } => None,
        }
    }

    /// Converts an error of SQLite.
    pub fn explain(path: &Path, source: rusqlite::Error) -> Self {
        let code = source.sqlite_error_code();
        // SQLite names a full disk only where a write to the database or its log fails: a sync or a new file has another error.
        let fault = match code {
            Some(ErrorCode::DiskFull) => Some(DiskFault::Full),
            Some(ErrorCode::ReadOnly) => Some(DiskFault::ReadOnly),
            Some(ErrorCode::SystemIoFailure | ErrorCode::CannotOpen) => DiskFault::of_disk(path),
            _ => None,
        };
        let path = path.to_owned();
        match fault {
            Some(DiskFault::Full) => return DatabaseError::Full { path, source },
            Some(DiskFault::ReadOnly) => return DatabaseError::ReadOnly { path, source },
            None => {}
        }
        match code {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                DatabaseError::Damaged { path, source }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DatabaseError::Busy { path, source },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => DatabaseError::Open { path, source },
            _ => DatabaseError::Failed { path, source },
        }
    }
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    fn explained(code: i32) -> DatabaseError {
        let directory = tempfile::tempdir().expect("a directory");
        let source = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
        DatabaseError::explain(&directory.path().join("hob.db"), source)
    }

    #[test]
    fn an_error_of_sqlite_names_the_fault_of_the_disk_and_no_other() {
        assert_eq!(explained(ffi::SQLITE_FULL).disk_fault(), Some(DiskFault::Full));
        assert_eq!(explained(ffi::SQLITE_READONLY).disk_fault(), Some(DiskFault::ReadOnly));
        // The disk of the test has space.
        let failed = explained(ffi::SQLITE_IOERR_WRITE);
        assert!(matches!(failed, DatabaseError::Failed { .. }), "{failed:?}");
        assert_eq!(failed.disk_fault(), None);
        let closed = explained(ffi::SQLITE_CANTOPEN);
        assert!(matches!(closed, DatabaseError::Open { .. }), "{closed:?}");
    }
}
