//! A database that is opened when it is first needed, and then shared.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::{Database, DbResult, Migrations};

/// A database that may not exist yet. Cheap to clone; all clones open it once and share it.
#[derive(Clone)]
pub struct LazyDatabase {
    inner: Arc<Inner>,
}

struct Inner {
    path: PathBuf,
    migrations: &'static [Migrations],
    opened: Mutex<Option<Database>>,
}

impl LazyDatabase {
    /// The database at `path`. Opens and creates nothing.
    pub fn at(path: &Path, migrations: &'static [Migrations]) -> Self {
        LazyDatabase::new(path.to_owned(), migrations, None)
    }

    fn new(path: PathBuf, migrations: &'static [Migrations], opened: Option<Database>) -> Self {
        LazyDatabase { inner: Arc::new(Inner { path, migrations, opened: Mutex::new(opened) }) }
    }

    /// Its file; empty for a private database.
    pub fn path(&self) -> &Path {
        &self.inner.path
    }

    /// Whether there is a database. Creates nothing.
    pub fn exists(&self) -> bool {
        self.opened().is_some() || self.inner.path.exists()
    }

    /// Opens the database, creates it if it does not exist, and migrates it. After a failure, the next call tries again.
    pub fn open(&self) -> DbResult<Database> {
        let mut opened = self.inner.opened.lock();
        if let Some(database) = &*opened {
            return Ok(database.clone());
        }
        let database = Database::open(&self.inner.path, self.inner.migrations)?;
        *opened = Some(database.clone());
        Ok(database)
    }

    /// Opens the database if it exists. Creates nothing.
    pub fn find(&self) -> DbResult<Option<Database>> {
        if self.exists() { self.open().map(Some) } else { Ok(None) }
    }

    fn opened(&self) -> Option<Database> {
        self.inner.opened.lock().clone()
    }
}

impl From<Database> for LazyDatabase {
    fn from(database: Database) -> Self {
        LazyDatabase::new(PathBuf::new(), &[], Some(database))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_created_before_it_is_opened_and_clones_share_it() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("x.db");
        let database = LazyDatabase::at(&path, &[]);
        let clone = database.clone();
        assert!(!database.exists() && database.find().expect("looked").is_none());
        assert!(!path.exists());
        database.open().expect("opened");
        assert!(clone.exists() && clone.find().expect("looked").is_some());
    }

    #[test]
    fn a_database_that_cannot_be_opened_is_tried_again() {
        let home = tempfile::tempdir().expect("a directory");
        let path = home.path().join("x.db");
        std::fs::create_dir(&path).expect("made");
        let database = LazyDatabase::at(&path, &[]);
        assert!(database.open().is_err());
        std::fs::remove_dir(&path).expect("removed");
        assert!(database.open().is_ok());
    }
}
