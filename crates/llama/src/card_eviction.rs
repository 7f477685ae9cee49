//! Graphics cards between models: which idle models leave so that another one fits, and what is free then. Pure.
//!
//! A model in use stays where it is, and nothing waits for it: another model can be loaded with fewer layers on the cards.

use std::time::Instant;

use hob_core::{ComputeDevice, DeviceShare};

use crate::cards::Card;
use crate::load_queue::{Resident, Room, idle_models};

/// The cards beside these parts of models.
pub(crate) fn beside<'a>(cards: &[Card], shares: impl Iterator<Item = &'a DeviceShare>) -> Vec<Card> {
    changed(cards, shares, |device, bytes| device.memory_free.saturating_sub(bytes))
}

/// The cards without these parts of models, which they hold now.
pub(crate) fn without<'a>(cards: &[Card], shares: impl Iterator<Item = &'a DeviceShare>) -> Vec<Card> {
    // The sizes of models are estimates. A card has not more than all of its memory.
    changed(cards, shares, |device, bytes| {
        let most = device.memory_total.max(device.memory_free);
        device.memory_free.saturating_add(bytes).min(most)
    })
}

/// The cards also without these parts of models that are being loaded, which hold between nothing and all of them. `before` are the cards
/// before the loading began, without the other models.
pub(crate) fn without_loading<'a>(
    cards: &[Card],
    shares: impl Iterator<Item = &'a DeviceShare>,
    before: &[Card],
) -> Vec<Card> {
    let mut most = without(cards, shares);
    for (card, now) in most.iter_mut().zip(cards) {
        let had = before.iter().find(|before| before.device.name == card.device.name);
        let free = had.map_or(0, |before| before.device.memory_free);
        // Other programs may have changed it since.
        card.device.memory_free = free.clamp(now.device.memory_free, card.device.memory_free);
    }
    most
}

fn changed<'a>(
    cards: &[Card],
    shares: impl Iterator<Item = &'a DeviceShare>,
    free: impl Fn(&ComputeDevice, u64) -> u64,
) -> Vec<Card> {
    let mut cards = cards.to_vec();
    for share in shares {
        for card in cards.iter_mut().filter(|card| card.device.name == share.device) {
            card.device.memory_free = free(&card.device, share.bytes);
        }
    }
    cards
}

/// What `wanted` needs more than `held`.
pub(crate) fn growth(held: &[DeviceShare], wanted: &[DeviceShare]) -> Vec<DeviceShare> {
    let more = |wanted: &DeviceShare| {
        let held = held.iter().find(|held| held.device == wanted.device).map_or(0, |held| held.bytes);
        DeviceShare { bytes: wanted.bytes.saturating_sub(held), ..wanted.clone() }
    };
    wanted.iter().map(more).filter(|share| share.bytes > 0).collect()
}

/// The models that remain when others leave.
pub(crate) fn remaining<'a>(residents: &[Resident<'a>], leaving: &[String]) -> Vec<Resident<'a>> {
    residents.iter().filter(|resident| !leaving.iter().any(|id| id == resident.id)).copied().collect()
}

/// Finds room on the cards: no more idle models leave than necessary, the least recently used ones first. `None` if that is not
/// enough; then none should leave. `cards` are without the memory of the residents, and `fits` says whether cards have enough.
pub(crate) fn make_card_room(
    cards: &[Card],
    residents: &[Resident<'_>],
    now: Instant,
    fits: impl Fn(&[Card]) -> bool,
) -> Option<Room> {
    let fits_without = |leaving: &[&Resident<'_>]| {
        let stays = |resident: &&Resident<'_>| !leaving.iter().any(|other| other.id == resident.id);
        let staying = residents.iter().filter(stays);
        fits(&beside(cards, staying.flat_map(|resident| resident.cards)))
    };
    let mut leaving = idle_models(residents, now);
    leaving.retain(|resident| !resident.cards.is_empty());
    let count = (0..=leaving.len()).find(|count| fits_without(&leaving[..*count]))?;
    leaving.truncate(count);
    // The last one must leave. Of the others, those that were used later stay if possible.
    for at in (0..count.saturating_sub(1)).rev() {
        let mut fewer = leaving.clone();
        fewer.remove(at);
        if fits_without(&fewer) {
            leaving = fewer;
        }
    }
    Some(Room::without(&leaving, now))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::fixtures::card;
    use crate::load_queue::Turn;

    const SECOND: Duration = Duration::from_secs(1);

    fn share(device: &str, bytes: u64) -> DeviceShare {
        DeviceShare { device: device.to_owned(), layers: 1, bytes }
    }

    /// Models that were loaded long ago: an answering one, and idle ones of 10, 30 and 40 bytes, the least recently used one first.
    struct Models {
        start: Instant,
        turn: Turn,
        cards: [Vec<DeviceShare>; 4],
    }

    impl Models {
        fn new() -> Self {
            let cards = [20, 10, 30, 40].map(|bytes| vec![share("CUDA0", bytes)]);
            Models { start: Instant::now(), turn: Turn::default(), cards }
        }

        fn residents(&self) -> Vec<Resident<'_>> {
            let of = |(at, id): (usize, &'static str)| Resident {
                id,
                bytes: 0,
                cards: &self.cards[at],
                users: usize::from(at == 0),
                last_used: self.start + SECOND * u32::try_from(at).expect("a small number"),
                loaded_at: self.start,
                load_time: SECOND,
                turn: &self.turn,
            };
            ["busy", "old", "recent", "latest"].into_iter().enumerate().map(of).collect()
        }

        /// The models that leave for one that needs this much of the first card.
        fn leaving(&self, needed: u64, after: Duration) -> Option<Room> {
            let fits = |cards: &[Card]| cards[0].device.memory_free >= needed;
            make_card_room(&[card(0, 100, 100)], &self.residents(), self.start + after, fits)
        }
    }

    fn now(ids: &[&str]) -> Option<Room> {
        Some(Room::Now(ids.iter().map(|id| (*id).to_owned()).collect()))
    }

    #[test]
    fn idle_models_leave_a_card_only_if_another_one_fits_then() {
        let (models, later) = (Models::new(), SECOND * 60);
        assert_eq!(models.leaving(0, later), now(&[]));
        assert_eq!(models.leaving(10, later), now(&["old"]));
        assert_eq!(models.leaving(40, later), now(&["old", "recent"]));
        // A model that answers stays, so there are never more than 80.
        assert_eq!(models.leaving(80, later), now(&["old", "recent", "latest"]));
        assert_eq!(models.leaving(81, later), None);
    }

    #[test]
    fn a_model_whose_memory_does_not_help_stays() {
        let (models, later) = (Models::new(), SECOND * 60);
        assert_eq!(models.leaving(30, later), now(&["recent"]));
        assert_eq!(models.leaving(70, later), now(&["recent", "latest"]));
        // It is on another card.
        let mut models = Models::new();
        models.cards[1] = vec![share("CUDA1", 10)];
        assert_eq!(models.leaving(40, later), now(&["recent"]));
        models.cards[2] = Vec::new();
        assert_eq!(models.leaving(80, later), now(&["latest"]));
    }

    #[test]
    fn a_model_that_was_just_used_stays_on_its_card_for_a_moment() {
        let models = Models::new();
        // The third and the last one answered a second and no time ago.
        assert_eq!(models.leaving(30, SECOND * 3), now(&["recent"]));
        let closing =
            Room::Later { closing: vec!["latest".to_owned()], recheck: Some(models.start + SECOND * 4) };
        assert_eq!(models.leaving(70, SECOND * 3), Some(closing));
    }

    #[test]
    fn memory_is_counted_on_the_card_that_has_it() {
        let cards = [card(0, 50, 100), card(1, 60, 100)];
        let shares = [share("CUDA1", 20), share("CUDA1", 30), share("CUDA2", 40)];
        assert_eq!(beside(&cards, shares.iter()), [card(0, 50, 100), card(1, 10, 100)]);
        assert_eq!(without(&cards, shares.iter()), [card(0, 50, 100), card(1, 100, 100)]);
        for (before, free) in [(10, 60), (70, 70), (99, 90)] {
            let loading = without_loading(&cards, [share("CUDA1", 30)].iter(), &[card(1, before, 100)]);
            assert_eq!(loading, [card(0, 50, 100), card(1, free, 100)]);
        }
        assert_eq!(
            growth(&[share("CUDA0", 5), share("CUDA1", 9)], &[share("CUDA0", 7), share("CUDA1", 9)]),
            [share("CUDA0", 2)]
        );
        assert_eq!(growth(&[share("CUDA0", 5)], &[]), []);
    }
}
