//! Files that are written together: one transaction for many small ones.

use std::time::{Duration, Instant, SystemTime};

use crate::open::store_failed;
use crate::store::{MemoryStore, NewSource, SourceStamp};
use crate::types::MemoryError;

/// A batch is written when it has so many chunks or bytes: a larger one costs the index of words less. Other processes wait
/// while it is.
const MOST_CHUNKS: usize = 4_096;
const MOST_BYTES: usize = 16 << 20;

/// And at the latest after so long, so that little is lost when the process is.
const LONGEST: Duration = Duration::from_secs(5);

/// New dates that are written together.
const MOST_TOUCHED: usize = 1_024;

pub(super) struct Batch<'a> {
    store: &'a dyn MemoryStore,
    sources: Vec<NewSource>,
    chunks: usize,
    bytes: usize,
    touched: Vec<(String, SourceStamp)>,
    /// When the last one was written.
    began: Instant,
}

impl<'a> Batch<'a> {
    pub(super) fn new(store: &'a dyn MemoryStore) -> Self {
        Batch { store, sources: Vec::new(), chunks: 0, bytes: 0, touched: Vec::new(), began: Instant::now() }
    }

    pub(super) fn add(&mut self, source: NewSource) -> Result<(), MemoryError> {
        // A file without a word counts too, or a million of them would pile up.
        self.chunks += source.chunks.len().max(1);
        self.bytes += source.chunks.iter().map(|chunk| chunk.text.len()).sum::<usize>();
        self.sources.push(source);
        let is_full =
            self.chunks >= MOST_CHUNKS || self.bytes >= MOST_BYTES || self.began.elapsed() >= LONGEST;
        if is_full { self.write() } else { Ok(()) }
    }

    pub(super) fn touch(&mut self, path: String, stamp: SourceStamp) -> Result<(), MemoryError> {
        self.touched.push((path, stamp));
        if self.touched.len() >= MOST_TOUCHED { self.write() } else { Ok(()) }
    }

    /// Writes what there is.
    pub(super) fn write(&mut self) -> Result<(), MemoryError> {
        if !self.sources.is_empty() {
            self.store.replace(&self.sources, SystemTime::now()).map_err(store_failed)?;
        }
        if !self.touched.is_empty() {
            self.store.restamp(&self.touched).map_err(store_failed)?;
        }
        self.sources.clear();
        self.touched.clear();
        (self.chunks, self.bytes) = (0, 0);
        self.began = Instant::now();
        Ok(())
    }
}
