//! Passages from the memory for a question, for callers who may read the memory.

use hob_core::{Caller, GenerateRequest, MemoryUse, Permit, Reach, RequestSource};
use hob_memory::Passage;

use super::AskService;
use hob_core::tool::MEMORY_SEARCH_TOOLS;

impl AskService {
    /// Adds passages of the collections that the caller may read to the request, and returns them.
    /// Agents get passages automatically; a request that already has passages does not change.
    pub async fn recall(&self, request: &mut GenerateRequest, caller: &Caller) -> Vec<Passage> {
        match &self.memory {
            Some(memory) if may_recall(caller) => {
                memory.add_context(request, caller.rights().collections(), &self.events(caller)).await
            }
            _ => Vec::new(),
        }
    }
}

/// Whether the caller gets passages of the collections that it may read. Its tools must reach that far, or its key must name
/// collections. A channel sender needs permission by name, because there trust in tools applies to all senders. So does a task with
/// selected tools, because a channel sender may have created it.
fn may_recall(caller: &Caller) -> bool {
    let reads_memory =
        |names: &Vec<String>| names.iter().any(|name| MEMORY_SEARCH_TOOLS.contains(&name.as_str()));
    let Permit { most, also, only, except, .. } = &caller.permit;
    let has_collections = !caller.rights().collections().is_empty();
    if caller.memory == MemoryUse::Unwanted || !has_collections || reads_memory(except) {
        return false;
    }
    let reaches = *most >= Reach::Read || caller.key.as_ref().is_some_and(|key| key.names_collections());
    match caller.source {
        RequestSource::Channel => reads_memory(also),
        RequestSource::Scheduler => reaches && only.as_ref().is_none_or(reads_memory),
        _ => reaches,
    }
}
