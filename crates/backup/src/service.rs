//! The service, and what its caller says about the databases.

use std::path::{Path, PathBuf};

use hob_db::copy::CopyTable;
use hob_db::postgres::PostgresDatabase;
use hob_db::{DbResult, Migrations};

use crate::error::BackupError;

/// Backs up, restores and copies databases.
pub struct BackupService {
    pub(crate) files: Vec<StateFile>,
    pub(crate) move_unknown: MoveUnknownFn,
}

pub struct BackupOptions {
    /// All data. PostgreSQL has the tables of all of them in one database.
    pub files: Vec<StateFile>,
    pub move_unknown: MoveUnknownFn,
}

/// A SQLite file with data.
pub struct StateFile {
    /// In the home directory, such as `hob.db`.
    pub name: &'static str,
    pub migrations: &'static [Migrations],
    /// What is copied to PostgreSQL and back. Referenced tables come before the tables that reference them.
    pub tables: Vec<CopyTable>,
    /// Whether PostgreSQL has data for this file, without which a copy creates no file; `None`: a copy always creates it.
    pub is_needed: Option<fn(&PostgresDatabase) -> DbResult<bool>>,
    /// Runs after everything was copied to PostgreSQL.
    pub after_copy: Option<fn(&PostgresDatabase) -> DbResult<()>>,
}

/// Moves files of the home directory aside that the restored data does not have, to a path with this ending, and returns that path.
pub type MoveUnknownFn = fn(&StateLocation, &Path, &str) -> Result<Option<PathBuf>, BackupError>;

/// Where data is.
pub enum StateLocation {
    /// The files in a home directory.
    Files(PathBuf),
    Postgres(PostgresDatabase),
}

impl StateLocation {
    /// For messages.
    pub fn name(&self) -> String {
        match self {
            StateLocation::Files(home) => home.display().to_string(),
            StateLocation::Postgres(database) => database.server().to_owned(),
        }
    }
}

impl BackupService {
    pub fn new(BackupOptions { files, move_unknown }: BackupOptions) -> Self {
        BackupService { files, move_unknown }
    }
}
