//! Errors of the database. Every message names the file and says what to do.

use std::io;
use std::path::{Path, PathBuf};

use rusqlite::ErrorCode;
use thiserror::Error;

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
}

impl DatabaseError {
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
