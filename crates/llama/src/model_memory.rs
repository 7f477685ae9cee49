//! The memory of a loaded model, as the limit for all models counts it.

use std::sync::atomic::Ordering;

use hob_models::{ContextShape, KvPrecision, MemoryEstimate};

use crate::loaded_model::LoadedModel;

impl LoadedModel {
    /// The memory of the model with this many cells, on graphics cards or not.
    pub(crate) fn memory(&self, cells: u32) -> Option<MemoryEstimate> {
        let batch = match self.embeds_only {
            true => self.longest_embedded().into(),
            false => self.batch() as u64,
        };
        let slots = if self.embeds_only { self.embedded_together() } else { self.parallel } as u64;
        let shape = ContextShape { cells: cells.into(), slots, batch, kv: self.kv };
        self.needs.map(|needs| needs.estimate(shape))
    }

    /// The part of it that is in the main memory, with the second context of a model that also embeds.
    pub(crate) fn main_memory(&self, cells: u32) -> Option<u64> {
        let memory = self.memory(cells)?.total().saturating_sub(self.offload.bytes());
        let second = match self.embeds_too.load(Ordering::Relaxed) && !self.offload.is_whole {
            true => self.second_context().map_or(0, |second| second.kv_cache.saturating_add(second.compute)),
            false => 0,
        };
        Some(memory.saturating_add(second))
    }

    /// The context in which a model that generates embeds. It computes the scores of all words for every token of a text.
    fn second_context(&self) -> Option<MemoryEstimate> {
        let tokens = self.longest_embedded().into();
        let slots = self.embedded_together() as u64;
        let shape = ContextShape { cells: tokens, slots, batch: tokens, kv: KvPrecision::F16 };
        self.needs.map(|needs| needs.estimate(shape))
    }
}

#[cfg(test)]
#[path = "model_memory_tests.rs"]
mod tests;
