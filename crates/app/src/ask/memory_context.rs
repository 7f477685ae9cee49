//! What the memory has on a question, for callers who may know it.

use hob_core::{Caller, GenerateRequest, MemoryUse, Permit, Reach, RequestSource};
use hob_memory::Passage;

use super::AskService;
use hob_core::tool::MEMORY_SEARCH_TOOLS;

impl AskService {
    /// Puts what the memory has on the question into the request, where the caller may know it, and says what that was.
    /// Agents are told by themselves; a request that was told already is left as it is.
    pub async fn recall(&self, request: &mut GenerateRequest, caller: &Caller) -> Vec<Passage> {
        match &self.memory {
            Some(memory) if may_recall(caller) => memory.add_context(request, &self.events(caller)).await,
            _ => Vec::new(),
        }
    }
}

/// Whether the caller may know what is in the memory. Whoever writes on a channel needs leave by name, because there trust in
/// tools is given to everybody at once; and so does a task whose tools were chosen, because somebody on a channel may have
/// made it.
fn may_recall(caller: &Caller) -> bool {
    let reads_memory =
        |names: &Vec<String>| names.iter().any(|name| MEMORY_SEARCH_TOOLS.contains(&name.as_str()));
    let Permit { most, also, only, except, .. } = &caller.permit;
    if caller.memory == MemoryUse::Unwanted || reads_memory(except) {
        return false;
    }
    match caller.source {
        RequestSource::Channel => reads_memory(also),
        RequestSource::Scheduler => *most >= Reach::Read && only.as_ref().is_none_or(reads_memory),
        _ => *most >= Reach::Read,
    }
}
