//! Where models go on graphics cards, with the header of a real model.

use std::sync::Arc;
use std::time::Duration;

use hob_core::DeviceShare;
use hob_testkit::gguf::MetadataValue;

use super::*;
use crate::fixtures::{GB, RESERVE, card, changed_model, stored_model};
use crate::load_queue::Turn;
use crate::options::GpuLayers;

/// Long after the residents were used.
const LATER: Duration = Duration::from_secs(60);

/// The size of the model does not depend on the room for it.
fn options(gpu_layers: GpuLayers) -> LlamaOptions {
    LlamaOptions {
        context: Some(1024),
        parallel: Some(1),
        gpu_layers,
        memory_budget: 8 * GB,
        ..LlamaOptions::new("")
    }
}

/// The parts of the model if a card has room for all of it.
fn whole(stored: &StoredModel, options: &LlamaOptions) -> MemoryParts {
    LoadPlan::on(vec![card(0, RESERVE + 7 * GB, 8 * GB)], stored, options).expect("a header").at_start()
}

/// Models in memory: their users, and their bytes of the main memory and of the card.
struct Residents {
    start: Instant,
    turn: Turn,
    models: Vec<(&'static str, usize, u64, Vec<DeviceShare>)>,
}

impl Residents {
    fn new(models: &[(&'static str, usize, u64, u64)]) -> Self {
        let share = |bytes| DeviceShare { device: "CUDA0".to_owned(), layers: 1, bytes };
        let models =
            models.iter().map(|(id, users, main, on_card)| (*id, *users, *main, vec![share(*on_card)]));
        Residents { start: Instant::now(), turn: Turn::default(), models: models.collect() }
    }

    fn list(&self) -> Vec<Resident<'_>> {
        self.models
            .iter()
            .map(|(id, users, main, cards)| Resident {
                id,
                bytes: *main,
                cards,
                users: *users,
                last_used: self.start,
                loaded_at: self.start,
                load_time: Duration::ZERO,
                turn: &self.turn,
            })
            .collect()
    }

    /// How the model gets its memory on a card with so many bytes for all models.
    fn place(&self, stored: &StoredModel, options: &LlamaOptions, room: u64) -> (Room, MemoryParts) {
        let model = WaitingModel { stored: stored.clone(), cards: vec![card(0, RESERVE + room, 8 * GB)] };
        let group = Group { id: "new".to_owned(), model, bytes: 0, waiters: vec![()] };
        find_room(&group, &self.list(), options, self.start + LATER)
    }
}

fn now(ids: &[&str]) -> Room {
    Room::Now(ids.iter().map(|id| (*id).to_owned()).collect())
}

fn layers(memory: &MemoryParts) -> u32 {
    memory.cards.iter().map(|share| share.layers).sum()
}

#[test]
fn an_idle_model_leaves_the_card_if_all_layers_of_the_new_one_fit_then() {
    let stored = stored_model();
    let options = options(GpuLayers::Auto);
    let whole = whole(&stored, &options);
    let (size, all) = (whole.on_cards(), layers(&whole));
    let idle = Residents::new(&[("old", 0, 0, size)]);
    // There is room for both.
    assert_eq!(idle.place(&stored, &options, 2 * size), (now(&[]), whole.clone()));
    assert_eq!(idle.place(&stored, &options, 2 * size - 1), (now(&["old"]), whole.clone()));
    assert_eq!(idle.place(&stored, &options, size), (now(&["old"]), whole));
    // It would not fit in any case, and gets what is there.
    let (room, parts) = idle.place(&stored, &options, size - 1);
    assert_eq!((room, parts.cards), (now(&[]), vec![]));
    // A model that answers stays.
    let busy = Residents::new(&[("old", 1, 0, size / 8)]);
    let (room, parts) = busy.place(&stored, &options, size);
    assert_eq!(room, now(&[]));
    assert!((1..all).contains(&layers(&parts)), "{parts:?}");
}

#[test]
fn an_idle_model_leaves_the_card_for_the_layers_that_the_settings_ask_for() {
    let stored = stored_model();
    let options = options(GpuLayers::Count(10));
    let wanted = whole(&stored, &options);
    assert_eq!(layers(&wanted), 10);
    let size = wanted.on_cards();
    let idle = Residents::new(&[("old", 0, 0, size)]);
    assert_eq!(idle.place(&stored, &options, 2 * size), (now(&[]), wanted.clone()));
    assert_eq!(idle.place(&stored, &options, size), (now(&["old"]), wanted.clone()));
    assert_eq!(idle.place(&stored, &options, size - 1), (now(&[]), wanted));
}

#[test]
fn a_model_that_embeds_unloads_none_that_writes() {
    let (_dir, stored) = changed_model(&[("llama.pooling_type", MetadataValue::Number(1))]);
    let options = options(GpuLayers::Auto);
    let size = whole(&stored, &options).on_cards();
    let idle = Residents::new(&[("old", 0, 0, size)]);
    let (room, parts) = idle.place(&stored, &options, size);
    assert_eq!((room, parts.cards), (now(&[]), vec![]));
}

#[test]
fn the_main_memory_is_only_for_what_the_card_does_not_hold() {
    let stored = stored_model();
    let whole = whole(&stored, &options(GpuLayers::Auto));
    let size = whole.on_cards();
    // The model would need more than the limit without the card.
    let options = LlamaOptions { memory_budget: whole.main + GB, ..options(GpuLayers::Auto) };
    let residents = Residents::new(&[("old", 0, 0, size), ("processor", 0, GB, 0)]);
    assert_eq!(residents.place(&stored, &options, size), (now(&["old"]), whole.clone()));
    let less = LlamaOptions { memory_budget: whole.main + GB - 1, ..options };
    assert_eq!(residents.place(&stored, &less, size), (now(&["old", "processor"]), whole));
}

#[test]
fn a_draft_model_takes_no_layers_of_its_target_from_the_card() {
    let stored = stored_model();
    let options = options(GpuLayers::Auto);
    let alone = whole(&stored, &options);
    let drafted = StoredModel { draft: Some(Arc::new(stored.clone())), ..stored };
    let on_card =
        |free| LoadPlan::on(vec![card(0, RESERVE + free, 8 * GB)], &drafted, &options).expect("a header");
    assert!(on_card(7 * GB).draft.is_some());
    let tight = on_card(alone.on_cards() + alone.on_cards() / 2);
    assert!(tight.draft.is_none());
    assert_eq!(tight.at_start(), alone);
}
