//! The memory over the user's documents: files become text, text becomes chunks, chunks are found again.
//!
//! Knows nothing of `config.toml`, of HTTP or of agents. Vectors are made by whatever engine it is given.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests start this program again"))]

mod blocking;
pub mod chunk;
pub mod context;
mod documents;
mod embed;
mod failure;
pub mod index;
mod note;
pub mod read;
pub mod search;
mod shelf;
pub mod tokens;

pub use chunk::{Chunk, ChunkOptions, ChunkOptionsError, chunk};
pub use documents::{DocumentParts, Documents, Indexing, Listener};
pub use embed::{Embedder, EmbedderSource, NoEmbedder};
pub use hob_store::memory::Forgotten;
pub use index::{IndexOptions, Progress};
pub use read::{Document, Limits, ReadError, read_file};
pub use search::Purpose;

#[cfg(test)]
mod processes_tests;
#[cfg(test)]
mod testing;
