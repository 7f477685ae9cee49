//! A document in chunks that fit a search index and a prompt. Knows nothing of files.

mod pack;
mod pieces;

use crate::read::Document;

/// How large chunks are, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkOptions {
    size: usize,
    overlap: usize,
}

/// Sizes that cannot be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChunkOptionsError {
    #[error("a chunk of {size} tokens is too small to hold anything; the least is {MIN_SIZE}")]
    Size { size: usize },
    #[error(
        "an overlap of {overlap} tokens leaves no room in a chunk of {size}; choose a smaller overlap or larger chunks"
    )]
    Overlap { size: usize, overlap: usize },
}

/// Below this a chunk could not even hold the rarest single characters.
pub const MIN_SIZE: usize = 16;

impl Default for ChunkOptions {
    fn default() -> Self {
        ChunkOptions { size: 512, overlap: 64 }
    }
}

impl ChunkOptions {
    /// Chunks of at most `size` tokens, each repeating up to `overlap` tokens of the one before.
    pub fn new(size: usize, overlap: usize) -> Result<Self, ChunkOptionsError> {
        if size < MIN_SIZE {
            return Err(ChunkOptionsError::Size { size });
        }
        if overlap >= size {
            return Err(ChunkOptionsError::Overlap { size, overlap });
        }
        Ok(ChunkOptions { size, overlap })
    }

    pub fn size(self) -> usize {
        self.size
    }

    pub fn overlap(self) -> usize {
        self.overlap
    }
}

/// A piece of a document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub text: String,
    /// How many bytes at the beginning of the text repeat the end of the chunk before.
    pub overlap: usize,
    /// The title of the document and the headings above the chunk, joined with ` › `. Empty where there are none.
    pub title: String,
    /// The place of the first and last word that is not overlap: a line, or what [`Document::place`] says.
    pub line: u32,
    pub end_line: u32,
    pub tokens: u32,
}

/// Cuts a document. Nothing but blank space is left out, and no chunk has more than `size` tokens.
///
/// What fits into a chunk is not torn. A heading stays with what follows it, and begins a chunk unless the one at hand is still
/// small. A chunk that goes on in the middle of a section repeats the last sentences or lines of the one before.
pub fn chunk(document: &Document, options: ChunkOptions) -> Vec<Chunk> {
    pack::pack(document, options)
}

#[cfg(test)]
#[path = "chunk_tests.rs"]
mod tests;
