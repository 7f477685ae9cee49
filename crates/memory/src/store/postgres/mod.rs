//! The memory in PostgreSQL.
//!
//! | file | what |
//! |---|---|
//! | `memory_database` | the store and its snapshots |
//! | `sources` | files and their chunks |
//! | `catalog` | lists of documents, skipped files and folders |
//! | `tokenizer` | the words of a text |
//! | `word_vector` | words in the binary form of the server |
//! | `words` | word search |
//! | `vectors` | vector search with pgvector |
//! | `passages` | the text of chunks with marked words |
//! | `size` | counts, sizes and checks |

mod catalog;
mod memory_database;
mod passages;
mod size;
mod sources;
mod tokenizer;
mod vectors;
mod word_vector;
mod words;

use std::collections::HashMap;
use std::time::SystemTime;

use hob_core::{CollectionName, CollectionSet};
use hob_db::{DatabaseError, Durability};

use super::{
    ChunkHit, ChunkText, MemorySize, MemorySnapshot, MemoryStore, NewSource, NewVector, RemovedSources,
    SnapshotWork, SourceStamp, StoredPassage,
};
use crate::word_query::WordQuery;
use memory_database::{PostgresSnapshot, Scope};

pub(super) use sources::add_words;
pub(super) use vectors::create_table as create_vector_table;

pub use memory_database::{POSTGRES_MIGRATIONS, PostgresMemoryStore};

impl MemoryStore for PostgresMemoryStore {
    fn known_below(&self, path: &str) -> Result<HashMap<String, SourceStamp>, DatabaseError> {
        sources::known_below(self, path)
    }

    fn replace(&self, sources: &[NewSource], now: SystemTime) -> Result<(), DatabaseError> {
        sources::replace(self, Durability::ProcessEnd, sources, now)
    }

    fn save(&self, source: &NewSource, now: SystemTime) -> Result<(), DatabaseError> {
        sources::replace(self, Durability::PowerCut, std::slice::from_ref(source), now)
    }

    fn restamp(&self, stamps: &[(String, SourceStamp)]) -> Result<(), DatabaseError> {
        sources::restamp(self, stamps)
    }

    fn add_to_collection(&self, collection: &CollectionName, paths: &[String]) -> Result<(), DatabaseError> {
        sources::add_to_collection(self, collection, paths)
    }

    fn remove(&self, paths: &[String]) -> Result<RemovedSources, DatabaseError> {
        sources::remove(self, paths)
    }

    fn remove_from_collection(
        &self,
        collection: &CollectionName,
        paths: &[String],
    ) -> Result<RemovedSources, DatabaseError> {
        sources::remove_from_collection(self, collection, paths)
    }

    fn paths_below(
        &self,
        path: &str,
        collections: &CollectionSet,
        count: usize,
    ) -> Result<Vec<String>, DatabaseError> {
        sources::paths_below(self, path, &Scope::of(collections), count)
    }

    fn without_vector(&self, model: &str, after: i64, count: usize) -> Result<Vec<ChunkText>, DatabaseError> {
        vectors::without_vector(self, model, after, count)
    }

    fn count_without_vector(&self, model: &str) -> Result<u64, DatabaseError> {
        vectors::count_without_vector(self, model)
    }

    fn has_vectors(&self) -> Result<bool, DatabaseError> {
        vectors::has_vectors(self)
    }

    fn add_vectors(&self, model: &str, vectors: &[NewVector]) -> Result<(), DatabaseError> {
        vectors::add_vectors(self, model, vectors)
    }

    fn size_of(&self, collections: &CollectionSet) -> Result<MemorySize, DatabaseError> {
        size::size(self, &Scope::of(collections))
    }

    fn check(&self) -> Result<(), DatabaseError> {
        size::check(self)
    }

    fn sync(&self) -> Result<(), DatabaseError> {
        size::sync(self)?;
        vectors::build_indexes(self)
    }

    fn snapshot_of(&self, collections: &CollectionSet, work: SnapshotWork<'_>) -> Result<(), DatabaseError> {
        self.with_snapshot(collections, work)
    }
}

impl MemorySnapshot for PostgresSnapshot<'_, '_> {
    fn find_words(&self, query: &WordQuery, count: usize) -> Result<Vec<ChunkHit>, DatabaseError> {
        words::find_words(self, query, count)
    }

    fn word_shares(&self, query: &WordQuery, hits: &[ChunkHit]) -> Result<Vec<f64>, DatabaseError> {
        words::word_shares(self, query, hits)
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
mod postgres_tests;
