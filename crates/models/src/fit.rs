//! Whether a model fits this machine, which context it gets, and how fast it is expected to be. All are estimates, and are shown
//! as estimates. Pure.

use crate::catalogue::{CatalogueEntry, catalogue};
use crate::gguf::{CELL_PADDING, ContextShape, KvPrecision, MemoryEstimate, MemoryNeeds};

/// The most conversations that one model answers concurrently.
pub const MAX_SLOTS: usize = 64;

/// The longest context that is chosen automatically. A request without a limit for its answer reserves all of it.
const MAX_AUTOMATIC_CONTEXT: u64 = 32_768;

/// The context of a model that does not say what it was trained for.
const UNKNOWN_CONTEXT: u64 = 8192;

/// A context that is enough for most conversations. A model that has no room for it does not fit.
const USUAL_CONTEXT: u64 = 8192;

/// A model gets no shorter context to make it fit.
const LEAST_CONTEXT: u64 = 512;

/// No more conversations than the memory has room for with this many tokens each.
const LEAST_TOKENS_PER_SLOT: u64 = 512;

/// The part of the free memory that the states of recurrent layers may have.
const STATE_SHARE: u64 = 4;

/// The first cells that are allocated: for a few short conversations, or the prompt of an agent.
const FIRST_CELLS: u64 = 1024;

/// Conversations of full length that graphics cards have memory for. It is allocated at once, and other models need some, too.
const CONVERSATIONS_ON_CARDS: u64 = 2;

/// The part of the memory's bandwidth that generation reaches.
const BANDWIDTH_USED: f64 = 0.7;

/// Bytes of quantised weights that one core multiplies in a second.
const BYTES_PER_CORE: f64 = 5e9;

/// A model that is offered should write faster than people read.
const LEAST_OFFERED_SPEED: f64 = 8.0;

/// Disk space that stays free after a download.
const DISK_RESERVE: u64 = 2 << 30;

/// What the settings ask for, and what the machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextWish {
    /// Tokens of one conversation; `None` for as many as fit, up to the training context.
    pub context: Option<u64>,
    /// Conversations at a time; `None` for as many as fit.
    pub slots: Option<usize>,
    pub kv: KvPrecision,
    /// Tokens of one batch.
    pub batch: u64,
    /// Bytes of the main memory for all models.
    pub memory: u64,
}

impl ContextWish {
    /// The context of a usual conversation with a model that was trained for this many tokens.
    fn usual(&self, trained: Option<u64>) -> u64 {
        let trained = trained.filter(|length| *length > 0).unwrap_or(USUAL_CONTEXT);
        self.context.unwrap_or(trained.min(USUAL_CONTEXT))
    }
}

/// How an engine divides the memory of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextPlan {
    /// Tokens of one conversation.
    pub context: u64,
    /// Tokens of all conversations together, at most. Less than `context` for each: few use all of it.
    pub cells: u64,
    /// Conversations at a time.
    pub slots: usize,
    pub batch: u64,
    pub kv: KvPrecision,
}

impl ContextPlan {
    /// The plan for a model that was trained for this many tokens. A context that was asked for is kept, whether it fits or not.
    pub fn new(needs: &MemoryNeeds, trained: Option<u64>, wish: &ContextWish) -> Self {
        let trained = trained.filter(|length| *length > 0).unwrap_or(UNKNOWN_CONTEXT);
        let longest = wish.context.unwrap_or(trained.min(MAX_AUTOMATIC_CONTEXT)).max(1);
        let mut slots = wish.slots.unwrap_or(MAX_SLOTS).clamp(1, MAX_SLOTS);
        let fixed = |slots: usize| {
            let shape = ContextShape { cells: 0, slots: slots as u64, batch: wish.batch, kv: wish.kv };
            needs.estimate(shape).total()
        };
        let free = wish.memory.saturating_sub(fixed(1));
        if wish.slots.is_none()
            && let Some(most) = (free / STATE_SHARE).checked_div(needs.state())
        {
            slots = slots.min(usize::try_from(most).unwrap_or(MAX_SLOTS)).max(1);
        }
        let room = wish.memory.saturating_sub(fixed(slots));
        let affordable = room.checked_div(needs.per_cell(wish.batch, wish.kv)).unwrap_or(u64::MAX);
        let affordable = affordable / CELL_PADDING * CELL_PADDING;
        let context = match wish.context {
            Some(_) => longest,
            None => longest.min(affordable.max(LEAST_CONTEXT)),
        };
        let cells = context.saturating_mul(slots as u64).min(affordable).max(context);
        if wish.slots.is_none() {
            let most = usize::try_from(cells / LEAST_TOKENS_PER_SLOT).unwrap_or(MAX_SLOTS);
            slots = slots.min(most).max(1);
        }
        ContextPlan { context, cells, slots, batch: wish.batch, kv: wish.kv }
    }

    /// The plan for layers on graphics cards that have `cards` bytes for models. The context is what fits there beside the whole
    /// model. A model that does not fit gets the usual context, so that more of its layers do.
    pub fn on_cards(needs: &MemoryNeeds, trained: Option<u64>, wish: &ContextWish, cards: u64) -> Self {
        let usual = wish.usual(trained);
        let alone = ContextShape { cells: usual, slots: 1, batch: wish.batch, kv: wish.kv };
        let wish = match needs.estimate(alone).total() <= cards {
            true => ContextWish { memory: cards, ..*wish },
            false => ContextWish { context: Some(usual), memory: wish.memory.saturating_add(cards), ..*wish },
        };
        let plan = Self::new(needs, trained, &wish);
        let cells = plan.cells.min(plan.context.saturating_mul(CONVERSATIONS_ON_CARDS));
        let most = match wish.slots {
            Some(_) => MAX_SLOTS,
            None => usize::try_from(cells / LEAST_TOKENS_PER_SLOT).unwrap_or(MAX_SLOTS).max(1),
        };
        ContextPlan { cells, slots: plan.slots.min(most), ..plan }
    }

    /// The cells that are allocated when the model is loaded into the main memory.
    pub fn first_cells(&self) -> u64 {
        self.cells.min(FIRST_CELLS)
    }

    pub fn shape(&self, cells: u64) -> ContextShape {
        ContextShape { cells, slots: self.slots as u64, batch: self.batch, kv: self.kv }
    }
}

/// The memory of a model with its conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFootprint {
    /// After it is loaded.
    pub at_start: MemoryEstimate,
    /// With one conversation that uses its whole context.
    pub memory: MemoryEstimate,
    /// With all conversations.
    pub at_most: MemoryEstimate,
    /// With one conversation of the usual length, on any machine.
    pub usual: MemoryEstimate,
    /// The cache of one conversation that uses its whole context.
    pub kv_per_slot: u64,
    pub plan: ContextPlan,
}

impl ModelFootprint {
    /// In the main memory.
    pub fn new(needs: &MemoryNeeds, trained: Option<u64>, wish: &ContextWish) -> Self {
        let plan = ContextPlan::new(needs, trained, wish);
        Self::planned(needs, plan, plan.first_cells(), wish.usual(trained))
    }

    /// On graphics cards that have `cards` bytes for models, and in the main memory as far as it does not fit there. The cards
    /// have all conversations from the start.
    pub fn on_cards(needs: &MemoryNeeds, trained: Option<u64>, wish: &ContextWish, cards: u64) -> Self {
        let plan = ContextPlan::on_cards(needs, trained, wish, cards);
        Self::planned(needs, plan, plan.cells, wish.usual(trained))
    }

    fn planned(needs: &MemoryNeeds, plan: ContextPlan, first_cells: u64, usual: u64) -> Self {
        let with = |cells: u64| needs.estimate(plan.shape(cells));
        ModelFootprint {
            at_start: with(first_cells),
            memory: with(plan.context),
            at_most: with(plan.cells),
            usual: needs.estimate(ContextShape { slots: 1, ..plan.shape(usual) }),
            kv_per_slot: needs.conversation(plan.context, plan.kv),
            plan,
        }
    }
}

/// What a machine has for models.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineRoom {
    /// Bytes of memory for all models.
    pub memory: u64,
    /// Free bytes on the disk of the models, if that is known.
    pub disk: Option<u64>,
    pub speed: MachineSpeed,
}

/// What limits the generation of one answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MachineSpeed {
    /// Bytes of memory that all cores read in a second.
    pub bandwidth: u64,
    pub cores: usize,
}

impl MachineSpeed {
    /// About the tokens of one answer in a second. Every token reads the weights once: the memory or the cores are the limit.
    pub fn tokens_per_second(self, bytes_per_token: u64) -> f64 {
        let memory = self.bandwidth as f64 * BANDWIDTH_USED;
        let cores = self.cores as f64 * BYTES_PER_CORE;
        memory.min(cores) / bytes_per_token.max(1) as f64
    }
}

impl MachineRoom {
    pub fn fits(&self, footprint: &ModelFootprint) -> bool {
        footprint.usual.total() <= self.memory
    }

    /// The best model to offer a new user: the largest that fits and is fast enough to be used; on a slow machine the smallest.
    pub(crate) fn best_offer(
        &self,
        footprint: impl Fn(&CatalogueEntry) -> Option<ModelFootprint>,
    ) -> Option<&'static CatalogueEntry> {
        let fits = |entry: &&CatalogueEntry| {
            let has_disk =
                self.disk.is_none_or(|free| free >= entry.total_size().saturating_add(DISK_RESERVE));
            entry.is_offered && has_disk && footprint(entry).is_some_and(|footprint| self.fits(&footprint))
        };
        let is_fast = |entry: &&CatalogueEntry| {
            self.speed.tokens_per_second(entry.bytes_per_token()) >= LEAST_OFFERED_SPEED
        };
        let fitting = || catalogue().filter(fits);
        fitting()
            .filter(is_fast)
            .max_by_key(|entry| entry.size)
            .or_else(|| fitting().min_by_key(|entry| entry.size))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalogue::find;

    const GB: u64 = 1 << 30;

    fn wish(memory: u64) -> ContextWish {
        ContextWish { context: None, slots: None, kv: KvPrecision::F16, batch: 128, memory }
    }

    fn footprint(entry: &CatalogueEntry, memory: u64) -> ModelFootprint {
        ModelFootprint::new(&MemoryNeeds::of_entry(entry), Some(entry.context), &wish(memory))
    }

    fn machine(memory: u64, bandwidth: u64, cores: usize) -> MachineRoom {
        MachineRoom { memory, disk: None, speed: MachineSpeed { bandwidth, cores } }
    }

    fn offered(room: &MachineRoom) -> Option<&'static str> {
        room.best_offer(|entry| Some(footprint(entry, room.memory))).map(|entry| entry.short_name)
    }

    #[test]
    fn the_largest_model_that_fits_and_is_quick_enough_is_offered() {
        let laptop = machine(11 * GB, 50_000_000_000, 12);
        assert_eq!(offered(&laptop), Some("qwen3:4b"));
        let workstation = machine(11 * GB, 100_000_000_000, 24);
        assert_eq!(offered(&workstation), Some("qwen3:8b"));
        let server = machine(90 * GB, 200_000_000_000, 64);
        assert_eq!(offered(&server), Some("qwen3:30b"));
        // Much memory does not help slow cores.
        assert_eq!(offered(&machine(90 * GB, 1_000_000_000, 1)), Some("qwen3:0.6b"));
        assert_eq!(offered(&machine(90 * GB, 100_000_000_000, 2)), Some("qwen3:0.6b"));
        assert_eq!(offered(&machine(GB, 60_000_000_000, 12)), None);
    }

    #[test]
    fn a_full_disk_gets_no_offer() {
        let full = MachineRoom { disk: Some(3 * GB), ..machine(90 * GB, 200_000_000_000, 64) };
        assert_eq!(offered(&full), Some("qwen3:0.6b"));
        assert_eq!(offered(&MachineRoom { disk: Some(GB), ..full }), None);
    }

    #[test]
    fn a_model_fits_if_a_usual_conversation_does() {
        let entry = find("qwen3:8b").unwrap();
        let usual = footprint(entry, 90 * GB).usual;
        assert_eq!(usual.kv_cache, 147_456 * 8192);
        let fits = |memory: u64| machine(memory, 1, 1).fits(&footprint(entry, memory));
        assert!(fits(usual.total()) && !fits(usual.total() - 1));
    }

    #[test]
    fn the_context_is_what_fits_and_never_beyond_the_training() {
        let entry = find("qwen3:8b").unwrap();
        let needs = MemoryNeeds::of_entry(entry);
        let plan = |memory: u64| ContextPlan::new(&needs, Some(entry.context), &wish(memory));
        let large = plan(90 * GB);
        assert_eq!((large.context, large.slots, large.first_cells()), (32_768, MAX_SLOTS, 1024));
        let trained = ContextPlan::new(&needs, Some(2048), &wish(90 * GB));
        assert_eq!((trained.context, trained.cells), (2048, 2048 * MAX_SLOTS as u64));
        let small = plan(7 * GB);
        assert!((4096..16_384).contains(&small.context) && small.cells == small.context, "{small:?}");
        assert!((8..=32).contains(&small.slots), "{small:?}");
        // What the plan allows fits, and hardly more would.
        for memory in [6 * GB, 7 * GB, 12 * GB, 24 * GB] {
            let plan = plan(memory);
            assert!(needs.estimate(plan.shape(plan.cells)).total() <= memory + (64 << 20), "{plan:?}");
        }
        // Nothing fits, so a load is refused.
        let none = plan(GB);
        assert_eq!((none.context, none.slots), (512, 1));
        assert!(needs.estimate(none.shape(none.first_cells())).total() > GB);
    }

    #[test]
    fn graphics_cards_get_two_conversations_of_what_fits_beside_the_model() {
        let entry = find("qwen3:8b").unwrap();
        let needs = MemoryNeeds::of_entry(entry);
        let plan = |cards: u64| ContextPlan::on_cards(&needs, Some(entry.context), &wish(90 * GB), cards);
        let large = plan(80 * GB);
        assert_eq!((large.context, large.cells, large.slots), (32_768, 65_536, MAX_SLOTS));
        let small = plan(7 * GB);
        assert!((4096..16_384).contains(&small.context), "{small:?}");
        assert!(needs.estimate(small.shape(small.cells)).total() <= 7 * GB + (64 << 20), "{small:?}");
        // The model does not fit, so its conversations are short.
        let part = plan(3 * GB);
        assert_eq!((part.context, part.cells, part.slots), (8192, 16_384, 32));
    }

    #[test]
    fn what_was_asked_for_is_kept() {
        let entry = find("qwen3:8b").unwrap();
        let needs = MemoryNeeds::of_entry(entry);
        let asked = ContextWish { context: Some(100_000), slots: Some(3), ..wish(7 * GB) };
        let plan = ContextPlan::new(&needs, Some(entry.context), &asked);
        assert_eq!((plan.context, plan.cells, plan.slots), (100_000, 100_000, 3));
        let many = ContextWish { slots: Some(1000), ..wish(90 * GB) };
        assert_eq!(ContextPlan::new(&needs, None, &many).slots, MAX_SLOTS);
    }

    #[test]
    fn a_smaller_cache_has_room_for_more() {
        let entry = find("qwen3:8b").unwrap();
        let needs = MemoryNeeds::of_entry(entry);
        let context = |kv: KvPrecision| {
            ContextPlan::new(&needs, Some(entry.context), &ContextWish { kv, ..wish(7 * GB) }).context
        };
        let (exact, small) = (context(KvPrecision::F16), context(KvPrecision::Q8));
        assert!(small * 10 > exact * 18 && small < exact * 2, "{exact} {small}");
    }

    #[test]
    fn speed_is_limited_by_memory_or_by_cores() {
        let speed =
            |bandwidth, cores| MachineSpeed { bandwidth, cores }.tokens_per_second(4_000_000_000).round();
        assert_eq!((speed(40_000_000_000, 64), speed(400_000_000_000, 2)), (7.0, 3.0));
    }
}
