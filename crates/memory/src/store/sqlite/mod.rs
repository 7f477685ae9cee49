//! The memory in a SQLite file.
//!
//! | file | what |
//! |---|---|
//! | `sources` | files and their chunks |
//! | `words` | word search |
//! | `vectors` | vector search |
//! | `passages` | the text of chunks with marked words |
//! | `size` | counts and sizes |

mod passages;
mod size;
mod sources;
mod vectors;
mod words;

use std::collections::HashMap;
use std::path::Path;
use std::time::{Duration, SystemTime};

use hob_db::{Database, DatabaseError, Durability, Migrations};
use parking_lot::RwLock;
use rusqlite::{Connection, Transaction};

use super::{
    ChunkHit, ChunkText, MemorySize, MemorySnapshot, MemoryStore, NewSource, NewVector, RemovedSources,
    SnapshotWork, SourceStamp, StoredPassage,
};
use crate::vector_codes::VectorCodes;
use crate::word_query::WordQuery;

/// The migrations of its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "memory",
    steps: &[
        include_str!("../../../migrations/1_chunks.sql"),
        include_str!("../../../migrations/2_words_by_hand.sql"),
        include_str!("../../../migrations/3_vectors_gone.sql"),
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
    database: Database,
    codes: RwLock<VectorCodes>,
}

impl SqliteMemoryStore {
    /// Uses an open database, with a larger cache for its writer.
    pub fn new(database: Database) -> Result<Self, DatabaseError> {
        let resized = database.writer().pragma_update(None, "cache_size", -WRITER_CACHE_KIB);
        resized.map_err(|error| database.explain(error))?;
        Ok(SqliteMemoryStore { database, codes: RwLock::default() })
    }

    /// Opens the memory at `path`, which is created if necessary.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Self::new(Database::open(path, &[MIGRATIONS])?)
    }

    /// Opens an existing memory. Creates nothing.
    pub fn find(path: &Path) -> Result<Option<Self>, DatabaseError> {
        if path.exists() { Self::open(path).map(Some) } else { Ok(None) }
    }

    /// A private memory.
    pub fn in_memory() -> Result<Self, DatabaseError> {
        Self::new(Database::in_memory(&[MIGRATIONS])?)
    }

    /// Writes, and retries while other processes write.
    fn write<T>(
        &self,
        durability: Durability,
        work: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        retry_when_busy(|| self.database.write_with(durability, &work))
    }
}

/// SQLite has no queue for writers, so a process pauses after each write, and a waiting one retries.
fn retry_when_busy<T>(write: impl Fn() -> Result<T, DatabaseError>) -> Result<T, DatabaseError> {
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

impl MemoryStore for SqliteMemoryStore {
    fn known_below(&self, path: &str) -> Result<HashMap<String, SourceStamp>, DatabaseError> {
        sources::known_below(self, path)
    }

    fn replace(&self, sources: &[NewSource], now: SystemTime) -> Result<(), DatabaseError> {
        sources::replace(self, sources, now)
    }

    fn save(&self, source: &NewSource, now: SystemTime) -> Result<(), DatabaseError> {
        sources::save(self, source, now)
    }

    fn restamp(&self, stamps: &[(String, SourceStamp)]) -> Result<(), DatabaseError> {
        sources::restamp(self, stamps)
    }

    fn remove(&self, paths: &[String]) -> Result<RemovedSources, DatabaseError> {
        sources::remove(self, paths)
    }

    fn paths_below(&self, path: &str, count: usize) -> Result<Vec<String>, DatabaseError> {
        sources::paths_below(self, path, count)
    }

    fn without_vector(&self, model: &str, after: i64, count: usize) -> Result<Vec<ChunkText>, DatabaseError> {
        vectors::without_vector(self, model, after, count)
    }

    fn count_without_vector(&self, model: &str) -> Result<u64, DatabaseError> {
        vectors::count_without_vector(self, model)
    }

    fn add_vectors(&self, model: &str, vectors: &[NewVector]) -> Result<(), DatabaseError> {
        vectors::add_vectors(self, model, vectors)
    }

    fn size(&self) -> Result<MemorySize, DatabaseError> {
        size::size(self)
    }

    fn check(&self) -> Result<(), DatabaseError> {
        size::check(self)
    }

    fn sync(&self) -> Result<(), DatabaseError> {
        retry_when_busy(|| self.database.sync())
    }

    fn snapshot(&self, work: SnapshotWork<'_>) -> Result<(), DatabaseError> {
        self.database.read(|connection| {
            Ok(work(&SqliteSnapshot { connection, database: &self.database, codes: &self.codes }))
        })?
    }
}

struct SqliteSnapshot<'a> {
    connection: &'a Connection,
    database: &'a Database,
    codes: &'a RwLock<VectorCodes>,
}

impl SqliteSnapshot<'_> {
    fn explained<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        work(self.connection).map_err(|error| self.database.explain(error))
    }
}

impl MemorySnapshot for SqliteSnapshot<'_> {
    fn find_words(&self, query: &WordQuery, count: usize) -> Result<Vec<ChunkHit>, DatabaseError> {
        words::find_words(self, query, count)
    }

    fn covering(
        &self,
        query: &WordQuery,
        hits: &[ChunkHit],
        share: f64,
    ) -> Result<Vec<ChunkHit>, DatabaseError> {
        words::covering(self, query, hits, share)
    }

    fn find_vectors(
        &self,
        model: &str,
        vector: &[f32],
        count: usize,
    ) -> Result<Option<Vec<ChunkHit>>, DatabaseError> {
        vectors::find_vectors(self, model, vector, count)
    }

    fn passages(
        &self,
        chunks: &[i64],
        query: Option<&WordQuery>,
    ) -> Result<Vec<StoredPassage>, DatabaseError> {
        passages::passages(self, chunks, query)
    }
}

#[cfg(test)]
mod sqlite_tests;
