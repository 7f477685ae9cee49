//! The options of the embedded engine.

use std::path::PathBuf;
use std::time::Duration;

use sysinfo::System;

#[derive(Debug, Clone, PartialEq)]
pub struct LlamaOptions {
    /// The directory of GGUF files.
    pub models_dir: PathBuf,
    /// Threads that compute. More than the cores is slower.
    pub threads: usize,
    /// Tokens of one conversation. `None` for the training context of the model, up to 8192.
    pub context: Option<u32>,
    /// Conversations that one model answers concurrently.
    pub parallel: usize,
    /// Requests that may wait for one model; more are refused.
    pub queue: usize,
    /// How long an idle model stays in memory.
    pub keep_alive: Duration,
    /// Bytes of all loaded models.
    pub memory_budget: u64,
    /// Whether the next tokens of an answer that repeats earlier text are guessed, and read in one step.
    pub prompt_lookup: bool,
    /// Layers on graphics cards, if there are any that the build supports.
    pub gpu_layers: GpuLayers,
    /// Another directory for libraries of backends. The first engine of a process decides.
    pub backends: Option<PathBuf>,
}

/// How many layers of a model go to graphics cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuLayers {
    /// As many as fit.
    Auto,
    /// So many, fewer if they do not fit. With 0 the cards are not used at all.
    Count(u32),
}

impl LlamaOptions {
    /// The defaults for this machine.
    pub fn new(models_dir: impl Into<PathBuf>) -> Self {
        LlamaOptions {
            models_dir: models_dir.into(),
            threads: cores(),
            context: None,
            parallel: 8,
            queue: 64,
            keep_alive: Duration::from_secs(5 * 60),
            memory_budget: memory() / 10 * 7,
            prompt_lookup: false,
            gpu_layers: GpuLayers::Auto,
            backends: None,
        }
    }
}

/// Physical cores that this process may use, because two threads on one core are not faster.
fn cores() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    System::physical_core_count().map_or(allowed, |physical| physical.clamp(1, allowed))
}

/// The memory of a machine if it is unknown.
const UNKNOWN_MEMORY: u64 = 4 << 30;

/// Bytes of memory this process may use.
fn memory() -> u64 {
    let Ok(mut system) = System::new() else {
        return UNKNOWN_MEMORY;
    };
    system.refresh_memory();
    let limit = system.cgroup_limits().map_or(u64::MAX, |limits| limits.total_memory);
    system.total_memory().min(limit)
}
