//! Where the memory is saved: sources, their chunks, and the ways to find a chunk again.
//!
//! [`MemoryStore`] is what a database must do, [`SqliteMemoryStore`] does it in a SQLite file. Every call blocks. Knows nothing of files,
//! of embedding models or of ranking lists against each other.

mod sqlite;

use std::collections::HashMap;
use std::ops::Range;
use std::time::SystemTime;

use hob_core::time::Moment;
use hob_db::DatabaseError;

use crate::types::PositionUnit;
use crate::word_query::WordQuery;

pub use sqlite::{MIGRATIONS, SqliteMemoryStore};

/// The memory in a database. A source's chunks come and go together, in one transaction.
pub trait MemoryStore: Send + Sync {
    /// The stamps of `path` and of everything below it, by path.
    fn known_below(&self, path: &str) -> Result<HashMap<String, SourceStamp>, DatabaseError>;

    /// Saves sources, all of them or none, each of another path, in place of what was known of their paths. A power cut may take
    /// them before [`Self::sync`].
    fn replace(&self, sources: &[NewSource], now: SystemTime) -> Result<(), DatabaseError>;

    /// As [`Self::replace`] with one source that is nowhere else: it is on the disk when this returns.
    fn save(&self, source: &NewSource, now: SystemTime) -> Result<(), DatabaseError>;

    /// Saves new dates and sizes of files whose bytes are the same as before.
    fn restamp(&self, stamps: &[(String, SourceStamp)]) -> Result<(), DatabaseError>;

    /// Removes single sources.
    fn remove(&self, paths: &[String]) -> Result<RemovedSources, DatabaseError>;

    /// Some sources at `path` or below it, at most `count`.
    fn paths_below(&self, path: &str, count: usize) -> Result<Vec<String>, DatabaseError>;

    /// Chunks without a vector of this model, in the order of their ids, from behind `after`.
    fn without_vector(&self, model: &str, after: i64, count: usize) -> Result<Vec<ChunkText>, DatabaseError>;

    /// How many chunks have no vector of this model.
    fn count_without_vector(&self, model: &str) -> Result<u64, DatabaseError>;

    /// Gives chunks their vectors, in place of those they had. A chunk that is gone by now gets none, and a model whose vectors
    /// have another length than before loses its old ones.
    fn add_vectors(&self, model: &str, vectors: &[NewVector]) -> Result<(), DatabaseError>;

    /// How much there is.
    fn size(&self) -> Result<MemorySize, DatabaseError>;

    /// Compares the index of words with the chunks, which takes as long as making it. Fails where they differ.
    fn check(&self) -> Result<(), DatabaseError>;

    /// Writes to the disk what was indexed: until then a power cut may take it.
    fn sync(&self) -> Result<(), DatabaseError>;

    /// Calls `work` once, with the memory as it is at one moment: what is found in it can also be read, whatever others write
    /// meanwhile. `work` must not write to the memory through this store.
    fn snapshot(&self, work: SnapshotWork<'_>) -> Result<(), DatabaseError>;

    /// As [`MemorySnapshot::find_words`], now.
    fn find_words(&self, query: &WordQuery, count: usize) -> Result<Vec<ChunkHit>, DatabaseError> {
        let mut found = Vec::new();
        self.snapshot(&mut |snapshot| {
            found = snapshot.find_words(query, count)?;
            Ok(())
        })?;
        Ok(found)
    }

    /// As [`MemorySnapshot::find_vectors`], now.
    fn find_vectors(
        &self,
        model: &str,
        vector: &[f32],
        count: usize,
    ) -> Result<Option<Vec<ChunkHit>>, DatabaseError> {
        let mut found = None;
        self.snapshot(&mut |snapshot| {
            found = snapshot.find_vectors(model, vector, count)?;
            Ok(())
        })?;
        Ok(found)
    }

    /// As [`MemorySnapshot::passages`], now: chunks that were found earlier may be gone.
    fn passages(
        &self,
        chunks: &[i64],
        query: Option<&WordQuery>,
    ) -> Result<Vec<StoredPassage>, DatabaseError> {
        let mut passages = Vec::new();
        self.snapshot(&mut |snapshot| {
            passages = snapshot.passages(chunks, query)?;
            Ok(())
        })?;
        Ok(passages)
    }
}

/// What [`MemoryStore::snapshot`] calls.
pub type SnapshotWork<'a> = &'a mut dyn FnMut(&dyn MemorySnapshot) -> Result<(), DatabaseError>;

/// The memory at one moment.
pub trait MemorySnapshot {
    /// The chunks that fit best by their words, at most `count`.
    fn find_words(&self, query: &WordQuery, count: usize) -> Result<Vec<ChunkHit>, DatabaseError>;

    /// Of these chunks, those that have at least this share of the question's words. The others fit best only because nothing fits.
    fn covering(
        &self,
        query: &WordQuery,
        hits: &[ChunkHit],
        share: f64,
    ) -> Result<Vec<ChunkHit>, DatabaseError>;

    /// The chunks nearest to a vector of this model, at most `count`; `None` when no chunk ever had a vector of it.
    fn find_vectors(
        &self,
        model: &str,
        vector: &[f32],
        count: usize,
    ) -> Result<Option<Vec<ChunkHit>>, DatabaseError>;

    /// The chunks with these ids, in their order, with the words of the query marked. A chunk that is not there is left out.
    fn passages(
        &self,
        chunks: &[i64],
        query: Option<&WordQuery>,
    ) -> Result<Vec<StoredPassage>, DatabaseError>;
}

/// A chunk that answers a question, and how well: more is better, and only scores of one list compare.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChunkHit {
    pub chunk: i64,
    pub score: f64,
}

/// What shows that a file is the same as last time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceStamp {
    pub hash: [u8; 32],
    /// Nanoseconds since 1970.
    pub modified: i64,
    pub size: u64,
    /// How its text was cut.
    pub recipe: String,
}

/// A source with all its chunks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewSource {
    pub path: String,
    pub title: String,
    pub place: PositionUnit,
    pub stamp: SourceStamp,
    pub chunks: Vec<NewChunk>,
}

/// A piece of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewChunk {
    pub title: String,
    pub text: String,
    pub line: u32,
    pub end_line: u32,
    pub tokens: u32,
}

/// What was removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RemovedSources {
    pub sources: u64,
    pub chunks: u64,
}

/// A chunk that needs a vector.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkText {
    pub chunk: i64,
    pub title: String,
    pub text: String,
}

/// A chunk's vector.
#[derive(Debug, Clone, PartialEq)]
pub struct NewVector {
    pub chunk: i64,
    pub vector: Vec<f32>,
}

/// A chunk and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredPassage {
    pub chunk: i64,
    /// The path of its source.
    pub source: String,
    pub title: String,
    pub text: String,
    /// Which piece of its source it is, counted from 0.
    pub position: u32,
    pub place: PositionUnit,
    pub line: u32,
    pub end_line: u32,
    pub tokens: u32,
    /// The words of the question, as byte ranges of the text.
    pub marks: Vec<Range<usize>>,
}

/// The memory in numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MemorySize {
    pub sources: u64,
    /// Of these, notes that have no file.
    pub notes: u64,
    pub chunks: u64,
    pub tokens: u64,
    /// Bytes of the files when they were read.
    pub source_bytes: u64,
    /// Bytes of the database itself.
    pub database_bytes: u64,
    /// Chunks that can be found by meaning.
    pub vectors: u64,
    /// The models that made the vectors.
    pub models: Vec<String>,
    /// When a source was last saved.
    pub last_indexed: Option<Moment>,
}

#[cfg(test)]
mod tests;
