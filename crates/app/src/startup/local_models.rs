//! The model files, and the engine of this build that loads them, according to the configuration.
//!
//! Whether this build has the engine is known only here in this crate.

use std::path::Path;
#[cfg(feature = "embedded")]
use std::sync::Arc;

use hob_config::Config;
#[cfg(feature = "embedded")]
use hob_config::{FlashAttentionSetting, KvCacheSetting};
#[cfg(feature = "embedded")]
use hob_llama::{
    DraftOptions, DraftUse, FlashAttention, GpuLayers, LlamaEngine, LlamaOptions, PrefixStoreOptions,
};
#[cfg(feature = "embedded")]
use hob_models::KvPrecision;
use hob_models::{LocalModels, ModelService, PullOptions};

/// The directory in the configuration directory.
const DIRECTORY: &str = "models";

/// The directory of saved prompts in it.
#[cfg(feature = "embedded")]
const PREFIXES: &str = "prefixes";

/// The model files and their engine. Loads nothing yet.
#[cfg(feature = "embedded")]
pub fn local_models(config: &Config, home: &Path) -> LocalModels {
    let engine = LlamaEngine::new(engine_options(config, &home.join(DIRECTORY)));
    LocalModels::new(model_service(config, home), Some(Arc::new(engine)))
}

/// The model files, which this build cannot load.
#[cfg(not(feature = "embedded"))]
pub fn local_models(config: &Config, home: &Path) -> LocalModels {
    LocalModels::new(model_service(config, home), None)
}

/// The model files according to the configuration.
pub fn model_service(config: &Config, home: &Path) -> ModelService {
    let mut options = PullOptions { token: config.hub.token.clone(), ..PullOptions::default() };
    if let Some(endpoint) = &config.hub.endpoint {
        options.hub = endpoint.clone();
    }
    ModelService::new(home.join(DIRECTORY), options)
}

/// The options of the engine, from the section `[engine.embedded]`.
#[cfg(feature = "embedded")]
fn engine_options(config: &Config, directory: &Path) -> LlamaOptions {
    let settings = &config.engine.embedded;
    let mut options = LlamaOptions::new(directory);
    options.parallel = Some(settings.parallel).filter(|slots| *slots > 0);
    options.queue = settings.queue;
    options.keep_alive = settings.keep_alive;
    options.prompt_lookup = settings.prompt_lookup;
    let draft = settings.draft_model.clone();
    options.draft = draft.map(|model| DraftOptions { model, when: DraftUse::Faster });
    if settings.threads > 0 {
        options.threads = settings.threads;
    }
    if settings.context > 0 {
        options.context = u32::try_from(settings.context).ok();
    }
    if settings.memory_mb > 0 {
        options.memory_budget = (settings.memory_mb as u64) << 20;
    }
    if let Some(layers) = settings.gpu_layers {
        options.gpu_layers = GpuLayers::Count(u32::try_from(layers).unwrap_or(u32::MAX));
    }
    options.backends = config.backends.clone();
    options.kv = match settings.kv_cache {
        KvCacheSetting::F16 => KvPrecision::F16,
        KvCacheSetting::Q8 => KvPrecision::Q8,
    };
    options.flash_attention = match settings.flash_attention {
        FlashAttentionSetting::Auto => FlashAttention::Auto,
        FlashAttentionSetting::On => FlashAttention::On,
        FlashAttentionSetting::Off => FlashAttention::Off,
    };
    if settings.prefix_cache_mb > 0 {
        let bytes = (settings.prefix_cache_mb as u64) << 20;
        options.prefix_store = Some(PrefixStoreOptions { directory: directory.join(PREFIXES), bytes });
    }
    options
}
