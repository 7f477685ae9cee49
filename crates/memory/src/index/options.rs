//! The options and the progress of indexing.

use std::path::{Path, PathBuf};

use hob_core::CollectionName;

use crate::chunk::ChunkOptions;
use crate::read::ReadLimits;
use crate::types::{IndexReport, IndexWarning};

/// How files are indexed.
#[derive(Debug, Clone, Default)]
pub struct IndexOptions {
    pub chunks: ChunkOptions,
    pub limits: ReadLimits,
    /// Directories that are never indexed, without links: Hob's own home.
    pub private: Vec<PathBuf>,
    /// What files are added to.
    pub collection: CollectionName,
}

impl IndexOptions {
    /// Whether a file or directory, without links, is never indexed.
    pub fn is_private(&self, path: &Path) -> bool {
        let is_upload = self.limits.uploads.as_ref().is_some_and(|uploads| path.starts_with(uploads));
        !is_upload && self.private.iter().any(|directory| path.starts_with(directory))
    }

    /// The directory of uploaded documents, unless `root` is in it. They belong to the library, so work on a directory above them leaves
    /// them in the memory.
    pub(crate) fn uploads_outside(&self, root: &Path) -> Option<&Path> {
        self.limits.uploads.as_deref().filter(|uploads| !root.starts_with(uploads))
    }
}

/// The progress of indexing.
pub enum IndexProgress<'a> {
    /// A file was checked.
    Files(&'a IndexReport),
    /// A file could not be read.
    Warning(&'a IndexWarning),
    /// A file was skipped, which is not an error.
    Skipped(&'a IndexWarning),
    /// The number of files so far, and whether it is final.
    Total { files: u64, is_final: bool },
    /// Missing vectors, done and in total.
    Vectors { done: u64, of: u64 },
}

/// Called from any thread.
pub type IndexProgressFn<'a> = &'a (dyn Fn(IndexProgress<'_>) + Send + Sync);
