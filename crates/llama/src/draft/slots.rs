//! Which tokens are in the memory of a draft model, by the slots of its target. Pure: it decides, the drafter acts.
//!
//! A draft model follows the target late: its memory is compared with the text when guesses are wanted. So nothing that the target
//! does with its own memory must be repeated here, and wrong guesses are removed when the text is known.

use crate::prefix_cache::{Token, common_prefix};

/// Copying fewer tokens from another slot is not worth it.
const WORTH_COPYING: usize = 16;

#[derive(Debug, Default, Clone)]
struct DraftSlot {
    tokens: Vec<Token>,
    last_used: u64,
}

/// How the memory of a slot gets the beginning of a text.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Rewind {
    /// Its own first tokens stay.
    Keep(usize),
    /// The first tokens of another slot are copied.
    Copy { from: usize, length: usize },
}

/// The slots of one draft model.
#[derive(Debug)]
pub(crate) struct DraftSlots {
    slots: Vec<DraftSlot>,
    /// The capacity in tokens.
    cells: usize,
    clock: u64,
}

impl DraftSlots {
    pub(crate) fn new(count: usize, cells: usize) -> Self {
        DraftSlots { slots: vec![DraftSlot::default(); count], cells, clock: 0 }
    }

    pub(crate) fn cells(&self) -> usize {
        self.cells
    }

    /// Sets another capacity, which is not less.
    pub(crate) fn grow(&mut self, cells: usize) {
        self.cells = self.cells.max(cells);
    }

    /// The tokens in all slots. Those that slots share count more than once, which is safe.
    pub(crate) fn held(&self) -> usize {
        self.slots.iter().map(|slot| slot.tokens.len()).sum()
    }

    pub(crate) fn len(&self, slot: usize) -> usize {
        self.slots.get(slot).map_or(0, |slot| slot.tokens.len())
    }

    pub(crate) fn append(&mut self, slot: usize, tokens: &[Token]) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.tokens.extend_from_slice(tokens);
        }
    }

    /// Forgets what does not belong to this text, and uses what another slot has of it.
    pub(crate) fn rewind(&mut self, slot: usize, text: &[Token]) -> Rewind {
        self.clock += 1;
        let common = |slot: &DraftSlot| common_prefix(&slot.tokens, text);
        let own = self.slots.get(slot).map_or(0, common);
        let is_far = own + WORTH_COPYING <= text.len();
        let others = self.slots.iter().map(common).enumerate().filter(|_| is_far);
        let best =
            others.max_by_key(|(_, length)| *length).filter(|(_, length)| *length >= own + WORTH_COPYING);
        let clock = self.clock;
        let Some(chosen) = self.slots.get_mut(slot) else { return Rewind::Keep(0) };
        chosen.last_used = clock;
        match best {
            Some((from, length)) => {
                chosen.tokens.clear();
                chosen.tokens.extend_from_slice(&text[..length]);
                Rewind::Copy { from, length }
            }
            None => {
                chosen.tokens.truncate(own);
                Rewind::Keep(own)
            }
        }
    }

    /// The capacity for so many more tokens, without clearing anything.
    pub(crate) fn wanted(&self, more: usize) -> usize {
        self.held() + more
    }

    /// Clears slots until so many more tokens fit, the least recently used first and never those in `busy`. Returns the cleared ones;
    /// `None` if that is not enough.
    pub(crate) fn make_room(&mut self, more: usize, busy: &[usize]) -> Option<Vec<usize>> {
        let in_use: usize = busy.iter().map(|slot| self.len(*slot)).sum();
        if in_use + more > self.cells {
            return None;
        }
        let mut cleared = Vec::new();
        while self.held() + more > self.cells {
            let idle = |(at, slot): &(usize, &DraftSlot)| !busy.contains(at) && !slot.tokens.is_empty();
            let oldest = self.slots.iter().enumerate().filter(idle).min_by_key(|(_, slot)| slot.last_used);
            let (at, _) = oldest?;
            self.slots[at].tokens.clear();
            cleared.push(at);
        }
        Some(cleared)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(range: std::ops::Range<i32>) -> Vec<Token> {
        range.collect()
    }

    #[test]
    fn wrong_guesses_are_forgotten_and_right_ones_stay() {
        let mut slots = DraftSlots::new(2, 1000);
        slots.append(0, &[1, 2, 3, 10, 11, 12]);
        // The target chose 10, and then something else.
        assert_eq!(slots.rewind(0, &[1, 2, 3, 10, 20]), Rewind::Keep(4));
        assert_eq!(slots.len(0), 4);
        // Nothing is known of the text yet.
        assert_eq!(slots.rewind(1, &[7, 8]), Rewind::Keep(0));
    }

    #[test]
    fn a_text_that_another_slot_has_is_copied() {
        let mut slots = DraftSlots::new(3, 1000);
        slots.append(0, &tokens(0..100));
        slots.append(1, &[0, 1, 2, 500]);
        let alike: Vec<Token> = tokens(0..80).into_iter().chain(tokens(900..910)).collect();
        assert_eq!(slots.rewind(1, &alike), Rewind::Copy { from: 0, length: 80 });
        assert_eq!((slots.len(0), slots.len(1)), (100, 80));
        // A few tokens are read again.
        assert_eq!(slots.rewind(2, &tokens(0..10)), Rewind::Keep(0));
        // The own tokens are not copied.
        slots.append(1, &tokens(900..901));
        assert_eq!(slots.rewind(1, &alike), Rewind::Keep(81));
    }

    #[test]
    fn idle_slots_are_cleared_oldest_first_and_busy_ones_never() {
        let mut slots = DraftSlots::new(4, 300);
        for slot in [2, 0, 1] {
            slots.rewind(slot, &[]);
            slots.append(slot, &tokens(0..100));
        }
        assert_eq!(slots.wanted(50), 350);
        assert_eq!(slots.make_room(0, &[2]), Some(vec![]));
        assert_eq!(slots.make_room(50, &[2]), Some(vec![0]));
        assert_eq!(slots.make_room(201, &[2]), None);
        assert_eq!((slots.len(1), slots.len(2)), (100, 100), "nothing is cleared in vain");
        slots.grow(400);
        assert_eq!(slots.make_room(150, &[2]), Some(vec![]));
    }

    proptest! {
        #[test]
        fn a_slot_holds_a_beginning_of_its_text_after_any_history(
            texts in prop::collection::vec((0usize..3, prop::collection::vec(0i32..3, 0..60)), 1..20),
        ) {
            let mut slots = DraftSlots::new(3, 10_000);
            let mut memory = vec![Vec::new(); 3];
            for (slot, text) in texts {
                // What the drafter does with its memory.
                match slots.rewind(slot, &text) {
                    Rewind::Keep(length) => memory[slot].truncate(length),
                    Rewind::Copy { from, length } => memory[slot] = memory[from][..length].to_vec(),
                }
                let held = slots.len(slot);
                prop_assert_eq!(&memory[slot], &text[..held]);
                slots.append(slot, &text[held..]);
                memory[slot].extend_from_slice(&text[held..]);
                // A guess.
                slots.append(slot, &[1]);
                memory[slot].push(1);
            }
        }
    }
}
