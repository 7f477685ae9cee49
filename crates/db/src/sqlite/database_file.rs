//! A database file that is opened when it is first needed.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use crate::error::DatabaseError;
use crate::sqlite::database::Database;
use crate::sqlite::migrations::Migrations;

/// A database that may not be open yet. Cheap to clone; all clones share one [`Database`].
#[derive(Clone)]
pub struct DatabaseFile {
    state: DatabaseFileState,
}

#[derive(Clone)]
enum DatabaseFileState {
    Open(Database),
    OnFirstUse(Arc<OnFirstUse>),
}

struct OnFirstUse {
    path: PathBuf,
    migrations: &'static [Migrations],
    opened: Mutex<Option<Database>>,
}

impl DatabaseFile {
    /// The file at `path`. `migrations` are those of every capability that has tables in it.
    pub fn at(path: impl Into<PathBuf>, migrations: &'static [Migrations]) -> Self {
        let file = OnFirstUse { path: path.into(), migrations, opened: Mutex::default() };
        DatabaseFile { state: DatabaseFileState::OnFirstUse(Arc::new(file)) }
    }

    /// Whether there is a database to read. Creates nothing.
    pub fn exists(&self) -> bool {
        match &self.state {
            DatabaseFileState::Open(_) => true,
            DatabaseFileState::OnFirstUse(file) => file.path.exists(),
        }
    }

    /// The database. The first call opens it, creates it where there is none, and brings it up to date; a call after a failure
    /// tries again.
    pub fn open(&self) -> Result<Database, DatabaseError> {
        let file = match &self.state {
            DatabaseFileState::Open(database) => return Ok(database.clone()),
            DatabaseFileState::OnFirstUse(file) => file,
        };
        let mut opened = file.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(database) = &*opened {
            return Ok(database.clone());
        }
        let database = Database::open(&file.path, file.migrations)?;
        *opened = Some(database.clone());
        Ok(database)
    }
}

impl From<Database> for DatabaseFile {
    fn from(database: Database) -> Self {
        DatabaseFile { state: DatabaseFileState::Open(database) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_created_by_the_first_use_and_opened_once() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        let file = DatabaseFile::at(&path, &[]);
        assert!(!file.exists() && !path.exists());
        let database = file.clone().open().expect("opened");
        assert!(file.exists() && path.exists());
        database.writer().execute_batch("CREATE TEMPORARY TABLE of_this_connection (id)").expect("written");
        file.open().expect("opened").writer().execute_batch("DROP TABLE of_this_connection").expect("the same");
    }
}
