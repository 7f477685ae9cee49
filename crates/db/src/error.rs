//! Errors of the database. Every message names the file or the server and says what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

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

    /// Converts an error of SQLite.
    pub fn explain(path: &Path, source: rusqlite::Error) -> Self {
        let path = path.to_owned();
        match source.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => {
                DatabaseError::Damaged { path, source }
            }
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => DatabaseError::Busy { path, source },
            Some(ErrorCode::DiskFull) => DatabaseError::Full { path, source },
            Some(ErrorCode::ReadOnly) => DatabaseError::ReadOnly { path, source },
            Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => DatabaseError::Open { path, source },
            _ => DatabaseError::Failed { path, source },
        }
    }
}
