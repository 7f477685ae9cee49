//! Lets a running server answer with the embedded engine: downloads a model for it, loads the model, and then selects the engine. Until
//! the model is loaded, nothing changes. Knows nothing of HTTP.

use std::sync::Arc;

use futures::StreamExt;
use futures::stream;
use hob_config::{EngineName, SettingsError};
use hob_core::{Engine, EngineError, ModelInfo, ModelKind};
use hob_engines::EngineWait;
use hob_models::catalogue::{self, ModelAbility};
use hob_models::{PullSpec, PullStep};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::ask::AskService;
use crate::model_management::{ModelManagement, ModelManagementError, PullSteps};

/// The parts of an [`EmbeddedEngine`].
pub struct EmbeddedEngineParts {
    pub system: Arc<AskService>,
    pub model_management: Arc<ModelManagement>,
    /// `None` in a build without it.
    pub engine: Option<Arc<dyn Engine>>,
    /// The engine that the command line names. No other may answer.
    pub only: Option<EngineName>,
}

/// The embedded engine of a running server, which may be selected later.
pub struct EmbeddedEngine {
    parts: EmbeddedEngineParts,
    /// The engine that the server waits for, if it did not answer at the start.
    wait: Option<Arc<EngineWait>>,
    /// Held from the loading of a model until the engine is selected, so that callers who choose at the same time take turns.
    turn: Arc<Mutex<()>>,
}

/// What the owner can choose.
#[derive(Debug)]
pub struct EmbeddedEngineState {
    /// Whether it answers already.
    pub is_selected: bool,
    /// Why it cannot be selected here.
    pub problem: Option<ModelManagementError>,
    /// The models on the disk that can answer.
    pub models: Vec<ModelInfo>,
}

/// Saves the choice, and calls [`LoadedEngine::select`] if that succeeds. May block.
pub type SelectEngineFn = Box<dyn FnOnce(LoadedEngine) -> Result<(), SettingsError> + Send>;

/// The engine with a model in memory. Dropping it changes nothing.
pub struct LoadedEngine {
    system: Arc<AskService>,
    engine: Arc<dyn Engine>,
    model: String,
    wait: Option<Arc<EngineWait>>,
    _turn: OwnedMutexGuard<()>,
}

impl LoadedEngine {
    /// The id of the model.
    pub fn model(&self) -> &str {
        &self.model
    }

    /// Lets the engine answer requests from now on, with its model as the default. Blocks.
    pub fn select(self) {
        if !self.system.select_engine(&self.engine, &self.model) {
            tracing::error!(
                "the embedded engine is not selected: another engine was added before. Restart Hob to use it"
            );
            return;
        }
        // The model may be new.
        self.system.pool().forget_models(self.engine.key());
        if let Some(wait) = &self.wait {
            wait.end();
        }
        tracing::info!(model = self.model, "the embedded engine answers from now on");
    }
}

impl EmbeddedEngine {
    pub fn new(parts: EmbeddedEngineParts) -> Self {
        EmbeddedEngine { parts, wait: None, turn: Arc::default() }
    }

    /// The same for a server that waits for another engine. It does not wait any longer once this one is selected.
    pub(crate) fn ending(self, wait: Option<Arc<EngineWait>>) -> Self {
        EmbeddedEngine { wait, ..self }
    }

    /// What can be chosen now.
    pub async fn state(&self) -> EmbeddedEngineState {
        let is_selected = self.parts.system.engine().key() == EngineName::Embedded.as_str();
        let engine = match self.usable() {
            Ok(engine) => engine,
            Err(problem) => {
                return EmbeddedEngineState { is_selected, problem: Some(problem), models: Vec::new() };
            }
        };
        let (mut models, problem) = match engine.list_models().await {
            Ok(models) => (models, None),
            Err(error) => (Vec::new(), Some(error.into())),
        };
        let broken = self.parts.model_management.local.broken_files().await;
        models.retain(|model| model.kind == ModelKind::Text && !broken.contains(&model.id));
        EmbeddedEngineState { is_selected, problem, models }
    }

    /// Downloads a model of the built-in list unless it is on the disk, loads it, and gives the engine to `select`. The steps end with
    /// `success`, or with an error that leaves the server as it was. Dropping them before the model is loaded changes nothing either.
    pub async fn open(
        self: &Arc<Self>,
        model: &str,
        select: SelectEngineFn,
    ) -> Result<PullSteps, ModelManagementError> {
        let engine = self.usable()?;
        let listed = engine.list_models().await?;
        let download = match listed.iter().any(|listed| engine.means(model, &listed.id)) {
            true => stream::empty().boxed(),
            false => match catalogue::find(model) {
                Some(entry) if entry.can(ModelAbility::Chat) => {
                    self.parts.model_management.pull_files(PullSpec::Catalogue(entry), model)
                }
                Some(_) => return Err(ModelManagementError::NoAnswers { model: model.to_owned() }),
                None => return Err(not_found(model, &listed)),
            },
        };
        let opening = Opening { embedded: Arc::clone(self), model: model.to_owned(), select };
        let steps = stream::unfold(Some(Stage::Download(download, opening)), |stage| async move {
            Some(match stage? {
                Stage::Download(mut steps, opening) => match steps.next().await {
                    Some(Ok(step)) if !step.is_last() => (Ok(step), Some(Stage::Download(steps, opening))),
                    Some(Err(error)) => (Err(error), None),
                    // It is on the disk.
                    Some(Ok(_)) | None => {
                        let step = PullStep::named(format!("loading {}", opening.model));
                        (Ok(step), Some(Stage::Load(opening)))
                    }
                },
                Stage::Load(opening) => (opening.finish().await.map(|()| PullStep::success()), None),
            })
        });
        Ok(steps.boxed())
    }

    /// Loads a model that is on the disk.
    async fn load(&self, model: &str) -> Result<LoadedEngine, ModelManagementError> {
        let engine = self.usable()?;
        let turn = Arc::clone(&self.turn).lock_owned().await;
        let listed = engine.list_models().await?;
        let Some(found) = listed.iter().find(|listed| engine.means(model, &listed.id)) else {
            return Err(not_found(model, &listed));
        };
        if found.kind == ModelKind::Embedding {
            return Err(ModelManagementError::NoAnswers { model: found.id.clone() });
        }
        engine.prepare(&found.id).await.map_err(|error| not_loaded(&found.id, error))?;
        Ok(LoadedEngine {
            system: Arc::clone(&self.parts.system),
            engine: Arc::clone(engine),
            model: found.id.clone(),
            wait: self.wait.clone(),
            _turn: turn,
        })
    }

    /// The engine, if it may be selected.
    fn usable(&self) -> Result<&Arc<dyn Engine>, ModelManagementError> {
        match (&self.parts.engine, self.parts.only) {
            (None, _) => Err(ModelManagementError::NoEmbeddedEngine),
            (Some(_), Some(only)) if only != EngineName::Embedded => {
                Err(ModelManagementError::OnlyOtherEngine { engine: only.to_string() })
            }
            (Some(engine), _) => Ok(engine),
        }
    }
}

/// A choice of the owner in progress.
struct Opening {
    embedded: Arc<EmbeddedEngine>,
    model: String,
    select: SelectEngineFn,
}

enum Stage {
    Download(PullSteps, Opening),
    Load(Opening),
}

impl Opening {
    async fn finish(self) -> Result<(), ModelManagementError> {
        let Opening { embedded, model, select } = self;
        let loaded = embedded.load(&model).await?;
        // Runs to its end even if the caller leaves now.
        match tokio::task::spawn_blocking(move || select(loaded)).await {
            Ok(selected) => selected.map_err(|error| ModelManagementError::Settings(Box::new(error))),
            Err(error) => match error.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                // The runtime ends.
                Err(_) => Ok(()),
            },
        }
    }
}

fn not_loaded(model: &str, error: EngineError) -> ModelManagementError {
    match error {
        // In this process, the status says nothing.
        EngineError::Refused { message: reason, .. } => {
            ModelManagementError::NotLoaded { model: model.to_owned(), reason }
        }
        other => other.into(),
    }
}

fn not_found(model: &str, listed: &[ModelInfo]) -> ModelManagementError {
    EngineError::ModelNotFound {
        engine: EngineName::Embedded.to_string(),
        model: model.to_owned(),
        available: listed.iter().map(|listed| listed.id.clone()).collect(),
    }
    .into()
}

#[cfg(test)]
#[path = "embedded_engine_tests.rs"]
mod tests;
