//! A chunk, and the size of chunks.

use hob_core::defaults::{CHUNK_OVERLAP, CHUNK_SIZE};

/// The size of chunks in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ChunkOptions {
    size: usize,
    overlap: usize,
}

/// Invalid sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ChunkOptionsError {
    #[error("a chunk of {size} tokens is too small; the minimum is {MIN_SIZE}")]
    Size { size: usize },
    #[error(
        "an overlap of {overlap} tokens is too large for a chunk of {size}; choose a smaller overlap or larger chunks"
    )]
    Overlap { size: usize, overlap: usize },
}

/// A smaller chunk could not contain the rarest single characters.
pub const MIN_SIZE: usize = 16;

impl Default for ChunkOptions {
    fn default() -> Self {
        ChunkOptions { size: CHUNK_SIZE, overlap: CHUNK_OVERLAP }
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

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    pub text: String,
    /// The bytes at the start of the text that repeat the chunk before.
    pub overlap: usize,
    /// The title of the document and the headings above the chunk, joined with ` › `. May be empty.
    pub title: String,
    /// The position of the first and last word that is not overlap: a line, or the unit of the document.
    pub line: u32,
    pub end_line: u32,
    pub tokens: u32,
}
