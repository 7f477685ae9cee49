//! The memory of a worker: it grows for conversations, and keeps prompts of earlier runs.

use std::sync::atomic::Ordering;

use super::{GrowthNeed, Worker};
use crate::context_memory::{copy, read_memory, remove, seq_id, write_memory};
use crate::kv_state;
use crate::prefix_cache::{SlotAssignment, Slots, Token};

impl Worker<'_> {
    /// Grows the memory for one more sequence, within the limit, so that nothing must be cleared.
    pub(super) fn grow(&mut self, cells: usize) {
        let size = self.loaded.context_size;
        let most = size.cells as usize;
        let (now, wanted) = (self.slots.cells(), self.slots.wanted(cells, size.cached_cells as usize));
        if self.loaded.embeds_only || wanted <= now || now >= most {
            return;
        }
        let mut cells = now.max(self.loaded.first_cells() as usize).max(1);
        while cells < wanted {
            cells = cells.saturating_mul(2);
        }
        let cells = cells.min(most);
        // A failed allocation is retried when an answer has ended.
        let writing = self.alive.len();
        if writing > 0 && self.refused.is_some_and(|(refused, then)| cells >= refused && writing >= then) {
            return;
        }
        let need = if writing == 0 { GrowthNeed::Now } else { GrowthNeed::Later };
        if self.enlarge(cells, need) {
            tracing::debug!(model = %self.loaded.id, cells, "the memory of the model has grown");
        } else {
            // The others continue, and the new one waits.
            tracing::warn!(
                model = %self.loaded.id,
                cells,
                "the model has too little memory for more conversations, so they wait. Lower \
                 [engine.embedded] context, or raise memory_mb"
            );
            self.refused = Some((cells, writing));
        }
    }

    /// Replaces the memory by one with this many cells; `false` if there is too little for it. A copy has the conversations in the
    /// meantime: the old memory and the new one together would take more. All of it moves together, because sequences share cells.
    fn enlarge(&mut self, cells: usize, need: GrowthNeed) -> bool {
        let before = self.slots.cells();
        // Beside a full limit, the copy exceeds it for a moment.
        let with_copy = cells + self.slots.held().min(before);
        if !self.claim_cells(with_copy, GrowthNeed::Later) && !self.claim_cells(cells, need) {
            return false;
        }
        let copy = match self.slots.held() {
            0 => Some(Vec::new()),
            _ => self.context.as_ref().and_then(read_memory),
        };
        let Some(copy) = copy else {
            self.claim_again(GrowthNeed::Later);
            return false;
        };
        self.context = None;
        let has_grown = self.make_memory(cells, &copy);
        if !has_grown && (before == 0 || !self.make_memory(before, &copy)) {
            self.lose_memory();
        }
        self.claim_again(GrowthNeed::Later);
        has_grown
    }

    /// Makes the memory from a copy, which is empty if nothing is held; `false` on failure.
    fn make_memory(&mut self, cells: usize, copy: &[u8]) -> bool {
        let Ok(size) = u32::try_from(cells) else { return false };
        let Ok(mut context) = self.loaded.writing_context(size) else { return false };
        if !copy.is_empty() && !write_memory(&mut context, copy) {
            return false;
        }
        self.context = Some(context);
        self.slots.grow(cells);
        true
    }

    /// Continues without memory. The next request makes it again, or is refused.
    fn lose_memory(&mut self) {
        self.context = None;
        self.fail_all("the memory of the conversations cannot be allocated again");
        self.slots = Slots::new(self.loaded.parallel, 0, self.loaded.reuse());
    }

    /// Asks for the memory of vectors beside answers. Conversations of the past are forgotten for it if nothing else helps.
    pub(super) fn claim_vectors(&mut self) -> bool {
        // Counted when it was loaded.
        if self.loaded.embeds_only {
            return true;
        }
        self.loaded.embeds_too.store(true, Ordering::Relaxed);
        if self.claim_again(GrowthNeed::Now) || (self.shrink() && self.claim_again(GrowthNeed::Now)) {
            return true;
        }
        self.release_vectors();
        false
    }

    /// Gives back the memory of vectors beside answers, which is not used.
    pub(super) fn release_vectors(&mut self) {
        if self.loaded.embeds_too.swap(false, Ordering::Relaxed) {
            self.claim_again(GrowthNeed::Later);
        }
    }

    /// Asks for the memory of the model with as many cells as it has.
    pub(super) fn claim_again(&mut self, need: GrowthNeed) -> bool {
        self.claim_cells(self.slots.cells(), need)
    }

    fn claim_cells(&mut self, cells: usize, need: GrowthNeed) -> bool {
        (self.claim)(u32::try_from(cells).unwrap_or(u32::MAX), need)
    }

    /// Returns to the initial memory; `false` if answers use more, or if there is no more.
    fn shrink(&mut self) -> bool {
        let first = self.loaded.first_cells();
        if !self.alive.is_empty() || self.slots.cells() <= first as usize {
            return false;
        }
        let Ok(smaller) = self.loaded.writing_context(first) else { return false };
        self.stop_warming();
        self.context = Some(smaller);
        self.slots = Slots::new(self.loaded.parallel, first as usize, self.loaded.reuse());
        self.refused = None;
        true
    }

    /// Applies a decision of the slots to the memory.
    pub(super) fn settle(&mut self, place: &SlotAssignment) {
        let reused = self.slots.position(place.slot, place.reused);
        let Some(context) = &mut self.context else { return };
        for &slot in &place.forget {
            remove(context, slot, 0);
        }
        // A beginning of which cells are missing would give a wrong answer.
        let from = place.copy_from.unwrap_or(place.slot);
        if place.reused > 0 && context.kv_cache_seq_pos_min(seq_id(from)) != 0 {
            remove(context, place.slot, 0);
            self.slots.clear(place.slot);
            return;
        }
        match place.copy_from {
            Some(from) => {
                remove(context, place.slot, 0);
                copy(context, from, place.slot, Some(reused));
            }
            None => {
                if !remove(context, place.slot, reused) {
                    remove(context, place.slot, 0);
                    self.slots.clear(place.slot);
                }
            }
        }
    }

    /// Uses a prompt of an earlier run that begins like this one, if that saves enough.
    pub(super) fn restore(&mut self, prompt: &[Token]) {
        let there = self.slots.longest_match(prompt);
        let Some((tokens, state)) = self.saved.take_match(prompt, there) else { return };
        self.grow(tokens.len());
        let Some(place) = self.slots.adopt(&tokens) else { return };
        self.settle(&place);
        if !self.context.as_mut().is_some_and(|context| kv_state::write(context, place.slot, &state)) {
            tracing::warn!(
                model = %self.loaded.id,
                "a prompt of an earlier run cannot be used; Hob reads it again"
            );
            self.forget(place.slot);
        }
    }

    fn forget(&mut self, slot: usize) {
        self.slots.clear(slot);
        if let Some(context) = &mut self.context {
            remove(context, slot, 0);
        }
    }

    /// Saves the most used prompts for the next start.
    pub(crate) fn save_prompts(&self) {
        if let Some(context) = &self.context {
            self.saved.save(&self.slots.kept(), |slot, most| kv_state::read(context, slot, most));
        }
    }
}

#[cfg(test)]
#[path = "memory_tests.rs"]
mod tests;
