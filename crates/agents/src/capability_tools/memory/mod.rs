//! The memory's tools: `retrieval` and `memory_search` look things up, `memory_store` keeps a note, `memory_index` takes in files.
//!
//! They reach the memory through its contract, and know nothing of how it finds things.

mod index;
mod search;
mod store;

use std::sync::Arc;

use hob_core::{AllowedRoots, Memory, MemoryError, Tool, ToolError};

pub use index::MemoryIndex;
pub use search::MemorySearch;
pub use store::MemoryNote;

/// The memory's tools.
pub fn memory_tools(memory: &Arc<dyn Memory>, files: AllowedRoots) -> [Arc<dyn Tool>; 4] {
    [
        // Two names for one thing: models and documents know it by either.
        Arc::new(MemorySearch::new("retrieval", Arc::clone(memory))),
        Arc::new(MemorySearch::new(search::NAME, Arc::clone(memory))),
        Arc::new(MemoryNote::new(Arc::clone(memory))),
        Arc::new(MemoryIndex::new(Arc::clone(memory), files)),
    ]
}

fn told(error: MemoryError) -> ToolError {
    ToolError::new(error.to_string())
}
