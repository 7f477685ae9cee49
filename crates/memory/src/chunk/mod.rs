//! Cuts a document into chunks for a search index and a prompt. Knows nothing of files.

mod pack;
mod pieces;
mod types;

use crate::read::Document;

pub use types::{Chunk, ChunkOptions, ChunkOptionsError, MIN_SIZE};

/// Cuts a document. Only blank space is dropped, and no chunk has more than `size` tokens.
///
/// A block that fits into a chunk is not cut. A heading stays with its text, and begins a chunk unless the current one is small.
/// A chunk that continues a section repeats the last sentences or lines of the one before.
pub fn chunk(document: &Document, options: ChunkOptions) -> Vec<Chunk> {
    pack::pack(document, options)
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
