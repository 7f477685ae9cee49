//! Batches of files: one transaction for many small ones.

use std::time::{Duration, Instant, SystemTime};

use hob_core::CollectionName;

use crate::open::store_failed;
use crate::store::{MemoryStore, NewSource, SourceStamp};
use crate::types::MemoryError;

/// A batch is written when it has this many chunks or bytes. Larger batches are more efficient, but block other processes.
const MAX_CHUNKS: usize = 4_096;
const MAX_BYTES: usize = 16 << 20;

/// And after this time, so that little is lost if the process ends.
const LONGEST: Duration = Duration::from_secs(5);

/// Changed dates and known files per write.
const MAX_TOUCHED: usize = 1_024;

pub(super) struct Batch<'a> {
    store: &'a dyn MemoryStore,
    collection: &'a CollectionName,
    sources: Vec<NewSource>,
    chunks: usize,
    bytes: usize,
    touched: Vec<(String, SourceStamp)>,
    /// Unchanged files that are new in the collection.
    known: Vec<String>,
    /// The time of the last write.
    began: Instant,
}

impl<'a> Batch<'a> {
    pub(super) fn new(store: &'a dyn MemoryStore, collection: &'a CollectionName) -> Self {
        Batch {
            store,
            collection,
            sources: Vec::new(),
            chunks: 0,
            bytes: 0,
            touched: Vec::new(),
            known: Vec::new(),
            began: Instant::now(),
        }
    }

    pub(super) fn add(&mut self, source: NewSource) -> Result<(), MemoryError> {
        // An empty file counts as one, so that they do not accumulate.
        self.chunks += source.chunks.len().max(1);
        self.bytes += source.chunks.iter().map(|chunk| chunk.text.len()).sum::<usize>();
        self.sources.push(source);
        let is_full = self.chunks >= MAX_CHUNKS || self.bytes >= MAX_BYTES || self.began.elapsed() >= LONGEST;
        if is_full { self.write() } else { Ok(()) }
    }

    pub(super) fn touch(&mut self, path: String, stamp: SourceStamp) -> Result<(), MemoryError> {
        self.touched.push((path, stamp));
        if self.touched.len() >= MAX_TOUCHED { self.write() } else { Ok(()) }
    }

    pub(super) fn add_known(&mut self, path: String) -> Result<(), MemoryError> {
        self.known.push(path);
        if self.known.len() >= MAX_TOUCHED { self.write() } else { Ok(()) }
    }

    pub(super) fn write(&mut self) -> Result<(), MemoryError> {
        if !self.sources.is_empty() {
            self.store.replace(&self.sources, SystemTime::now()).map_err(store_failed)?;
        }
        if !self.touched.is_empty() {
            self.store.restamp(&self.touched).map_err(store_failed)?;
        }
        if !self.known.is_empty() {
            self.store.add_to_collection(self.collection, &self.known).map_err(store_failed)?;
        }
        self.sources.clear();
        self.touched.clear();
        self.known.clear();
        (self.chunks, self.bytes) = (0, 0);
        self.began = Instant::now();
        Ok(())
    }
}
