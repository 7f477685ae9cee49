//! The options of the embedded engine.

use std::path::PathBuf;
use std::time::Duration;

use hob_models::{ContextWish, KvPrecision, MAX_SLOTS};
use hob_process::machine_resources;
use llama_cpp_sys_2::{
    LLAMA_FLASH_ATTN_TYPE_AUTO, LLAMA_FLASH_ATTN_TYPE_DISABLED, LLAMA_FLASH_ATTN_TYPE_ENABLED,
    llama_flash_attn_type,
};

use crate::batching::plan::{CARD_STEP, STEP, StepSize};

#[derive(Debug, Clone, PartialEq)]
pub struct LlamaOptions {
    /// The directory of GGUF files.
    pub models_dir: PathBuf,
    /// Threads that compute. More than the cores is slower.
    pub threads: usize,
    /// Tokens of one conversation; `None` for as many as fit, up to the training context.
    pub context: Option<u32>,
    /// Conversations that one model answers concurrently; `None` for as many as fit.
    pub parallel: Option<usize>,
    /// Requests that may wait for one model; more are refused.
    pub queue: usize,
    /// How long an idle model stays in memory.
    pub keep_alive: Duration,
    /// Bytes of all loaded models.
    pub memory_budget: u64,
    /// Whether the next tokens of an answer that repeats earlier text are guessed, and read in one step.
    pub prompt_lookup: bool,
    /// The model that guesses the next tokens of larger ones.
    pub draft: Option<DraftOptions>,
    /// Layers on graphics cards, if there are any that the build supports.
    pub gpu_layers: GpuLayers,
    /// Another directory for libraries of backends. The first engine of a process decides.
    pub backends: Option<PathBuf>,
    /// The numbers of the KV cache.
    pub kv: KvPrecision,
    pub flash_attention: FlashAttention,
    /// Where prompts are saved when a model is unloaded; `None` saves none.
    pub prefix_store: Option<PrefixStoreOptions>,
}

/// A model that guesses for larger ones with the same vocabulary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftOptions {
    /// Its name.
    pub model: String,
    pub when: DraftUse,
}

/// When guesses of a draft model are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DraftUse {
    /// While answers are faster with them, as measured.
    #[default]
    Faster,
    /// In every step, faster or not.
    Always,
}

/// How many layers of a model go to graphics cards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GpuLayers {
    /// As many as fit.
    Auto,
    /// So many, fewer if they do not fit. With 0 the cards are not used at all.
    Count(u32),
}

/// Whether attention is computed in one operation, without its matrix of scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FlashAttention {
    /// If the device supports it.
    #[default]
    Auto,
    On,
    Off,
}

impl FlashAttention {
    pub(crate) fn policy(self) -> llama_flash_attn_type {
        match self {
            FlashAttention::Auto => LLAMA_FLASH_ATTN_TYPE_AUTO,
            FlashAttention::On => LLAMA_FLASH_ATTN_TYPE_ENABLED,
            FlashAttention::Off => LLAMA_FLASH_ATTN_TYPE_DISABLED,
        }
    }
}

/// Where prompts are saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixStoreOptions {
    pub directory: PathBuf,
    /// Bytes of all saved prompts of all models.
    pub bytes: u64,
}

impl LlamaOptions {
    /// The defaults for this machine.
    pub fn new(models_dir: impl Into<PathBuf>) -> Self {
        LlamaOptions {
            models_dir: models_dir.into(),
            threads: cores(),
            context: None,
            parallel: None,
            queue: 64,
            keep_alive: Duration::from_secs(5 * 60),
            memory_budget: memory() / 10 * 7,
            prompt_lookup: false,
            draft: None,
            gpu_layers: GpuLayers::Auto,
            backends: None,
            kv: KvPrecision::F16,
            flash_attention: FlashAttention::Auto,
            prefix_store: None,
        }
    }

    /// The same with so many bytes less for models.
    pub(crate) fn beside(&self, bytes: u64) -> Self {
        LlamaOptions { memory_budget: self.memory_budget.saturating_sub(bytes), ..self.clone() }
    }

    /// What the settings ask for, with the main memory.
    pub(crate) fn context_wish(&self) -> ContextWish {
        self.wish_with(STEP)
    }

    /// The same for layers on graphics cards, which read more in a step.
    pub(crate) fn card_wish(&self) -> ContextWish {
        self.wish_with(CARD_STEP)
    }

    fn wish_with(&self, step: StepSize) -> ContextWish {
        ContextWish {
            context: self.context.map(u64::from),
            slots: self.parallel,
            kv: self.kv,
            batch: step.tokens_of(self.parallel.unwrap_or(MAX_SLOTS)) as u64,
            memory: self.memory_budget,
        }
    }
}

/// Physical cores that this process may use, because two threads on one core are not faster.
fn cores() -> usize {
    let allowed = std::thread::available_parallelism().map_or(1, usize::from);
    machine_resources().cores.map_or(allowed, |physical| physical.clamp(1, allowed))
}

/// The memory of a machine if it is unknown.
const UNKNOWN_MEMORY: u64 = 4 << 30;

/// Bytes of memory this process may use.
fn memory() -> u64 {
    machine_resources().memory.unwrap_or(UNKNOWN_MEMORY)
}
