//! The memory in a SQLite file.
//!
//! | file | what |
//! |---|---|
//! | `sources` | what is known of each file; a file's chunks come and go as a whole |
//! | `words` | chunks by their words |
//! | `vectors` | chunks by their meaning |
//! | `passages` | chunks as people read them, with the words that were found |
//! | `size` | how much there is |

mod passages;
mod size;
mod sources;
mod vectors;
mod words;

use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use hob_db::{Database, DatabaseError, Durability, Migrations};
use rusqlite::{Connection, Transaction};

pub use passages::StoredPassage;
pub use size::MemoryFigures;
pub use sources::{Forgotten, NewChunk, NewSource, Stamp};
pub use vectors::{ChunkText, NewVector};

use crate::vector_codes::Codes;

/// The steps that make its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "memory",
    steps: &[
        include_str!("../../../migrations/1_chunks.sql"),
        include_str!("../../../migrations/2_words_by_hand.sql"),
        include_str!("../../../migrations/3_vectors_gone.sql"),
    ],
    legacy_versions: &[1, 2, 3],
};

/// Pages that the writer keeps in memory, in KiB: the index of words is merged as it grows.
const WRITER_CACHE_KIB: i64 = 64 * 1024;

/// How often a write is tried again when another process is at it; each try waits for seconds by itself.
const TRIES: u32 = 12;

/// How long the lock is left alone after a write, so that another process gets its turn.
const TURN: Duration = Duration::from_millis(1);

/// A chunk that answers a question, and how well: more is better, and only scores of one list compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    pub chunk: i64,
    pub score: f64,
}

/// The memory in a database. Cheap to clone; all clones are the same one.
#[derive(Clone)]
pub struct MemoryStore {
    database: Database,
    codes: Arc<RwLock<Codes>>,
}

impl MemoryStore {
    /// The memory in an open database, which gives its writer more room.
    pub fn new(database: Database) -> Result<Self, DatabaseError> {
        let resized = database.writer().pragma_update(None, "cache_size", -WRITER_CACHE_KIB);
        resized.map_err(|error| database.explain(error))?;
        Ok(MemoryStore { database, codes: Arc::default() })
    }

    /// Opens the memory at `path`, and creates it where there is none.
    pub fn open(path: &Path) -> Result<Self, DatabaseError> {
        Self::new(Database::open(path, &[MIGRATIONS])?)
    }

    /// The same where there is one already; creates nothing.
    pub fn find(path: &Path) -> Result<Option<Self>, DatabaseError> {
        if path.exists() { Self::open(path).map(Some) } else { Ok(None) }
    }

    /// One that nobody else sees and that ends with its last clone.
    pub fn in_memory() -> Result<Self, DatabaseError> {
        Self::new(Database::in_memory(&[MIGRATIONS])?)
    }

    /// Runs `work` on the memory as it is at one moment: what is found in it can also be read, whatever others write meanwhile.
    /// `work` must not use the database itself.
    pub fn snapshot<T>(
        &self,
        work: impl FnOnce(&Snapshot<'_>) -> Result<T, DatabaseError>,
    ) -> Result<T, DatabaseError> {
        self.database.read(|connection| {
            Ok(work(&Snapshot { connection, database: &self.database, codes: &self.codes }))
        })?
    }

    /// Brings to the disk what was indexed: until then a power cut may take it.
    pub fn sync(&self) -> Result<(), DatabaseError> {
        stubborn(|| self.database.sync())
    }

    /// Writes when other processes that index let us.
    fn write<T>(
        &self,
        durability: Durability,
        work: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        stubborn(|| self.database.write_with(durability, &work))
    }
}

/// SQLite has no queue for writers, so whoever writes again and again has to leave room, and whoever waits has to be stubborn.
fn stubborn<T>(write: impl Fn() -> Result<T, DatabaseError>) -> Result<T, DatabaseError> {
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

/// The memory at one moment.
pub struct Snapshot<'a> {
    connection: &'a Connection,
    database: &'a Database,
    codes: &'a RwLock<Codes>,
}

impl Snapshot<'_> {
    fn explained<T>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        work(self.connection).map_err(|error| self.database.explain(error))
    }
}

#[cfg(test)]
#[path = "../tests.rs"]
mod tests;
