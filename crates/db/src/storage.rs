//! The database that a capability uses: a file, or a server.

use crate::postgres::PostgresDatabase;
use crate::{Database, LazyDatabase};

/// SQLite or PostgreSQL. Cheap to clone. A capability makes its store from it.
#[derive(Clone)]
pub enum Storage {
    Sqlite(LazyDatabase),
    Postgres(PostgresDatabase),
}

impl Storage {
    /// Whether there may be anything to read. Creates nothing, and asks no server.
    pub fn exists(&self) -> bool {
        match self {
            Storage::Sqlite(database) => database.exists(),
            Storage::Postgres(_) => true,
        }
    }
}

impl From<LazyDatabase> for Storage {
    fn from(database: LazyDatabase) -> Self {
        Storage::Sqlite(database)
    }
}

impl From<Database> for Storage {
    fn from(database: Database) -> Self {
        Storage::Sqlite(database.into())
    }
}

impl From<PostgresDatabase> for Storage {
    fn from(database: PostgresDatabase) -> Self {
        Storage::Postgres(database)
    }
}
