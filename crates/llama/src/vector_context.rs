//! The context in which texts become vectors: its size and its memory. Pure.

use hob_models::{
    ContextPlan, ContextShape, GgufHeader, KvPrecision, MemoryEstimate, MemoryNeeds, ModelFootprint,
};

/// The longest text to embed.
const MAX_EMBEDDED: u32 = 2048;

/// Short texts per batch.
const EMBED_BATCH: usize = 64;

/// The size of the context.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct VectorContext {
    /// Tokens of a batch, which are those of the longest text.
    pub(crate) tokens: u32,
    /// Texts in a batch.
    pub(crate) texts: usize,
}

impl VectorContext {
    /// For a model with this context. `states` is the number of its states, if every text needs one of its own.
    pub(crate) fn new(context: u32, states: Option<usize>) -> Self {
        VectorContext { tokens: context.min(MAX_EMBEDDED), texts: states.unwrap_or(EMBED_BATCH) }
    }

    /// The memory of the context, and of the model. If the model gives scores to words, it does so for every token of a text.
    pub(crate) fn memory(self, needs: &MemoryNeeds) -> MemoryEstimate {
        needs.estimate(self.shape())
    }

    fn shape(self) -> ContextShape {
        let tokens = self.tokens.into();
        ContextShape { cells: tokens, slots: self.texts as u64, batch: tokens, kv: KvPrecision::F16 }
    }
}

/// The memory of a model that only embeds, which has no other context than this one. `plan` is the plan for conversations.
pub(crate) fn embedding_footprint(
    needs: &MemoryNeeds,
    header: &GgufHeader,
    plan: &ContextPlan,
) -> ModelFootprint {
    let longest = u32::try_from(plan.context).unwrap_or(u32::MAX);
    let context = VectorContext::new(longest, header.recurrence.is_some().then_some(plan.slots));
    let (memory, shape) = (context.memory(needs), context.shape());
    ModelFootprint {
        at_start: memory,
        memory,
        at_most: memory,
        usual: memory,
        kv_per_slot: needs.conversation(shape.cells, shape.kv),
        plan: ContextPlan {
            context: shape.cells,
            cells: shape.cells,
            slots: context.texts,
            batch: shape.batch,
            kv: shape.kv,
        },
    }
}
