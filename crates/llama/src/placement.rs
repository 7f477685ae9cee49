//! Where a model goes that waits to be loaded, and which models leave for it. Pure.

use std::time::Instant;

use hob_models::StoredModel;

use crate::card_eviction::{beside, make_card_room, remaining};
use crate::cards::Card;
use crate::load_queue::{Group, Resident, Room, make_room};
use crate::loading::LoadPlan;
use crate::model_memory::MemoryParts;
use crate::options::LlamaOptions;

/// A model that waits for memory.
#[derive(Debug, Clone)]
pub(crate) struct WaitingModel {
    pub(crate) stored: StoredModel,
    /// The graphics cards without the memory of the models of this process; none if it cannot use any.
    pub(crate) cards: Vec<Card>,
}

impl WaitingModel {
    /// Whether idle models leave the cards for it. Not for a model that embeds: most are small enough for the processor. Questions
    /// and texts to embed often take turns, and would load both models again and again.
    fn displaces_others(&self) -> bool {
        let only_embeds = self.stored.header.as_ref().is_some_and(|header| header.is_embedding);
        !self.cards.is_empty() && !only_embeds
    }
}

/// How a model gets its memory, and its parts then. Idle models leave the cards only if all of its layers fit there without them.
pub(crate) fn find_room<W>(
    group: &Group<WaitingModel, W>,
    residents: &[Resident<'_>],
    options: &LlamaOptions,
    now: Instant,
) -> (Room, MemoryParts) {
    let model = &group.model;
    let planned = |cards: &[Card]| LoadPlan::on(cards.to_vec(), &model.stored, options);
    let is_complete = |cards: &[Card]| planned(cards).is_some_and(|plan| plan.is_complete());
    let room = match model.displaces_others() {
        true => make_card_room(&model.cards, residents, now, is_complete),
        false => None,
    };
    let leaving = match room {
        Some(Room::Now(ids)) => ids,
        Some(later) => return (later, MemoryParts::default()),
        None => Vec::new(),
    };
    let staying = remaining(residents, &leaving);
    let shares = staying.iter().flat_map(|resident| resident.cards);
    let plan = if model.cards.is_empty() { None } else { planned(&beside(&model.cards, shares)) };
    let memory = match plan {
        Some(plan) => plan.at_start(),
        None => MemoryParts { main: group.bytes, cards: Vec::new() },
    };
    let room = match make_room(&staying, options.memory_budget, memory.main, now) {
        Room::Now(more) => Room::Now(leaving.into_iter().chain(more).collect()),
        later => later,
    };
    (room, memory)
}

#[cfg(test)]
#[path = "placement_tests.rs"]
mod tests;
