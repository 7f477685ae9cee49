//! The memory of a worker: it grows for conversations, and keeps prompts of earlier runs.

use std::sync::atomic::Ordering;

use super::{GrowthNeed, Worker};
use crate::context_memory::{copy, move_memory, remove};
use crate::kv_state;
use crate::prefix_cache::{SlotAssignment, Slots, Token};

impl Worker<'_> {
    /// Grows the memory for one more sequence, within the limit, so that nothing must be cleared.
    pub(super) fn grow(&mut self, cells: usize) {
        let size = self.loaded.context_size;
        let most = size.cells as usize;
        let (now, wanted) = (self.slots.cells(), self.slots.wanted(cells, size.cached_cells as usize));
        let Some(context) = &self.context else { return };
        if wanted <= now || now >= most {
            return;
        }
        let mut cells = now.max(1);
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
        let claimed = u32::try_from(cells).ok().filter(|cells| (self.claim)(*cells, need));
        let made = claimed.and_then(|cells| self.loaded.writing_context(cells).ok());
        let moved = made.and_then(|mut larger| move_memory(context, &mut larger).then_some(larger));
        match moved {
            Some(larger) => {
                tracing::debug!(model = %self.loaded.id, cells, "growing the memory of the model");
                self.context = Some(larger);
                self.slots.grow(cells);
            }
            // The others continue, and the new one waits.
            None => {
                tracing::warn!(model = %self.loaded.id, cells, "not enough memory for more conversations");
                self.refused = Some((cells, writing));
                if let Some(before) = claimed.and_then(|_| u32::try_from(now).ok()) {
                    (self.claim)(before, GrowthNeed::Later);
                }
            }
        }
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
        self.loaded.embeds_too.store(false, Ordering::Relaxed);
        self.claim_again(GrowthNeed::Later);
        false
    }

    /// Asks for the memory of the model with as many cells as it has.
    fn claim_again(&mut self, need: GrowthNeed) -> bool {
        let cells = u32::try_from(self.slots.cells()).unwrap_or(u32::MAX);
        (self.claim)(cells, need)
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
            tracing::warn!(model = %self.loaded.id, "cannot use a prompt of an earlier run");
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
            self.saved.save(&self.slots.kept(), |slot| kv_state::read(context, slot));
        }
    }
}
