//! Stores sources and their chunks, and searches them.
//!
//! Every call blocks. Knows nothing of files, embedding models or rank fusion.

mod catalog;
mod columns;
mod copy;
mod marks;
mod postgres;
mod sqlite;

use std::collections::HashMap;
use std::ops::{AddAssign, Range};
use std::time::SystemTime;

use hob_core::time::Moment;
use hob_core::{CollectionName, CollectionSet};
use hob_db::DbResult;

use crate::types::{CollectionSize, PositionUnit};
use crate::word_query::WordQuery;

pub use catalog::{
    CatalogPage, CatalogPosition, CollectionSummary, DocumentCatalog, DocumentFolder, FolderCheck, NewFolder,
    RecentDocument, SkippedFile, StoredDocument,
};
pub use copy::COPY_TABLES;
pub use postgres::{POSTGRES_MIGRATIONS, PostgresMemoryStore};
pub use sqlite::{MIGRATIONS, SqliteMemoryStore};

/// The chunks of a source are written and deleted in one transaction.
pub trait MemoryStore: DocumentCatalog {
    /// The stamps of `path` and of everything below it, by path.
    fn known_below(&self, path: &str) -> DbResult<HashMap<String, SourceStamp>>;

    /// Saves sources, all or none, each with another path. They replace earlier ones, whose other collections they stay in. A power
    /// cut may lose them before [`Self::sync`].
    fn replace(&self, sources: &[NewSource], now: SystemTime) -> DbResult<()>;

    /// Like [`Self::replace`] with one source, which is on the disk when this returns.
    fn save(&self, source: &NewSource, now: SystemTime) -> DbResult<()>;

    /// Saves new dates and sizes of unchanged files.
    fn restamp(&self, stamps: &[(String, SourceStamp)]) -> DbResult<()>;

    /// Adds known sources to a collection. Paths that are not known are ignored.
    fn add_to_collection(&self, collection: &CollectionName, paths: &[String]) -> DbResult<()>;

    /// Removes sources from all collections.
    fn remove(&self, paths: &[String]) -> DbResult<RemovedSources>;

    /// Removes sources from a collection. Those that are in no other one are deleted.
    fn remove_from_collection(
        &self,
        collection: &CollectionName,
        paths: &[String],
    ) -> DbResult<RemovedSources>;

    /// At most `count` sources of the collections, at `path` or below.
    fn paths_below(&self, path: &str, collections: &CollectionSet, count: usize) -> DbResult<Vec<String>>;

    /// Chunks of the sources without a vector of this model, ordered by id, after `after`.
    fn without_vector(
        &self,
        sources: &SourceScope,
        model: &str,
        after: i64,
        count: usize,
    ) -> DbResult<Vec<ChunkText>>;

    fn count_without_vector(&self, sources: &SourceScope, model: &str) -> DbResult<u64>;

    /// Whether any chunk has a vector.
    fn has_vectors(&self) -> DbResult<bool>;

    /// Sets the vectors of chunks. Deleted chunks are ignored, and a model whose vectors have a new length loses its old ones.
    fn add_vectors(&self, model: &str, vectors: &[NewVector]) -> DbResult<()>;

    /// How much is in the collections.
    fn size_of(&self, collections: &CollectionSet) -> DbResult<MemorySize>;

    /// How much there is.
    fn size(&self) -> DbResult<MemorySize> {
        self.size_of(&CollectionSet::All)
    }

    /// Compares the word index with the chunks, which takes as long as building it. Fails if they differ.
    fn check(&self) -> DbResult<()>;

    /// Flushes the index to the disk, and makes search as fast as it gets. Called after much was written.
    fn sync(&self) -> DbResult<()>;

    /// Calls `work` with a consistent snapshot, in which searches find only chunks of the collections. Calls it again if the connection
    /// to a server broke. `work` must not write through this store.
    fn snapshot_of(&self, collections: &CollectionSet, work: SnapshotWork<'_>) -> DbResult<()>;

    /// A snapshot of all collections.
    fn snapshot(&self, work: SnapshotWork<'_>) -> DbResult<()> {
        self.snapshot_of(&CollectionSet::All, work)
    }

    /// In a new snapshot.
    fn find_words(&self, query: &WordQuery, count: usize) -> DbResult<Vec<ChunkHit>> {
        let mut found = Vec::new();
        self.snapshot(&mut |snapshot| {
            found = snapshot.find_words(query, count)?;
            Ok(())
        })?;
        Ok(found)
    }

    /// In a new snapshot.
    fn find_vectors(&self, model: &str, vector: &[f32], count: usize) -> DbResult<Option<Vec<ChunkHit>>> {
        let mut found = None;
        self.snapshot(&mut |snapshot| {
            found = snapshot.find_vectors(model, vector, count)?;
            Ok(())
        })?;
        Ok(found)
    }

    /// In a new snapshot, where chunks may be missing.
    fn passages(&self, chunks: &[i64], query: Option<&WordQuery>) -> DbResult<Vec<StoredPassage>> {
        let mut passages = Vec::new();
        self.snapshot(&mut |snapshot| {
            passages = snapshot.passages(chunks, query)?;
            Ok(())
        })?;
        Ok(passages)
    }
}

pub type SnapshotWork<'a> = &'a mut dyn FnMut(&dyn MemorySnapshot) -> DbResult<()>;

/// A consistent view of the memory. Collections restrict the searches themselves: all chunks of a small collection in a large
/// memory can be found. In SQLite, the scores by words use the counts of all collections,
/// except in a small collection that is searched by itself.
pub trait MemorySnapshot {
    /// The best chunks by words, at most `count`.
    fn find_words(&self, query: &WordQuery, count: usize) -> DbResult<Vec<ChunkHit>>;

    /// The share of the question's words that each chunk has, from 0 to 1. Rare words count more.
    fn word_shares(&self, query: &WordQuery, hits: &[ChunkHit]) -> DbResult<Vec<f64>>;

    /// The nearest chunks to a vector of this model, at most `count`; `None` if no chunk ever had a vector of it.
    fn find_vectors(&self, model: &str, vector: &[f32], count: usize) -> DbResult<Option<Vec<ChunkHit>>>;

    /// The chunks with these ids, in order, with marked words of the query. Missing chunks are skipped.
    fn passages(&self, chunks: &[i64], query: Option<&WordQuery>) -> DbResult<Vec<StoredPassage>>;
}

/// A found chunk and its score. Scores of different lists are not comparable.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkHit {
    pub chunk: i64,
    pub score: f64,
}

/// Which sources are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceScope {
    Collections(CollectionSet),
    /// The one with this path.
    Path(String),
}

impl SourceScope {
    pub const ALL: SourceScope = SourceScope::Collections(CollectionSet::All);
}

/// Detects whether a file has changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStamp {
    pub hash: [u8; 32],
    /// Nanoseconds since 1970.
    pub modified: i64,
    pub size: u64,
    /// The options of chunking.
    pub recipe: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSource {
    /// It is added to this one.
    pub collection: CollectionName,
    pub path: String,
    pub title: String,
    pub place: PositionUnit,
    pub stamp: SourceStamp,
    pub chunks: Vec<NewChunk>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChunk {
    pub title: String,
    pub text: String,
    pub line: u32,
    pub end_line: u32,
    pub tokens: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovedSources {
    pub sources: u64,
    pub chunks: u64,
}

impl AddAssign for RemovedSources {
    fn add_assign(&mut self, more: Self) {
        self.sources += more.sources;
        self.chunks += more.chunks;
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkText {
    pub chunk: i64,
    pub title: String,
    pub text: String,
}

#[derive(Debug, Clone, PartialEq)]
pub struct NewVector {
    pub chunk: i64,
    pub vector: Vec<f32>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPassage {
    pub chunk: i64,
    pub source: String,
    pub title: String,
    pub text: String,
    /// The index in its source, from 0.
    pub position: u32,
    pub place: PositionUnit,
    pub line: u32,
    pub end_line: u32,
    pub tokens: u32,
    /// Byte ranges of the words of the question.
    pub marks: Vec<Range<usize>>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemorySize {
    /// Sources with text.
    pub sources: u64,
    /// Sources without a file.
    pub notes: u64,
    pub chunks: u64,
    pub tokens: u64,
    /// Bytes of the files with text.
    pub source_bytes: u64,
    /// Bytes of the whole database.
    pub database_bytes: u64,
    /// Chunks with a vector.
    pub vectors: u64,
    pub models: Vec<String>,
    /// By name.
    pub collections: Vec<CollectionSize>,
    /// The last save of a source.
    pub last_indexed: Option<Moment>,
}

#[cfg(test)]
mod catalog_tests;
#[cfg(test)]
mod collection_tests;
#[cfg(test)]
pub(crate) mod tests;
