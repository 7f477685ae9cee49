//! The prefix cache: which tokens are in the memory, and which slot is best for a prompt. Pure: it decides, the worker acts.
//!
//! Every sequence has a slot. A finished sequence leaves its tokens in its slot, so that the next request with the same beginning
//! need not read them again.

use crate::media;

pub(crate) type Token = i32;

/// Copying fewer tokens from another slot is not worth it.
const WORTH_SHARING: usize = 16;

/// A prompt waits for another one only if that saves this many tokens.
const WORTH_WAITING: usize = 64;

#[derive(Debug, Default)]
struct Slot {
    /// The tokens in the memory of this slot.
    tokens: Vec<Token>,
    /// Cells reserved for the active sequence, if any.
    reserved: Option<usize>,
    /// How often its tokens were used again.
    uses: usize,
    last_used: u64,
}

/// The slot for a prompt.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct SlotAssignment {
    pub(crate) slot: usize,
    /// The number of tokens that need not be read.
    pub(crate) reused: usize,
    /// The slot to copy them from, if it is not `slot`.
    pub(crate) copy_from: Option<usize>,
    /// Idle slots that must be cleared.
    pub(crate) forget: Vec<usize>,
}

/// The slots of one model.
#[derive(Debug)]
pub(crate) struct Slots {
    slots: Vec<Slot>,
    /// The capacity in tokens.
    cells: usize,
    reuse: Reuse,
    clock: u64,
    /// Whether a prompt ever had a picture.
    has_pictures: bool,
}

/// Whether a prefix of a sequence can be kept. Recurrent models cannot do that.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reuse {
    Prefixes,
    Nothing,
}

impl Slots {
    pub(crate) fn new(count: usize, cells: usize, reuse: Reuse) -> Self {
        Slots {
            slots: (0..count).map(|_| Slot::default()).collect(),
            cells,
            reuse,
            clock: 0,
            has_pictures: false,
        }
    }

    pub(crate) fn cells(&self) -> usize {
        self.cells
    }

    /// Sets a larger capacity.
    pub(crate) fn grow(&mut self, cells: usize) {
        self.cells = self.cells.max(cells);
    }

    /// The capacity for `cells` more: without clearing anything up to `cached`, and for active sequences beyond.
    pub(crate) fn wanted(&self, cells: usize, cached: usize) -> usize {
        let taken = |slot: &Slot| slot.reserved.unwrap_or(slot.tokens.len());
        let all = self.slots.iter().map(taken).sum::<usize>() + cells;
        all.min(cached.max(self.promised() + cells))
    }

    /// The tokens in all slots. Shared cells count more than once.
    pub(crate) fn held(&self) -> usize {
        self.slots.iter().map(|slot| slot.tokens.len()).sum()
    }

    /// The longest beginning of a prompt that a slot has.
    pub(crate) fn longest_match(&self, prompt: &[Token]) -> usize {
        self.slots.iter().map(|slot| common_prefix(&slot.tokens, prompt)).max().unwrap_or(0)
    }

    /// Takes an idle slot for tokens whose state comes from elsewhere; `None` if there is none. They stay in the cache.
    pub(crate) fn adopt(&mut self, tokens: &[Token]) -> Option<SlotAssignment> {
        let place = self.follow(tokens.len())?;
        let slot = self.slots.get_mut(place.slot)?;
        slot.tokens.extend_from_slice(tokens);
        // It proved useful before.
        slot.uses = 1;
        self.release(place.slot);
        Some(place)
    }

    /// The idle slots with their tokens, the most used and then the most recent first. Those with pictures are not kept: their
    /// positions are not those of the tokens.
    pub(crate) fn kept(&self) -> Vec<(usize, &[Token])> {
        if self.reuse == Reuse::Nothing {
            return Vec::new();
        }
        let is_text = |slot: &Slot| !slot.tokens.iter().any(|token| media::is_stand_in(*token));
        let idle =
            |(_, slot): &(usize, &Slot)| slot.reserved.is_none() && !slot.tokens.is_empty() && is_text(slot);
        let mut kept: Vec<(usize, &Slot)> = self.slots.iter().enumerate().filter(idle).collect();
        kept.sort_by_key(|(_, slot)| std::cmp::Reverse((slot.uses, slot.last_used)));
        kept.into_iter().map(|(at, slot)| (at, slot.tokens.as_slice())).collect()
    }

    pub(crate) fn idle(&self) -> usize {
        self.slots.iter().filter(|slot| slot.reserved.is_none()).count()
    }

    /// Whether `cells` can be reserved now, possibly by clearing idle slots.
    pub(crate) fn has_room(&self, cells: usize) -> bool {
        self.promised() + cells <= self.cells
    }

    /// Whether a prompt should wait until `being_read` is in the memory. Otherwise both would read the same tokens, and both
    /// would be later.
    pub(crate) fn is_worth_waiting(&self, prompt: &[Token], being_read: &[Token]) -> bool {
        let common = common_prefix(being_read, prompt);
        // Most prompts differ early.
        if self.reuse == Reuse::Nothing || common < WORTH_WAITING {
            return false;
        }
        common >= self.longest_match(prompt) + WORTH_WAITING
    }

    /// Finds a slot for a prompt that needs `cells`, and reserves it; `None` if there is none.
    pub(crate) fn place(&mut self, prompt: &[Token], cells: usize) -> Option<SlotAssignment> {
        if !self.has_room(cells) {
            return None;
        }
        // The last token is always read, because its scores are needed.
        let most = match self.reuse {
            Reuse::Prefixes => prompt.len().saturating_sub(1),
            Reuse::Nothing => 0,
        };
        let shared = |slot: &Slot| common_prefix(&slot.tokens, prompt).min(most);
        let (best, reused) = self
            .slots
            .iter()
            .enumerate()
            .map(|(at, slot)| (at, shared(slot)))
            .max_by_key(|&(at, len)| (len, self.slots[at].reserved.is_none(), std::cmp::Reverse(at)))?;

        let goes_on = |slot: &Slot| slot.reserved.is_none() && reused * 2 >= slot.tokens.len();
        let (slot, copy_from) = if reused > 0 && goes_on(&self.slots[best]) {
            (best, None)
        } else {
            // Another conversation with the same beginning keeps its tokens, if another slot is free.
            let shares = reused >= WORTH_SHARING;
            match self.least_recent(shares.then_some(best)) {
                Some(other) => (other, shares.then_some(best)),
                None if self.slots[best].reserved.is_none() => (best, None),
                None => return None,
            }
        };
        let reused = if copy_from.is_some() || slot == best { reused } else { shared(&self.slots[slot]) };
        let continues = copy_from.is_none() && reused > 0;
        if let Some(from) = copy_from.and_then(|from| self.slots.get_mut(from)) {
            from.uses += 1;
        }

        self.clock += 1;
        let clock = self.clock;
        let chosen = self.slots.get_mut(slot)?;
        chosen.tokens.clear();
        chosen.tokens.extend_from_slice(&prompt[..reused]);
        chosen.uses = if continues { chosen.uses + 1 } else { 0 };
        chosen.reserved = Some(cells);
        chosen.last_used = clock;
        let forget = self.make_room(copy_from);
        // Cleared tokens cannot be copied.
        let lost = copy_from.is_some_and(|from| forget.contains(&from));
        if lost && let Some(chosen) = self.slots.get_mut(slot) {
            chosen.tokens.clear();
        }
        Some(SlotAssignment {
            slot,
            reused: if lost { 0 } else { reused },
            copy_from: copy_from.filter(|_| !lost),
            forget,
        })
    }

    /// Takes an idle slot for a sequence that is copied from another one.
    pub(crate) fn follow(&mut self, cells: usize) -> Option<SlotAssignment> {
        if !self.has_room(cells) {
            return None;
        }
        let slot = self.least_recent(None)?;
        self.clock += 1;
        let clock = self.clock;
        let chosen = self.slots.get_mut(slot)?;
        chosen.tokens.clear();
        chosen.reserved = Some(cells);
        chosen.last_used = clock;
        let forget = self.make_room(None);
        Some(SlotAssignment { slot, reused: 0, copy_from: None, forget })
    }

    pub(crate) fn append(&mut self, slot: usize, token: Token) {
        self.has_pictures |= media::is_stand_in(token);
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.tokens.push(token);
        }
    }

    /// `slot` is now a copy of `from`.
    pub(crate) fn copied(&mut self, from: usize, slot: usize) {
        let tokens = self.slots.get(from).map(|slot| slot.tokens.clone()).unwrap_or_default();
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.tokens = tokens;
        }
    }

    /// The tokens in a slot.
    pub(crate) fn tokens(&self, slot: usize) -> &[Token] {
        self.slots.get(slot).map(|slot| slot.tokens.as_slice()).unwrap_or_default()
    }

    /// The number of tokens in a slot.
    pub(crate) fn len(&self, slot: usize) -> usize {
        self.slots.get(slot).map_or(0, |slot| slot.tokens.len())
    }

    /// The position after the first `length` tokens of a slot. Pictures may take fewer positions than tokens.
    pub(crate) fn position(&self, slot: usize, length: usize) -> usize {
        if !self.has_pictures {
            return length;
        }
        let tokens = self.slots.get(slot).and_then(|slot| slot.tokens.get(..length));
        tokens.map_or(length, media::positions)
    }

    /// The sequence ended. Its tokens stay in the cache.
    pub(crate) fn release(&mut self, slot: usize) {
        self.clock += 1;
        let clock = self.clock;
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.reserved = None;
            slot.last_used = clock;
        }
    }

    /// The memory of this slot was cleared.
    pub(crate) fn clear(&mut self, slot: usize) {
        if let Some(slot) = self.slots.get_mut(slot) {
            slot.tokens.clear();
        }
    }

    /// The whole memory was cleared.
    pub(crate) fn clear_all(&mut self) {
        self.slots.iter_mut().for_each(|slot| slot.tokens.clear());
    }

    fn promised(&self) -> usize {
        self.slots.iter().filter_map(|slot| slot.reserved).sum()
    }

    fn least_recent(&self, except: Option<usize>) -> Option<usize> {
        self.slots
            .iter()
            .enumerate()
            .filter(|&(at, slot)| slot.reserved.is_none() && Some(at) != except)
            .min_by_key(|(_, slot)| (!slot.tokens.is_empty(), slot.last_used))
            .map(|(at, _)| at)
    }

    /// Clears idle slots, the oldest first and `spare` last, until all reservations fit. Shared cells count more than once, which
    /// is safe.
    fn make_room(&mut self, spare: Option<usize>) -> Vec<usize> {
        let mut forgotten = Vec::new();
        loop {
            let kept: usize =
                self.slots.iter().filter(|slot| slot.reserved.is_none()).map(|slot| slot.tokens.len()).sum();
            if self.promised() + kept <= self.cells {
                return forgotten;
            }
            let oldest = self
                .slots
                .iter()
                .enumerate()
                .filter(|(_, slot)| slot.reserved.is_none() && !slot.tokens.is_empty())
                .min_by_key(|&(at, slot)| (Some(at) == spare, slot.last_used))
                .map(|(at, _)| at);
            let Some(oldest) = oldest else {
                return forgotten;
            };
            self.clear(oldest);
            forgotten.push(oldest);
        }
    }
}

pub(crate) fn common_prefix(a: &[Token], b: &[Token]) -> usize {
    a.iter().zip(b).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tokens(range: std::ops::Range<i32>) -> Vec<Token> {
        range.collect()
    }

    /// Runs a prompt to its end in one go.
    fn run(slots: &mut Slots, prompt: &[Token], answer: &[Token]) -> SlotAssignment {
        let place = slots.place(prompt, prompt.len() + answer.len()).expect("a free slot");
        for &token in prompt[place.reused..].iter().chain(answer) {
            slots.append(place.slot, token);
        }
        slots.release(place.slot);
        place
    }

    #[test]
    fn the_next_turn_of_a_conversation_finds_its_slot() {
        let mut slots = Slots::new(4, 10_000, Reuse::Prefixes);
        let first = run(&mut slots, &tokens(0..100), &tokens(500..550));
        run(&mut slots, &tokens(1000..1100), &[]);
        let history: Vec<Token> =
            tokens(0..100).into_iter().chain(tokens(500..550)).chain(tokens(600..620)).collect();
        let second = run(&mut slots, &history, &[]);
        assert_eq!((second.slot, second.reused, second.copy_from), (first.slot, 150, None));
    }

    #[test]
    fn the_last_token_of_a_prompt_is_always_read() {
        let mut slots = Slots::new(2, 1000, Reuse::Prefixes);
        run(&mut slots, &tokens(0..50), &[]);
        assert_eq!(run(&mut slots, &tokens(0..50), &[]).reused, 49);
    }

    #[test]
    fn a_common_prefix_is_copied_and_the_other_conversation_stays() {
        let mut slots = Slots::new(3, 10_000, Reuse::Prefixes);
        let first = run(&mut slots, &tokens(0..100), &tokens(500..700));
        let alike: Vec<Token> = tokens(0..100).into_iter().chain(tokens(900..910)).collect();
        let second = run(&mut slots, &alike, &[]);
        assert_eq!((second.reused, second.copy_from), (100, Some(first.slot)));
        assert_eq!(slots.len(first.slot), 300);
    }

    #[test]
    fn the_prompt_of_a_running_sequence_can_be_copied() {
        let mut slots = Slots::new(2, 10_000, Reuse::Prefixes);
        let first = slots.place(&tokens(0..100), 200).expect("room");
        tokens(0..100).into_iter().for_each(|token| slots.append(first.slot, token));
        let second = slots.place(&tokens(0..100), 200).expect("room");
        assert_eq!((second.reused, second.copy_from), (99, Some(first.slot)));
    }

    #[test]
    fn a_prompt_waits_for_another_if_that_saves_enough() {
        let mut slots = Slots::new(2, 10_000, Reuse::Prefixes);
        let being_read = tokens(0..1000);
        let alike =
            |shared: i32| -> Vec<Token> { tokens(0..shared).into_iter().chain(tokens(5000..5100)).collect() };
        let place = slots.place(&being_read, 2000).expect("room");
        assert!(slots.is_worth_waiting(&alike(900), &being_read));
        assert!(!slots.is_worth_waiting(&alike(40), &being_read));
        // Read so far that the rest is not worth it.
        tokens(0..880).into_iter().for_each(|token| slots.append(place.slot, token));
        assert!(!slots.is_worth_waiting(&alike(900), &being_read));
        assert!(!Slots::new(2, 10_000, Reuse::Nothing).is_worth_waiting(&alike(900), &being_read));
    }

    #[test]
    fn reserved_memory_is_not_given_twice() {
        let mut slots = Slots::new(4, 1000, Reuse::Prefixes);
        assert!(slots.place(&tokens(0..10), 600).is_some());
        assert_eq!(slots.place(&tokens(20..30), 600), None);
        assert!(slots.place(&tokens(20..30), 400).is_some());
    }

    #[test]
    fn idle_slots_are_cleared_oldest_first() {
        let mut slots = Slots::new(3, 300, Reuse::Prefixes);
        let old = run(&mut slots, &tokens(0..100), &[]);
        run(&mut slots, &tokens(1000..1100), &[]);
        let place = slots.place(&tokens(2000..2100), 200).expect("room");
        assert_eq!(place.forget, [old.slot]);
        assert_eq!(slots.len(old.slot), 0);
    }

    #[test]
    fn memory_grows_for_cached_tokens_only_up_to_a_limit() {
        let mut slots = Slots::new(4, 1000, Reuse::Prefixes);
        run(&mut slots, &tokens(0..300), &[]);
        assert_eq!(slots.wanted(200, 1000), 500);
        assert_eq!(slots.wanted(200, 400), 400);
        assert_eq!(slots.wanted(600, 400), 600);
        let _ = slots.place(&tokens(1000..1100), 300).expect("room");
        assert_eq!(slots.wanted(200, 400), 500);
    }

    #[test]
    fn adopted_tokens_are_found_and_the_most_used_are_kept_first() {
        let mut slots = Slots::new(3, 10_000, Reuse::Prefixes);
        run(&mut slots, &tokens(5000..5100), &[]);
        let place = slots.adopt(&tokens(0..100)).expect("an idle slot");
        run(&mut slots, &tokens(7000..7100), &[]);
        assert_eq!(slots.kept().iter().map(|(_, kept)| kept[0]).collect::<Vec<_>>(), [0, 7000, 5000]);
        assert_eq!(slots.longest_match(&tokens(0..120)), 100);
        assert_eq!(run(&mut slots, &tokens(0..120), &[]), SlotAssignment { reused: 100, ..place });
        assert_eq!(Slots::new(3, 10_000, Reuse::Nothing).kept(), []);
    }

    #[test]
    fn no_slot_is_given_while_all_run() {
        let mut slots = Slots::new(1, 1000, Reuse::Prefixes);
        let place = slots.place(&tokens(0..10), 20).expect("room");
        assert_eq!(slots.place(&tokens(0..10), 20), None);
        slots.release(place.slot);
        assert!(slots.place(&tokens(0..10), 20).is_some());
    }
}
