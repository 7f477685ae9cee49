//! What the operator may set.

use std::path::PathBuf;
use std::time::Duration;

use sysinfo::System;

/// Settings of the embedded engine.
#[derive(Debug, Clone, PartialEq)]
pub struct LlamaOptions {
    /// Where the GGUF files lie.
    pub models_dir: PathBuf,
    /// Threads that compute; more than there are cores makes everything slower.
    pub threads: usize,
    /// Tokens one conversation may have, question and answer together. `None` for what the model was trained for, up to 8192.
    pub context: Option<u32>,
    /// Conversations that are answered at the same time by one model.
    pub parallel: usize,
    /// Requests that may wait for one model; further ones are refused.
    pub queue: usize,
    /// How long an idle model stays in memory.
    pub keep_alive: Duration,
    /// Bytes that all loaded models may take together.
    pub memory_budget: u64,
    /// Layers that go to the graphics card, where the build has one.
    pub gpu_layers: u32,
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
            gpu_layers: 999,
        }
    }
}

/// Physical cores that this process may use: two threads on one core only wait for each other.
fn cores() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    System::physical_core_count().map_or(allowed, |physical| physical.clamp(1, allowed))
}

/// What a machine has that does not tell.
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
