//! Why a backup, a restore or a copy failed.

use std::io;
use std::path::PathBuf;

use hob_db::DatabaseError;
use hob_db::copy::CopyError;
use thiserror::Error;

#[derive(Debug, Error)]
pub enum BackupError {
    #[error("the file {} already exists. Use another name.", path.display())]
    Exists { path: PathBuf },

    #[error("cannot write {}", path.display())]
    Write { path: PathBuf, source: io::Error },

    #[error("cannot read {}", path.display())]
    Read { path: PathBuf, source: io::Error },

    #[error("{} is not a backup of Hob, or it is incomplete. Use a file that 'hob backup' wrote.", path.display())]
    NotABackup { path: PathBuf },

    #[error("the backup {} is damaged: {what}. Nothing was changed. Use another backup.", path.display())]
    Damaged { path: PathBuf, what: String },

    #[error("the backup {} was written by a newer Hob ({hob}). Update Hob, and try again.", path.display())]
    Newer { path: PathBuf, hob: String },

    #[error("{name} already has data. Add --force to replace it; the old data is kept.")]
    Occupied { name: String },

    #[error("another restore is running in {}. Wait until it has ended, and try again.", directory.display())]
    RestoreRuns { directory: PathBuf },

    #[error(transparent)]
    Copy(#[from] StateCopyError),

    #[error(transparent)]
    Database(#[from] DatabaseError),
}

#[derive(Debug, Error)]
pub enum StateCopyError {
    #[error(transparent)]
    Copy(#[from] CopyError),

    #[error(transparent)]
    Database(#[from] DatabaseError),

    #[error("there is nothing to copy: {} has no database of Hob", path.display())]
    NothingThere { path: PathBuf },

    #[error(
        "source and target must be different kinds: one in files, one in PostgreSQL. To copy files, use 'hob backup'."
    )]
    SameKind,

    #[error("the file {} is in use. Stop the Hob server and all other programs that use it, and try again.", path.display())]
    FileInUse { path: PathBuf },

    #[error(
        "{connections} other connections of Hob use the database at {server}. Stop all Hob servers and commands that use it, and try \
         again."
    )]
    ServerInUse { server: String, connections: u64 },
}
