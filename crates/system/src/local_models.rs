//! Models on this machine's own disk, and the engine inside this process that answers with them.

use std::path::Path;
use std::sync::Arc;

use hob_config::Config;
use hob_core::Engine;
use hob_embedded::models::catalog::STARTER;
use hob_embedded::models::pull::Network;
use hob_embedded::models::{ModelStore, PullOptions, PullSpec, pull};
use hob_embedded::{Embedded, EmbeddedOptions};

pub use hob_embedded::TuneReport;
pub use hob_embedded::models::{
    CATALOG, CatalogEntry, MemoryEstimate, Progress, PullError, PullSpec as ModelSpec, Step, StoredModel,
};
pub use hob_embedded::models::{StoreError as ModelStoreError, pull::SpecError};

/// The directory in the configuration directory.
const DIRECTORY: &str = "models";

/// Hears how far a download is. Called from any thread.
pub type OnProgress = Arc<dyn Fn(Progress) + Send + Sync>;

/// The engine inside this process.
pub(crate) fn engine(config: &Config, home: &Path) -> Option<Arc<dyn Engine>> {
    Some(LocalModels::new(config, home).engine())
}

/// Fetches the model that a fresh machine starts with, and gives the engine that answers with it.
pub(crate) async fn fetch_starter(
    config: &Config,
    home: &Path,
    progress: OnProgress,
) -> Result<Option<Arc<dyn Engine>>, PullError> {
    let models = LocalModels::new(config, home);
    models.pull(&PullSpec::Catalog(STARTER), progress).await?;
    Ok(Some(models.engine()))
}

/// The models and their engine.
#[derive(Clone)]
pub struct LocalModels {
    store: ModelStore,
    pull_options: PullOptions,
    engine: Arc<Embedded>,
}

impl LocalModels {
    /// Loads nothing yet.
    pub fn new(config: &Config, home: &Path) -> Self {
        let directory = home.join(DIRECTORY);
        let settings = &config.engine.embedded;
        let mut options = EmbeddedOptions::new(&directory);
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
        let mut pull_options = PullOptions { token: config.hub.token.clone(), ..PullOptions::default() };
        if let Some(endpoint) = &config.hub.endpoint {
            pull_options.hub = endpoint.clone();
        }
        LocalModels {
            store: ModelStore::new(directory),
            pull_options,
            engine: Arc::new(Embedded::new(options)),
        }
    }

    pub fn engine(&self) -> Arc<dyn Engine> {
        Arc::clone(&self.engine) as Arc<dyn Engine>
    }

    /// All models, the broken ones too.
    pub fn list(&self) -> Result<Vec<StoredModel>, ModelStoreError> {
        self.store.list()
    }

    /// Removes a model from the disk.
    pub fn remove(&self, id: &str) -> Result<(), ModelStoreError> {
        self.store.remove(id)
    }

    /// Fetches a model.
    pub async fn pull(&self, spec: &ModelSpec, progress: OnProgress) -> Result<StoredModel, PullError> {
        pull(spec, &self.store, &PullOptions { progress, ..self.pull_options.clone() }).await
    }

    /// From now on nothing is fetched from the network.
    pub fn go_offline(&mut self) {
        self.pull_options.network = Network::Offline;
    }

    /// Finds the form of a model's weights that this machine runs fastest, and keeps it.
    pub async fn tune(&self, model: &str) -> Result<TuneReport, hob_core::EngineError> {
        self.engine.tune(model).await
    }
}
