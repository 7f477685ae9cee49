//! The file of the memory: opening, writing with retries, and snapshots.

use std::path::Path;
use std::time::Duration;

use hob_core::CollectionSet;
use hob_db::{Database, DatabaseError, DbResult, Durability, Migrations};
use parking_lot::RwLock;
use rusqlite::{Connection, Transaction};

use crate::vector_signs::VectorSigns;

/// The migrations of its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "memory",
    steps: &[
        include_str!("../../../migrations/1_chunks.sql"),
        include_str!("../../../migrations/2_words_by_hand.sql"),
        include_str!("../../../migrations/3_vectors_gone.sql"),
        include_str!("../../../migrations/4_collections.sql"),
        include_str!("../../../migrations/5_documents.sql"),
    ],
    legacy_versions: &[1, 2, 3],
};

/// The page cache of the writer in KiB, for merging the word index.
const WRITER_CACHE_KIB: i64 = 64 * 1024;

/// Retries of a write while another process writes; each waits for seconds.
const TRIES: u32 = 12;

/// The pause after a write, so that another process can write.
const TURN: Duration = Duration::from_millis(1);

/// Holds the signs of all vectors in memory, so all callers share one store.
pub struct SqliteMemoryStore {
    pub(super) database: Database,
    pub(super) codes: RwLock<VectorSigns>,
}

impl SqliteMemoryStore {
    /// Uses an open database, with a larger cache for its writer.
    pub fn new(database: Database) -> DbResult<Self> {
        let resized = database.writer().pragma_update(None, "cache_size", -WRITER_CACHE_KIB);
        resized.map_err(|error| database.explain(error))?;
        Ok(SqliteMemoryStore { database, codes: RwLock::default() })
    }

    /// Opens the memory at `path`, which is created if necessary.
    pub fn open(path: &Path) -> DbResult<Self> {
        Self::new(Database::open(path, &[MIGRATIONS])?)
    }

    /// Opens an existing memory. Creates nothing.
    pub fn find(path: &Path) -> DbResult<Option<Self>> {
        if path.exists() { Self::open(path).map(Some) } else { Ok(None) }
    }

    /// A private memory.
    pub fn in_memory() -> DbResult<Self> {
        Self::new(Database::in_memory(&[MIGRATIONS])?)
    }

    /// Writes, and retries while other processes write.
    pub(super) fn write<T>(
        &self,
        durability: Durability,
        work: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> DbResult<T> {
        retry_when_busy(|| self.database.write_with(durability, &work))
    }
}

/// SQLite has no queue for writers, so a process pauses after each write, and a waiting one retries.
pub(super) fn retry_when_busy<T>(write: impl Fn() -> DbResult<T>) -> DbResult<T> {
    let mut tries = 0;
    loop {
        tries += 1;
        match write() {
            Err(DatabaseError::Busy { .. }) if tries < TRIES => {}
            written => {
                std::thread::sleep(TURN);
                return written;
            }
        }
    }
}

/// The sources of a scope, whose names are the parameter `{scope}`.
pub(super) const SOURCES_IN_SCOPE: &str =
    "SELECT source FROM memory_collection WHERE name IN (SELECT value FROM json_each({scope}))";

/// The names of collections in the form of a parameter: a JSON array, or NULL for all.
pub(super) struct Scope(pub(super) Option<String>);

impl Scope {
    pub(super) fn of(collections: &CollectionSet) -> Self {
        Scope(collections.names().map(|names| serde_json::json!(names).to_string()))
    }

    /// The condition that `source` is in the scope, which is the parameter `parameter`.
    pub(super) fn condition(&self, source: &str, parameter: &str) -> String {
        match self.0 {
            Some(_) => format!("{source} IN ({})", SOURCES_IN_SCOPE.replace("{scope}", parameter)),
            // The parameter is used in any case.
            None => format!("{parameter} IS NULL"),
        }
    }
}

pub(super) struct SqliteSnapshot<'a> {
    pub(super) connection: &'a Connection,
    pub(super) database: &'a Database,
    pub(super) codes: &'a RwLock<VectorSigns>,
    pub(super) scope: Scope,
}

impl SqliteSnapshot<'_> {
    pub(super) fn explained<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> DbResult<T> {
        work(self.connection).map_err(|error| self.database.explain(error))
    }
}
