//! The model files of this machine, and the engine that loads them, if this build has one. Without it, the files can still be listed,
//! downloaded and removed.

use std::collections::HashSet;
use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{ComputeUnits, DevicePlan, Engine, EngineError};
use tokio::task::spawn_blocking;

use crate::available_models::{BuiltInModel, built_in_models};
use crate::catalogue::{CatalogueEntry, EMBEDDING, STARTER};
use crate::directory::StoredModel;
use crate::fit::{MachineRoom, ModelFootprint};
use crate::pull::{DownloadProgressFn, FoundRepository, PullError, PullSpec};
use crate::service::{ModelOffer, ModelService};
use crate::tuned::{KeepTuned, TuneReport};

/// An engine that loads model files in this process.
#[async_trait]
pub trait ModelFileEngine: Engine {
    /// Bytes of memory for all models, those of graphics cards among them. Blocks for a moment.
    fn memory_budget(&self) -> u64;

    /// The memory of a model with its conversations. `None` if its header cannot be read. Blocks for a moment.
    fn footprint(&self, model: &StoredModel) -> Option<ModelFootprint>;

    /// The same for a model of the catalogue.
    fn entry_footprint(&self, entry: &CatalogueEntry) -> ModelFootprint;

    /// What it computes with. Blocks for a moment.
    fn compute_units(&self) -> ComputeUnits;

    /// The layers of a model that would go to graphics cards now. `None` if its header cannot be read. Blocks for a moment.
    fn device_plan(&self, model: &StoredModel) -> Option<DevicePlan>;

    /// The draft model that a model would have. `None` if the settings name none that it can have. Blocks for a moment.
    fn draft_plan(&self, model: &StoredModel) -> Option<DraftPlan>;

    /// Measures the tuned form of a model. If it is kept, it is used when the model is loaded next. Dropping the future cancels it.
    async fn tune(&self, model: &str, keep: KeepTuned) -> Result<TuneReport, EngineError>;
}

/// The draft model that guesses for another one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DraftPlan {
    pub model: String,
    /// Bytes at most; `None` if there is not enough memory for it beside the other one.
    pub memory: Option<u64>,
}

/// Whether Hob downloads a model of its own when it is first needed.
#[derive(Clone, Default)]
pub enum FirstRun {
    /// Nothing is downloaded.
    #[default]
    Refuse,
    /// The model is downloaded, with its progress reported.
    Fetch(DownloadProgressFn),
}

/// Asks whether to download an offered model instead of the starter model. May block.
pub type OfferFn = Arc<dyn Fn(ModelOffer) -> bool + Send + Sync>;

/// Whether a search also asks the model hub.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HubSearch {
    BuiltInOnly,
    /// With at most this many results.
    AlsoHub(usize),
}

/// What was found.
#[derive(Debug)]
pub struct ModelSearch {
    /// Models of the built-in list, the smallest first.
    pub built_in: Vec<BuiltInModel>,
    pub hub: Vec<FoundRepository>,
    /// Why the hub has no results.
    pub hub_problem: Option<String>,
    /// What this machine has for models; `None` in a build without the engine.
    pub machine: Option<MachineRoom>,
}

/// The model files and their engine. Cheap to clone.
#[derive(Clone)]
pub struct LocalModels {
    pub files: ModelService,
    /// `None` in a build without it.
    engine: Option<Arc<dyn ModelFileEngine>>,
}

impl LocalModels {
    pub fn new(files: ModelService, engine: Option<Arc<dyn ModelFileEngine>>) -> Self {
        LocalModels { files, engine }
    }

    /// The engine that answers with these models.
    pub fn engine(&self) -> Option<Arc<dyn Engine>> {
        self.engine.clone().map(|engine| engine as Arc<dyn Engine>)
    }

    /// Asks the engine off the threads of the runtime. `None` without an engine.
    async fn ask_engine<T: Send + 'static>(
        &self,
        ask: impl FnOnce(&dyn ModelFileEngine) -> T + Send + 'static,
    ) -> Option<T> {
        let engine = self.engine.clone()?;
        spawn_blocking(move || ask(engine.as_ref())).await.ok()
    }

    /// The memory of a model with its conversations; `None` without an engine, or if the model is broken.
    pub async fn footprint(&self, model: &StoredModel) -> Option<ModelFootprint> {
        let model = model.clone();
        self.ask_engine(move |engine| engine.footprint(&model)).await?
    }

    /// The same for a model of the catalogue. The first call blocks for a moment with a graphics card.
    pub fn entry_footprint(&self, entry: &CatalogueEntry) -> Option<ModelFootprint> {
        Some(self.engine.as_ref()?.entry_footprint(entry))
    }

    /// The draft model that a model would have; `None` without one, or without an engine.
    pub async fn draft_plan(&self, model: &StoredModel) -> Option<DraftPlan> {
        let model = model.clone();
        self.ask_engine(move |engine| engine.draft_plan(&model)).await?
    }

    /// What this machine has for models; `None` without an engine. Measures for some tenths of a second.
    pub async fn machine_room(&self) -> Option<MachineRoom> {
        let files = self.files.clone();
        self.ask_engine(move |engine| files.machine_room(engine.memory_budget())).await
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

    /// Searches for all words on this machine, which has `machine` for models, and on the hub.
    pub async fn search(&self, words: &str, hub: HubSearch, machine: Option<MachineRoom>) -> ModelSearch {
        let (local, wanted) = (self.clone(), words.to_owned());
        let listed = spawn_blocking(move || {
            let stored = local.files.list().unwrap_or_default();
            local.built_in(&wanted, &stored, machine)
        });
        let (built_in, hub) = tokio::join!(listed, async {
            match hub {
                HubSearch::BuiltInOnly => Ok(Vec::new()),
                HubSearch::AlsoHub(limit) => self.files.search(words, limit).await,
            }
        });
        let (hub, hub_problem) = match hub {
            Ok(found) => (found, None),
            Err(error) => (Vec::new(), Some(error.to_string())),
        };
        // It fails only when the program ends.
        ModelSearch { built_in: built_in.unwrap_or_default(), hub, hub_problem, machine }
    }

    /// The ids of files that cannot be loaded.
    pub async fn broken_files(&self) -> HashSet<String> {
        let files = self.files.clone();
        let listed = spawn_blocking(move || files.list().unwrap_or_default()).await.unwrap_or_default();
        listed.into_iter().filter(|model| model.problem.is_some()).map(|model| model.id).collect()
    }

    /// The best model for this machine that the hub has.
    async fn best_offer(&self) -> Option<ModelOffer> {
        let room = self.machine_room().await?;
        self.files.best_offer(room, |entry| self.entry_footprint(entry)).await
    }

    /// What the engine computes with; `None` without one. Takes a moment with a graphics card.
    pub async fn compute_units(&self) -> Option<ComputeUnits> {
        self.ask_engine(|engine| engine.compute_units()).await
    }

    /// Where the layers of a model would go now; `None` without an engine, or if the model is broken.
    pub async fn device_plan(&self, model: &StoredModel) -> Option<DevicePlan> {
        let model = model.clone();
        self.ask_engine(move |engine| engine.device_plan(&model)).await?
    }

    /// Finds the weight format of a model that is fastest on this machine.
    pub async fn tune(&self, model: &str, keep: KeepTuned) -> Result<TuneReport, EngineError> {
        match &self.engine {
            Some(engine) => engine.tune(model, keep).await,
            None => Err(EngineError::NotConfigured {
                engine: "embedded".to_owned(),
                reason: "this hob was built without the embedded engine".to_owned(),
            }),
        }
    }

    /// Whether the starter model could be downloaded and used now, as far as this is known without a download.
    pub async fn can_fetch_starter(&self) -> bool {
        self.engine.is_some() && self.files.is_within_reach(STARTER).await
    }

    /// Downloads the first model and returns the engine that runs it: the starter model, or a better one if `offer` accepts it.
    /// Downloads nothing without an engine.
    pub async fn fetch_first_model(
        &self,
        offer: Option<&OfferFn>,
        progress: DownloadProgressFn,
    ) -> Result<Option<Arc<dyn Engine>>, PullError> {
        let Some(engine) = self.engine() else { return Ok(None) };
        let mut first = STARTER;
        if let Some(accepts) = offer.cloned()
            && let Some(best) = self.best_offer().await
            && spawn_blocking(move || accepts(best)).await.unwrap_or(false)
        {
            first = best.entry;
        }
        self.files.pull(&PullSpec::Catalogue(first), progress).await?;
        Ok(Some(engine))
    }

    /// Makes sure that Hob's own embedding model is on the disk. Downloads nothing without an engine.
    pub async fn fetch_embedding_model(&self, first_use: &FirstRun) -> Result<(), PullError> {
        if self.engine.is_none() {
            return Ok(());
        }
        // An existing file is enough: its checksum was verified when it was downloaded.
        if let Ok(Some(StoredModel { problem: None, .. })) = self.files.find(EMBEDDING.name) {
            return Ok(());
        }
        let mut files = self.files.clone();
        let progress: DownloadProgressFn = match first_use {
            FirstRun::Fetch(progress) => Arc::clone(progress),
            FirstRun::Refuse => {
                files.go_offline();
                Arc::new(|_| ())
            }
        };
        files.pull(&PullSpec::Catalogue(EMBEDDING), progress).await.map(drop)
    }
}
