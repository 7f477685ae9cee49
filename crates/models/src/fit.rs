//! Whether a model fits this machine, and how fast it is expected to be. Both are estimates, and are shown as estimates.

use crate::catalogue::{CatalogueEntry, catalogue};
use crate::directory::StoredModel;
use crate::gguf::MemoryEstimate;

/// Buffers and vocabulary of a model that is not here yet: those of a vocabulary of 150,000 tokens.
const USUAL_OVERHEAD: u64 = 400 << 20;

/// The part of the memory's bandwidth that generation reaches.
const BANDWIDTH_USED: f64 = 0.7;

/// Bytes of quantised weights that one core multiplies in a second.
const BYTES_PER_CORE: f64 = 5e9;

/// A model that is offered should write faster than people read.
const LEAST_OFFERED_SPEED: f64 = 8.0;

/// Disk space that stays free after a download.
const DISK_RESERVE: u64 = 2 << 30;

/// How an engine divides the memory of conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ContextPlan {
    /// Tokens of one conversation.
    pub context: u64,
    /// Tokens of all conversations together.
    pub cells: u64,
    /// Conversations at a time.
    pub slots: usize,
}

/// The memory of a model with its conversations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ModelFootprint {
    /// With all conversations.
    pub memory: MemoryEstimate,
    /// The cache of one conversation that uses its whole context.
    pub kv_per_slot: u64,
    pub plan: ContextPlan,
}

impl ModelFootprint {
    /// Of a model on the disk; `None` if its header cannot be read.
    pub fn of_stored(model: &StoredModel, plan: ContextPlan) -> Option<Self> {
        let kv_per_slot = model.memory(plan.context)?.kv_cache;
        Some(ModelFootprint { memory: model.memory(plan.cells)?, kv_per_slot, plan })
    }

    /// Of a model of the catalogue.
    pub fn of_entry(entry: &CatalogueEntry, plan: ContextPlan) -> Self {
        let per_token = entry.kv.map_or(0, |kv| kv.bytes_per_token());
        let memory = MemoryEstimate {
            weights: entry.total_size(),
            kv_cache: per_token * plan.cells,
            overhead: USUAL_OVERHEAD.min(entry.size),
        };
        ModelFootprint { memory, kv_per_slot: per_token * plan.context, plan }
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
        footprint.memory.total() <= self.memory
    }

    /// The best model to offer a new user: the largest that fits and is fast enough to be used; on a slow machine the smallest.
    pub fn best_offer(
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

    fn plan(trained: u64) -> ContextPlan {
        let context = trained.min(8192);
        ContextPlan { context, cells: trained.min(2 * context), slots: 8 }
    }

    fn machine(memory: u64, bandwidth: u64, cores: usize) -> MachineRoom {
        MachineRoom { memory, disk: None, speed: MachineSpeed { bandwidth, cores } }
    }

    fn offered(room: &MachineRoom) -> Option<&'static str> {
        let footprint = |entry: &CatalogueEntry| Some(ModelFootprint::of_entry(entry, plan(entry.context)));
        room.best_offer(footprint).map(|entry| entry.short_name)
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
    fn the_cache_of_all_conversations_counts() {
        let entry = find("qwen3:8b").unwrap();
        let footprint = ModelFootprint::of_entry(entry, plan(entry.context));
        assert_eq!((footprint.kv_per_slot, footprint.memory.kv_cache), (147_456 * 8192, 147_456 * 16_384));
        let total = footprint.memory.total();
        assert!(machine(total, 1, 1).fits(&footprint) && !machine(total - 1, 1, 1).fits(&footprint));
    }

    #[test]
    fn speed_is_limited_by_memory_or_by_cores() {
        let speed =
            |bandwidth, cores| MachineSpeed { bandwidth, cores }.tokens_per_second(4_000_000_000).round();
        assert_eq!((speed(40_000_000_000, 64), speed(400_000_000_000, 2)), (7.0, 3.0));
    }
}
