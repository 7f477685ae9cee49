//! Model files on the local disk, and the embedded engine that runs them.
//!
//! Every build can list, pull and remove the files. Whether this build has the engine is known only here in this
//! crate.

use std::path::Path;
use std::sync::Arc;

use hob_config::{Config, EngineName};
use hob_core::{Engine, EngineError};
#[cfg(feature = "embedded")]
use hob_llama::{LlamaEngine, LlamaOptions};
use hob_memory::Embedder;
use hob_models::catalogue::{EMBEDDING, STARTER};
use hob_models::pull::{DownloadPolicy, is_within_reach};
use hob_models::tuned::{KeepTuned, TuneReport};
use hob_models::{
    DownloadProgress, ModelDirectory, ModelDirectoryError, PullError, PullOptions, PullSpec, StoredModel,
    pull,
};

/// The directory in the configuration directory.
const DIRECTORY: &str = "models";

/// Receives the progress of a download. Called from any thread.
pub type DownloadProgressFn = Arc<dyn Fn(DownloadProgress) + Send + Sync>;

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

/// Downloads the starter model and returns the engine that runs it. Downloads nothing in a build without
/// the engine.
pub(crate) async fn fetch_starter(
    config: &Config,
    home: &Path,
    progress: DownloadProgressFn,
) -> Result<Option<Arc<dyn Engine>>, PullError> {
    let models = LocalModels::new(config, home);
    let Some(engine) = models.engine() else { return Ok(None) };
    models.pull(&PullSpec::Catalogue(STARTER), progress).await?;
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
    if let Ok(Some(StoredModel { problem: None, .. })) = models.directory.find(EMBEDDING.name) {
        return Ok(());
    }
    let progress: DownloadProgressFn = match first_use {
        FirstRun::Fetch(progress) => Arc::clone(progress),
        FirstRun::Refuse => {
            models.go_offline();
            Arc::new(|_| ())
        }
    };
    models.pull(&PullSpec::Catalogue(EMBEDDING), progress).await.map(drop)
}

/// Whether this is the name of Hob's own embedding model.
pub(crate) fn comes_with_hob(model: &str) -> bool {
    model == EMBEDDING.name
}

/// The models and their engine.
#[derive(Clone)]
pub struct LocalModels {
    directory: ModelDirectory,
    pull_options: PullOptions,
    #[cfg(feature = "embedded")]
    engine: Arc<LlamaEngine>,
}

impl LocalModels {
    /// Loads nothing yet.
    pub fn new(config: &Config, home: &Path) -> Self {
        let directory = home.join(DIRECTORY);
        let mut pull_options = PullOptions { token: config.hub.token.clone(), ..PullOptions::default() };
        if let Some(endpoint) = &config.hub.endpoint {
            pull_options.hub = endpoint.clone();
        }
        LocalModels {
            #[cfg(feature = "embedded")]
            engine: Arc::new(LlamaEngine::new(engine_options(config, &directory))),
            directory: ModelDirectory::new(directory),
            pull_options,
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

    /// All models, including broken ones.
    pub fn list(&self) -> Result<Vec<StoredModel>, ModelDirectoryError> {
        self.directory.list()
    }

    /// Removes a model from the disk.
    pub fn remove(&self, id: &str) -> Result<(), ModelDirectoryError> {
        self.directory.remove(id)
    }

    /// Downloads a model.
    pub async fn pull(
        &self,
        spec: &PullSpec,
        progress: DownloadProgressFn,
    ) -> Result<StoredModel, PullError> {
        pull(spec, &self.directory, &PullOptions { progress, ..self.pull_options.clone() }).await
    }

    /// Whether the starter model could be downloaded and used now, as far as this is known without a download.
    pub async fn can_fetch_starter(&self) -> bool {
        self.engine().is_some() && is_within_reach(STARTER, &self.pull_options).await
    }

    /// From now on nothing is downloaded.
    pub fn go_offline(&mut self) {
        self.pull_options.network = DownloadPolicy::Offline;
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
    options.parallel = settings.parallel;
    options.queue = settings.queue;
    options.keep_alive = settings.keep_alive;
    if settings.threads > 0 {
        options.threads = settings.threads;
    }
    if settings.context > 0 {
        options.context = u32::try_from(settings.context).ok();
    }
    if settings.memory_mb > 0 {
        options.memory_budget = (settings.memory_mb as u64) << 20;
    }
    options
}
