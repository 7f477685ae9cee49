//! How much memory the conversations of a model get, in the main memory or on graphics cards.

use hob_models::{ContextPlan, MemoryNeeds, ModelFootprint, StoredModel};

use crate::options::LlamaOptions;

/// Conversations of full length that stay in the cache although no request continues them.
const CACHED_CONVERSATIONS: u32 = 2;

/// llama.cpp counts cells with 31 bits.
const MAX_CELLS: u64 = 1 << 30;

/// The memory of a model. `cards` are the bytes of graphics cards for models; 0 if no layer goes there.
pub(crate) fn footprint(
    needs: &MemoryNeeds,
    trained: Option<u64>,
    options: &LlamaOptions,
    cards: u64,
) -> ModelFootprint {
    match cards {
        0 => ModelFootprint::new(needs, trained, &options.context_wish()),
        _ => ModelFootprint::on_cards(needs, trained, &options.card_wish(), cards),
    }
}

/// The size of the context memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ContextSize {
    /// Tokens of one conversation.
    pub(crate) context: u32,
    /// Tokens of all conversations, at most. The main memory is allocated as needed.
    pub(crate) cells: u32,
    /// Tokens that the main memory has room for at first.
    pub(crate) first_cells: u32,
    /// Tokens up to which the memory grows only to keep what was read. Beyond, it grows for active conversations.
    pub(crate) cached_cells: u32,
    pub(crate) slots: usize,
}

impl ContextSize {
    /// With `cards` bytes of graphics cards for models; 0 if no layer goes there.
    pub(crate) fn of(stored: &StoredModel, options: &LlamaOptions, cards: u64) -> Self {
        match stored.needs() {
            Some(needs) => Self::planned(&footprint(&needs, stored.trained(), options, cards).plan),
            // Not a model: loading it gives the reason.
            None => ContextSize { context: 1, cells: 1, first_cells: 1, cached_cells: 1, slots: 1 },
        }
    }

    fn planned(plan: &ContextPlan) -> Self {
        let cells = |cells: u64| u32::try_from(cells.clamp(1, MAX_CELLS)).unwrap_or(1);
        let context = cells(plan.context);
        ContextSize {
            context,
            cells: cells(plan.cells),
            first_cells: cells(plan.first_cells()),
            cached_cells: context.saturating_mul(CACHED_CONVERSATIONS).min(cells(plan.cells)),
            slots: plan.slots,
        }
    }
}
