//! What the threads of models tell the cache of models, and ask of it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{MEMORY_TIMEOUT, ModelCache};
use crate::batching::GrowthNeed;
use crate::cache_entry::Entry;
use crate::card_eviction::{beside, growth, make_card_room, remaining};
use crate::cards::have_room;
use crate::load_queue::{Resident, Room, make_room};
use crate::model_memory::MemoryParts;
use crate::model_thread::ThreadOwner;

impl ThreadOwner for ModelCache {
    /// A model was loaded.
    fn has_loaded(&self, id: &str, number: u64, memory: Option<MemoryParts>, took: Duration) {
        let mut state = self.state.lock();
        if let Some(entry) = state.entries.get_mut(id).filter(|entry| entry.number == number) {
            if let Some(memory) = memory {
                entry.memory = memory;
            }
            entry.is_loaded = true;
            entry.load_time = took;
            entry.last_used = Instant::now();
            self.pace.loaded(entry.memory.total(), took);
        }
    }

    /// Whether a model may use this much memory. If it needs it now, idle models are unloaded for it.
    fn resize(&self, id: &str, number: u64, wanted: MemoryParts, need: GrowthNeed) -> bool {
        let more = match self.state.lock().entries.get(id) {
            Some(entry) if entry.number == number => growth(&entry.memory.cards, &wanted.cards),
            _ => return true,
        };
        // Outside the lock, because a driver may take a while to answer.
        let cards = if more.is_empty() { Vec::new() } else { (self.cards)(self.options.gpu_layers) };
        let leaving: Vec<Entry> = {
            let mut state = self.state.lock();
            let Some(own) = state.entries.get_mut(id).filter(|entry| entry.number == number) else {
                return true;
            };
            if more.is_empty() && wanted.main <= own.memory.main {
                own.memory = wanted;
                return true;
            }
            if wanted.main > self.options.memory_budget {
                return false;
            }
            let held = own.memory.cards.clone();
            let cards = beside(&state.without_loaded(&cards), held.iter());
            let others = state.entries.iter().filter(|(other, _)| *other != id);
            let others: Vec<Resident<'_>> = others.map(|(id, entry)| entry.resident(id)).collect();
            // An idle model that was just used leaves, too: this request cannot wait for anything else.
            let later = Instant::now() + MEMORY_TIMEOUT;
            let of_cards = make_card_room(&cards, &others, later, |cards| have_room(cards, &more));
            let Some(Room::Now(mut leaving)) = of_cards else { return false };
            let staying = remaining(&others, &leaving);
            match make_room(&staying, self.options.memory_budget, wanted.main, later) {
                Room::Now(ids) => leaving.extend(ids),
                Room::Later { .. } => return false,
            }
            if need == GrowthNeed::Later && !leaving.is_empty() {
                return false;
            }
            if let Some(entry) = state.entries.get_mut(id) {
                entry.memory = wanted;
            }
            leaving.iter().filter_map(|id| state.remove(id)).collect()
        };
        for Entry { thread, loading, .. } in leaving {
            drop(loading);
            thread.join();
        }
        true
    }

    /// Removes a model, unless it is in use.
    fn retire(self: Arc<Self>, id: &str, number: u64) -> bool {
        let gone = {
            let mut state = self.state.lock();
            let gone = match state.entries.get(id) {
                Some(entry) if entry.number == number => entry.users == 0,
                _ => return true,
            };
            if gone {
                drop(state.remove(id));
            }
            gone
        };
        self.advance();
        gone
    }

    /// Removes a model, in use or not.
    fn remove(self: Arc<Self>, id: &str, number: u64) {
        {
            let mut state = self.state.lock();
            if state.entries.get(id).is_some_and(|entry| entry.number == number) {
                drop(state.remove(id));
            }
        }
        self.advance();
    }
}
