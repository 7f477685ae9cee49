//! The tools of memory. They reach these through the contracts of `core`.

mod memory;

pub use memory::{MemoryIndex, MemoryNote, MemorySearch, memory_tools};
