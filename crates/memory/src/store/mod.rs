//! The memory's database: sources, their chunks, and the ways to find a chunk again.
//!
//! Knows nothing of files, of embedding models or of ranking lists against each other. Every call blocks.

mod sqlite;

pub use sqlite::{
    ChunkText, Forgotten, Hit, MIGRATIONS, MemoryFigures, MemoryStore, NewChunk, NewSource, NewVector,
    Snapshot, Stamp, StoredPassage,
};
