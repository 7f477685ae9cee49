//! The memory's tools: `retrieval` and `memory_search` look things up, `memory_store` keeps a note, `memory_index` takes in files.
//!
//! They know nothing of agents, nor of how the memory finds things.

mod index;
mod search;
mod store;

use std::sync::Arc;

use hob_core::{AllowedRoots, Tool, ToolError};

use crate::service::MemoryService;
use crate::types::MemoryError;

pub use index::MemoryIndexTool;
pub use search::MemorySearchTool;
pub use store::MemoryStoreTool;

/// The memory's tools.
pub fn memory_tools(memory: &Arc<MemoryService>, files: AllowedRoots) -> [Arc<dyn Tool>; 4] {
    [
        // Two names for one thing: models and documents know it by either.
        Arc::new(MemorySearchTool::new("retrieval", Arc::clone(memory))),
        Arc::new(MemorySearchTool::new(search::NAME, Arc::clone(memory))),
        Arc::new(MemoryStoreTool::new(Arc::clone(memory))),
        Arc::new(MemoryIndexTool::new(Arc::clone(memory), files)),
    ]
}

fn told(error: MemoryError) -> ToolError {
    ToolError::new(error.to_string())
}
