//! Passages from the memory for a question, for callers who may read the memory.

use hob_core::{AnswerSource, AnswerWarning, Caller, GenerateRequest, MemoryUse};
use hob_memory::{Passage, question_collections};
use hob_telemetry::charging;

use super::AskService;

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
        let (Some(memory), Some(collections)) = (&self.memory, question_collections(caller)) else {
            return Vec::new();
        };
        let events = self.events(caller);
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
        match (&self.memory, question_collections(caller)) {
            (Some(memory), Some(collections)) => memory.has_documents(collections).await,
            _ => false,
        }
    }
}
