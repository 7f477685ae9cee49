//! The tools of the memory: `retrieval` and `memory_search` search, `memory_store` saves a note, `memory_index` indexes files.
//!
//! They know nothing of agents, nor of how the memory searches.

mod index;
mod search;
mod store;

use std::sync::Arc;

use hob_core::{AllowedRoots, Tool};

use crate::service::MemoryService;

pub use index::MemoryIndexTool;
pub use search::MemorySearchTool;
pub use store::MemoryStoreTool;

pub fn memory_tools(memory: &Arc<MemoryService>, files: AllowedRoots) -> [Arc<dyn Tool>; 4] {
    [
        // Two names for one tool: models and documents use both.
        Arc::new(MemorySearchTool::new("retrieval", Arc::clone(memory))),
        Arc::new(MemorySearchTool::new(search::NAME, Arc::clone(memory))),
        Arc::new(MemoryStoreTool::new(Arc::clone(memory))),
        Arc::new(MemoryIndexTool::new(Arc::clone(memory), files)),
    ]
}
