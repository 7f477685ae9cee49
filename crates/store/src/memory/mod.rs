//! The memory's database: sources, their chunks, and the ways to find a chunk again.
//!
//! | file | what |
//! |---|---|
//! | `sources` | what is known of which file; a file's chunks come and go as a whole |
//! | `query` | any text as a question for the index of words |
//! | `plan` | which part of a question to ask, so that common words cost nothing |
//! | `words` | chunks by their words |
//! | `quantise` | a vector in a quarter of its size, and its signs |
//! | `codes` | the signs of all vectors, in memory, searched at once |
//! | `vectors` | chunks by their meaning |
//! | `passages` | chunks as people read them, with the words that were found |
//! | `figures` | how much there is |
//!
//! Knows nothing of files, of embedding models or of ranking lists against each other. Everything blocks.

mod codes;
mod figures;
mod passages;
mod plan;
mod quantise;
mod query;
mod sources;
mod vectors;
mod words;

use std::path::Path;
use std::sync::{Arc, RwLock};
use std::time::Duration;

use rusqlite::{Connection, Transaction};

pub use figures::MemoryFigures;
pub use passages::StoredPassage;
pub use query::WordQuery;
pub use sources::{Forgotten, NewChunk, NewSource, Stamp};
pub use vectors::{ChunkText, NewVector};

use crate::error::StoreError;
use crate::migrations::Schema;
use crate::store::{Durability, Store};
use codes::Codes;

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

/// The memory in a store. Cheap to clone; all clones are the same one.
#[derive(Clone)]
pub struct MemoryStore {
    store: Store,
    codes: Arc<RwLock<Codes>>,
}

impl MemoryStore {
    /// Opens the memory at `path`, and creates it where there is none.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let store = Store::open(path, Schema::MEMORY)?;
        let writer = store.writer();
        writer
            .pragma_update(None, "cache_size", -WRITER_CACHE_KIB)
            .map_err(|error| StoreError::explain(path, error))?;
        drop(writer);
        Ok(MemoryStore { store, codes: Arc::default() })
    }

    /// The same where there is one already; creates nothing.
    pub fn find(path: &Path) -> Result<Option<Self>, StoreError> {
        if path.exists() { Self::open(path).map(Some) } else { Ok(None) }
    }

    /// One that nobody else sees and that ends with its last clone.
    pub fn in_memory() -> Result<Self, StoreError> {
        Ok(MemoryStore { store: Store::in_memory(Schema::MEMORY)?, codes: Arc::default() })
    }

    /// Runs `work` on the memory as it is at one moment: what is found in it can also be read, whatever others write meanwhile.
    /// `work` must not use the store itself.
    pub fn snapshot<T>(
        &self,
        work: impl FnOnce(&Snapshot<'_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.store
            .read(|connection| Ok(work(&Snapshot { connection, store: &self.store, codes: &self.codes })))?
    }

    /// Brings to the disk what was indexed: until then a power cut may take it.
    pub fn sync(&self) -> Result<(), StoreError> {
        stubborn(|| self.store.sync())
    }

    /// Writes when other processes that index let us.
    fn write<T>(
        &self,
        durability: Durability,
        work: impl Fn(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        stubborn(|| self.store.write_with(durability, &work))
    }
}

/// SQLite has no queue for writers, so whoever writes again and again has to leave room, and whoever waits has to be stubborn.
fn stubborn<T>(write: impl Fn() -> Result<T, StoreError>) -> Result<T, StoreError> {
    let mut tries = 0;
    loop {
        tries += 1;
        match write() {
            Err(StoreError::Busy { .. }) if tries < TRIES => {}
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
    store: &'a Store,
    codes: &'a RwLock<Codes>,
}

impl Snapshot<'_> {
    fn explained<T>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> Result<T, StoreError> {
        work(self.connection).map_err(|error| self.store.explain(error))
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
