//! The memory of a loaded model, as the limits for all models count it.

use std::sync::atomic::Ordering;

use hob_core::DeviceShare;
use hob_models::{ContextShape, MemoryEstimate};

use crate::loaded_model::LoadedModel;

/// The memory of a model, in its parts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct MemoryParts {
    /// Bytes of the main memory.
    pub(crate) main: u64,
    /// The part on each graphics card.
    pub(crate) cards: Vec<DeviceShare>,
}

impl MemoryParts {
    /// Bytes on all cards.
    pub(crate) fn on_cards(&self) -> u64 {
        self.cards.iter().fold(0, |sum, share| sum.saturating_add(share.bytes))
    }

    /// Bytes of all parts.
    pub(crate) fn total(&self) -> u64 {
        self.main.saturating_add(self.on_cards())
    }

    /// The parts with those of a model that belongs to it. The layers on a card stay its own.
    pub(crate) fn with(mut self, other: MemoryParts) -> Self {
        self.main = self.main.saturating_add(other.main);
        for more in other.cards {
            match self.cards.iter_mut().find(|share| share.device == more.device) {
                Some(share) => share.bytes = share.bytes.saturating_add(more.bytes),
                None => self.cards.push(DeviceShare { layers: 0, ..more }),
            }
        }
        self
    }
}

impl LoadedModel {
    /// The memory of the model with this many cells, on graphics cards or not.
    pub(crate) fn memory(&self, cells: u32) -> Option<MemoryEstimate> {
        let needs = self.needs?;
        if self.embeds_only {
            return Some(self.vector_context().memory(&needs));
        }
        let (slots, batch) = (self.parallel as u64, self.batch() as u64);
        Some(needs.estimate(ContextShape { cells: cells.into(), slots, batch, kv: self.kv }))
    }

    /// The parts of it, with the second context of a model that also embeds, and with its draft model. `None` if its needs are unknown;
    /// no part of such a model is on a card.
    pub(crate) fn used_memory(&self, cells: u32) -> Option<MemoryParts> {
        let all = self.memory(cells)?.total();
        let second = if self.embeds_too.load(Ordering::Relaxed) { self.second_context() } else { None };
        let (kv_cache, compute) = second.map_or((0, 0), |second| (second.kv_cache, second.compute));
        let first = all.saturating_sub(self.offload.bytes());
        let own = MemoryParts {
            main: first.saturating_add(self.offload.context_beside_cards(kv_cache, compute)),
            cards: self.offload.shares_with_context(kv_cache, compute),
        };
        let draft = self.draft.as_ref().and_then(|draft| {
            let cells = draft.cells.load(Ordering::Relaxed);
            draft.loaded.used_memory(cells)
        });
        Some(own.with(draft.unwrap_or_default()))
    }

    /// The context in which a model that generates embeds.
    fn second_context(&self) -> Option<MemoryEstimate> {
        self.needs.map(|needs| self.vector_context().memory(&needs))
    }
}

#[cfg(test)]
#[path = "model_memory_tests.rs"]
mod tests;
