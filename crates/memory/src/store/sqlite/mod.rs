//! The memory in a SQLite file.
//!
//! | file | what |
//! |---|---|
//! | `memory_file` | opening, writing with retries, snapshots |
//! | `sources` | files and their chunks |
//! | `catalog` | lists of documents, skipped files and folders |
//! | `words` | word search |
//! | `small_collection` | word search in few chunks among many others |
//! | `vectors` | vector search |
//! | `passages` | the text of chunks with marked words |
//! | `size` | counts and sizes |

mod catalog;
mod memory_file;
mod passages;
mod size;
mod small_collection;
mod sources;
mod vectors;
mod words;

use std::collections::HashMap;
use std::time::SystemTime;

use hob_core::{CollectionName, CollectionSet};
use hob_db::DbResult;

use super::{
    ChunkHit, ChunkText, MemorySize, MemorySnapshot, MemoryStore, NewSource, NewVector, RemovedSources,
    SnapshotWork, SourceScope, SourceStamp, StoredPassage,
};
use crate::word_query::WordQuery;
use memory_file::{Scope, SqliteSnapshot, retry_when_busy};

pub use memory_file::{MIGRATIONS, SqliteMemoryStore};

impl MemoryStore for SqliteMemoryStore {
    fn known_below(&self, path: &str) -> DbResult<HashMap<String, SourceStamp>> {
        sources::known_below(self, path)
    }

    fn replace(&self, sources: &[NewSource], now: SystemTime) -> DbResult<()> {
        sources::replace(self, sources, now)
    }

    fn save(&self, source: &NewSource, now: SystemTime) -> DbResult<()> {
        sources::save(self, source, now)
    }

    fn restamp(&self, stamps: &[(String, SourceStamp)]) -> DbResult<()> {
        sources::restamp(self, stamps)
    }

    fn add_to_collection(&self, collection: &CollectionName, paths: &[String]) -> DbResult<()> {
        sources::add_to_collection(self, collection, paths)
    }

    fn remove(&self, paths: &[String]) -> DbResult<RemovedSources> {
        sources::remove(self, paths)
    }

    fn remove_from_collection(
        &self,
        collection: &CollectionName,
        paths: &[String],
    ) -> DbResult<RemovedSources> {
        sources::remove_from_collection(self, collection, paths)
    }

    fn paths_below(&self, path: &str, collections: &CollectionSet, count: usize) -> DbResult<Vec<String>> {
        sources::paths_below(self, path, &Scope::of(collections), count)
    }

    fn without_vector(
        &self,
        sources: &SourceScope,
        model: &str,
        after: i64,
        count: usize,
    ) -> DbResult<Vec<ChunkText>> {
        vectors::without_vector(self, sources, model, (after, count))
    }

    fn count_without_vector(&self, sources: &SourceScope, model: &str) -> DbResult<u64> {
        vectors::count_without_vector(self, sources, model)
    }

    fn has_vectors(&self) -> DbResult<bool> {
        vectors::has_vectors(self)
    }

    fn add_vectors(&self, model: &str, vectors: &[NewVector]) -> DbResult<()> {
        vectors::add_vectors(self, model, vectors)
    }

    fn size_of(&self, collections: &CollectionSet) -> DbResult<MemorySize> {
        size::size(self, &Scope::of(collections))
    }

    fn check(&self) -> DbResult<()> {
        size::check(self)
    }

    fn sync(&self) -> DbResult<()> {
        retry_when_busy(|| self.database.sync())
    }

    fn snapshot_of(&self, collections: &CollectionSet, work: SnapshotWork<'_>) -> DbResult<()> {
        self.database.read(|connection| {
            let scope = Scope::of(collections);
            Ok(work(&SqliteSnapshot { connection, database: &self.database, codes: &self.codes, scope }))
        })?
    }
}

impl MemorySnapshot for SqliteSnapshot<'_> {
    fn find_words(&self, query: &WordQuery, count: usize) -> DbResult<Vec<ChunkHit>> {
        words::find_words(self, query, count)
    }

    fn word_shares(&self, query: &WordQuery, hits: &[ChunkHit]) -> DbResult<Vec<f64>> {
        words::word_shares(self, query, hits)
    }

    fn find_vectors(&self, model: &str, vector: &[f32], count: usize) -> DbResult<Option<Vec<ChunkHit>>> {
        vectors::find_vectors(self, model, vector, count)
    }

    fn passages(&self, chunks: &[i64], query: Option<&WordQuery>) -> DbResult<Vec<StoredPassage>> {
        passages::passages(self, chunks, query)
    }
}

#[cfg(test)]
mod sqlite_tests;
