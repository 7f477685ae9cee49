//! Passages from the memory for a question, for callers who may read the memory.

use hob_core::tool::MEMORY_SEARCH_TOOLS;
use hob_core::{
    AnswerSource, AnswerWarning, Caller, CollectionSet, GenerateRequest, MemoryUse, Permit, Reach,
    RequestSource,
};
use hob_memory::Passage;

use super::AskService;
use super::charged_engine::charging;

/// What the memory added to a request.
#[derive(Default)]
pub(super) struct Recalled {
    /// The passages as the model gets them.
    pub(super) sources: Vec<AnswerSource>,
    pub(super) warning: Option<AnswerWarning>,
}

impl AskService {
    /// Adds passages of the collections that the caller may read to the request, and returns them.
    /// Agents get passages automatically; a request that already has passages does not change.
    pub async fn recall(&self, request: &mut GenerateRequest, caller: &Caller) -> Vec<Passage> {
        let Some(memory) = self.memory.as_ref().filter(|_| may_recall(caller)) else { return Vec::new() };
        let (collections, events) = (readable(caller), self.events(caller));
        match caller.memory {
            MemoryUse::Wanted(_) => memory.add_wanted_context(request, collections, &events).await,
            MemoryUse::Allowed | MemoryUse::Unwanted => {
                memory.add_context(request, collections, &events).await
            }
        }
    }

    /// Adds the passages that the caller asked for, or that the agent `agent` gets, on account of the caller.
    pub(super) async fn recalled(
        &self,
        request: &mut GenerateRequest,
        caller: &Caller,
        agent: Option<&str>,
    ) -> Recalled {
        let is_wanted = matches!(caller.memory, MemoryUse::Wanted(_));
        if agent.is_none() && !is_wanted {
            return Recalled::default();
        }
        let passages = charging(self.charge(caller, agent), self.recall(request, caller)).await;
        let is_empty = is_wanted && passages.is_empty() && !self.has_documents(caller).await;
        let source =
            |Passage { source, text, score, .. }| AnswerSource { document: source, passage: text, score };
        Recalled {
            sources: passages.into_iter().map(source).collect(),
            warning: is_empty.then_some(AnswerWarning::NothingIndexed),
        }
    }

    /// Whether the caller has documents that it may read.
    async fn has_documents(&self, caller: &Caller) -> bool {
        match &self.memory {
            Some(memory) if may_recall(caller) => memory.has_documents(readable(caller)).await,
            _ => false,
        }
    }
}

/// The collections that are searched for a caller: those that it asks for, as far as it may read them.
fn readable(caller: &Caller) -> CollectionSet {
    let allowed = caller.rights().collections();
    match &caller.memory {
        MemoryUse::Wanted(wanted) => match wanted.names() {
            None => allowed,
            Some([]) => CollectionSet::none(),
            Some(names) => allowed.select(names.to_vec()).unwrap_or_else(|_| CollectionSet::none()),
        },
        MemoryUse::Allowed | MemoryUse::Unwanted => allowed,
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
    let is_excepted = except.iter().any(|name| MEMORY_SEARCH_TOOLS.contains(&&**name));
    if caller.memory == MemoryUse::Unwanted || !has_collections || is_excepted {
        return false;
    }
    let reaches = *most >= Reach::Read || caller.key.as_ref().is_some_and(|key| key.names_collections());
    match caller.source {
        RequestSource::Channel => reads_memory(also),
        RequestSource::Scheduler => reaches && only.as_ref().is_none_or(reads_memory),
        _ => reaches,
    }
}
