//! Connects the model files to the embedded engine that runs them.
//!
//! Every build can list, pull and remove the files. Whether this build has the engine is known only here in this crate.

use std::path::Path;
use std::sync::Arc;

use hob_config::{Config, EngineName};
#[cfg(feature = "embedded")]
use hob_config::{FlashAttentionSetting, KvCacheSetting};
use hob_core::{ComputeUnits, DevicePlan, Engine, EngineError};
#[cfg(feature = "embedded")]
use hob_llama::{FlashAttention, GpuLayers, LlamaEngine, LlamaOptions, PrefixStoreOptions};
use hob_memory::Embedder;
#[cfg(feature = "embedded")]
use hob_models::KvPrecision;
use hob_models::catalogue::{CatalogueEntry, EMBEDDING, STARTER};
use hob_models::tuned::{KeepTuned, TuneReport};
use hob_models::{
    BuiltInModel, DownloadProgressFn, MachineRoom, ModelFootprint, ModelOffer, ModelService, PullError,
    PullOptions, PullSpec, StoredModel, built_in_models,
};

/// The directory in the configuration directory.
const DIRECTORY: &str = "models";

/// The directory of saved prompts in it.
#[cfg(feature = "embedded")]
const PREFIXES: &str = "prefixes";

/// Whether Hob downloads a model of its own when it is first needed.
#[derive(Clone, Default)]
pub enum FirstRun {
    /// Nothing is downloaded.
    #[default]
    Refuse,
    /// The model is downloaded, with its progress reported.
    Fetch(DownloadProgressFn),
}

/// The embedded engine; `None` in a build without it.
pub(crate) fn engine(config: &Config, home: &Path) -> Option<Arc<dyn Engine>> {
    LocalModels::new(config, home).engine()
}

/// Asks whether to download an offered model instead of the starter model. May block.
pub type OfferFn = Arc<dyn Fn(ModelOffer) -> bool + Send + Sync>;

/// Downloads the first model and returns the engine that runs it: the starter model, or a better one if `offer` accepts it. Downloads
/// nothing in a build without the engine.
pub(crate) async fn fetch_first_model(
    config: &Config,
    home: &Path,
    offer: Option<&OfferFn>,
    progress: DownloadProgressFn,
) -> Result<Option<Arc<dyn Engine>>, PullError> {
    let models = LocalModels::new(config, home);
    let Some(engine) = models.engine() else { return Ok(None) };
    let mut first = STARTER;
    if let Some(accepts) = offer.cloned()
        && let Some(best) = models.best_offer().await
        && tokio::task::spawn_blocking(move || accepts(best)).await.unwrap_or(false)
    {
        first = best.entry;
    }
    models.files.pull(&PullSpec::Catalogue(first), progress).await?;
    Ok(Some(engine))
}

/// Hob's own embedding model, on the embedded engine; on the selected one if that is embedded. `None` in a
/// build without it.
pub(crate) fn embedder(config: &Config, home: &Path, engine: &Arc<dyn Engine>) -> Option<Embedder> {
    // A second engine would not know how much memory the first one uses.
    let inside = engine.key() == EngineName::Embedded.as_str();
    let engine = if inside { Arc::clone(engine) } else { LocalModels::new(config, home).engine()? };
    Some(Embedder { engine, model: EMBEDDING.name.to_owned() })
}

/// Makes sure that Hob's own embedding model is on the disk. Downloads nothing in a build without the engine.
pub(crate) async fn fetch_embedding_model(
    config: &Config,
    home: &Path,
    first_use: &FirstRun,
) -> Result<(), PullError> {
    let mut models = LocalModels::new(config, home);
    if models.engine().is_none() {
        return Ok(());
    }
    // An existing file is enough: its checksum was verified when it was downloaded.
    if let Ok(Some(StoredModel { problem: None, .. })) = models.files.find(EMBEDDING.name) {
        return Ok(());
    }
    let progress: DownloadProgressFn = match first_use {
        FirstRun::Fetch(progress) => Arc::clone(progress),
        FirstRun::Refuse => {
            models.files.go_offline();
            Arc::new(|_| ())
        }
    };
    models.files.pull(&PullSpec::Catalogue(EMBEDDING), progress).await.map(drop)
}

/// Whether this is the name of Hob's own embedding model.
pub(crate) fn comes_with_hob(model: &str) -> bool {
    model == EMBEDDING.name
}

/// The model files according to the configuration.
pub fn model_service(config: &Config, home: &Path) -> ModelService {
    let mut options = PullOptions { token: config.hub.token.clone(), ..PullOptions::default() };
    if let Some(endpoint) = &config.hub.endpoint {
        options.hub = endpoint.clone();
    }
    ModelService::new(home.join(DIRECTORY), options)
}

/// The model files and their engine.
#[derive(Clone)]
pub struct LocalModels {
    pub files: ModelService,
    #[cfg(feature = "embedded")]
    engine: Arc<LlamaEngine>,
}

impl LocalModels {
    /// Loads nothing yet.
    pub fn new(config: &Config, home: &Path) -> Self {
        LocalModels {
            files: model_service(config, home),
            #[cfg(feature = "embedded")]
            engine: Arc::new(LlamaEngine::new(engine_options(config, &home.join(DIRECTORY)))),
        }
    }

    /// The engine that answers with these models; `None` in a build without it.
    #[cfg(feature = "embedded")]
    pub fn engine(&self) -> Option<Arc<dyn Engine>> {
        Some(Arc::clone(&self.engine) as Arc<dyn Engine>)
    }

    #[cfg(not(feature = "embedded"))]
    pub fn engine(&self) -> Option<Arc<dyn Engine>> {
        None
    }

    /// The memory of a model with its conversations; `None` in a build without the engine, or if the model is broken.
    /// Takes a moment with a graphics card.
    #[cfg(feature = "embedded")]
    pub async fn footprint(&self, model: &StoredModel) -> Option<ModelFootprint> {
        let (engine, model) = (Arc::clone(&self.engine), model.clone());
        tokio::task::spawn_blocking(move || engine.footprint(&model)).await.ok()?
    }

    #[cfg(not(feature = "embedded"))]
    pub async fn footprint(&self, _model: &StoredModel) -> Option<ModelFootprint> {
        None
    }

    /// The same for a model of the catalogue. The first call blocks for a moment with a graphics card.
    #[cfg(feature = "embedded")]
    pub fn entry_footprint(&self, entry: &CatalogueEntry) -> Option<ModelFootprint> {
        Some(self.engine.entry_footprint(entry))
    }

    #[cfg(not(feature = "embedded"))]
    pub fn entry_footprint(&self, _entry: &CatalogueEntry) -> Option<ModelFootprint> {
        None
    }

    /// What this machine has for models; `None` in a build without the engine. Measures for some tenths of a second.
    pub async fn machine_room(&self) -> Option<MachineRoom> {
        let models = self.clone();
        let measure = move || Some(models.files.machine_room(models.memory_budget()?));
        tokio::task::spawn_blocking(measure).await.ok()?
    }

    /// The models of the catalogue that match all words, with estimates for this machine. The first call blocks for a moment with a
    /// graphics card.
    pub fn built_in(
        &self,
        words: &str,
        stored: &[StoredModel],
        machine: Option<MachineRoom>,
    ) -> Vec<BuiltInModel> {
        built_in_models(words, stored, machine, |entry| self.entry_footprint(entry))
    }

    /// The best model for this machine that the hub has.
    async fn best_offer(&self) -> Option<ModelOffer> {
        let room = self.machine_room().await?;
        self.files.best_offer(room, |entry| self.entry_footprint(entry)).await
    }

    #[cfg(feature = "embedded")]
    fn memory_budget(&self) -> Option<u64> {
        Some(self.engine.memory_budget())
    }

    #[cfg(not(feature = "embedded"))]
    fn memory_budget(&self) -> Option<u64> {
        None
    }

    /// What the engine computes with; `None` in a build without it. Takes a moment with a graphics card.
    #[cfg(feature = "embedded")]
    pub async fn compute_units(&self) -> Option<ComputeUnits> {
        let engine = Arc::clone(&self.engine);
        tokio::task::spawn_blocking(move || engine.compute_units()).await.ok()
    }

    #[cfg(not(feature = "embedded"))]
    pub async fn compute_units(&self) -> Option<ComputeUnits> {
        None
    }

    /// Where the layers of a model would go now; `None` in a build without the engine, or if the model is broken.
    #[cfg(feature = "embedded")]
    pub async fn device_plan(&self, model: &StoredModel) -> Option<DevicePlan> {
        let (engine, model) = (Arc::clone(&self.engine), model.clone());
        tokio::task::spawn_blocking(move || engine.device_plan(&model)).await.ok()?
    }

    #[cfg(not(feature = "embedded"))]
    pub async fn device_plan(&self, _model: &StoredModel) -> Option<DevicePlan> {
        None
    }

    /// Whether the starter model could be downloaded and used now, as far as this is known without a download.
    pub async fn can_fetch_starter(&self) -> bool {
        self.engine().is_some() && self.files.is_within_reach(STARTER).await
    }

    /// Finds the weight format of a model that is fastest on this machine.
    #[cfg(feature = "embedded")]
    pub async fn tune(&self, model: &str, keep: KeepTuned) -> Result<TuneReport, EngineError> {
        self.engine.tune(model, keep).await
    }

    #[cfg(not(feature = "embedded"))]
    pub async fn tune(&self, _model: &str, _keep: KeepTuned) -> Result<TuneReport, EngineError> {
        let reason = "this hob was built without the embedded engine".to_owned();
        Err(EngineError::NotConfigured { engine: EngineName::Embedded.to_string(), reason })
    }
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
