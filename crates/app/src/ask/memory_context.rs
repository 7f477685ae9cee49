//! Passages from the memory for a question, for callers who may read the memory.

use hob_core::{Caller, CallerRole, GenerateRequest, MemoryUse, Permit, Reach, RequestSource};
use hob_memory::Passage;

use super::AskService;
use hob_core::tool::MEMORY_SEARCH_TOOLS;

impl AskService {
    /// Adds passages from the memory to the request, if the caller may read the memory, and returns them.
    /// Agents get passages automatically; a request that already has passages does not change.
    pub async fn recall(&self, request: &mut GenerateRequest, caller: &Caller) -> Vec<Passage> {
        match &self.memory {
            Some(memory) if may_recall(caller) => memory.add_context(request, &self.events(caller)).await,
            _ => Vec::new(),
        }
    }
}

/// Whether the caller may read the memory, which is the owner's: members may not. A channel sender needs permission by name, because there trust in
/// tools applies to all senders. So does a task with selected tools, because a channel sender may have
/// created it.
fn may_recall(caller: &Caller) -> bool {
    let reads_memory =
        |names: &Vec<String>| names.iter().any(|name| MEMORY_SEARCH_TOOLS.contains(&name.as_str()));
    let Permit { most, also, only, except, .. } = &caller.permit;
    let is_member = caller.role == CallerRole::Member;
    if caller.memory == MemoryUse::Unwanted || is_member || reads_memory(except) {
        return false;
    }
    match caller.source {
        RequestSource::Channel => reads_memory(also),
        RequestSource::Scheduler => *most >= Reach::Read && only.as_ref().is_none_or(reads_memory),
        _ => *most >= Reach::Read,
    }
}
