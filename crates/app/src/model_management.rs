//! Downloads, deletes and copies models for the engines of a running server: files of the embedded engine, and models of an Ollama.
//! What is downloaded here, this server can answer with.

use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use futures::{Stream, StreamExt};
use hob_config::{Config, EngineName, SettingsError};
use hob_core::{Engine, EngineError};
use hob_engines::Ollama;
use hob_engines::pool::EnginePool;
use hob_models::pull::PullSpecError;
use hob_models::{
    HubSearch, LocalModels, MachineRoom, ModelDirectoryError, ModelFailureKind, ModelSearch, PullError,
    PullSpec, PullStep, is_pulled_by_hob,
};
use thiserror::Error;
use tokio::sync::OnceCell;

use crate::startup::engines::ollama;
use crate::startup::local_models::local_models;

/// Why a model cannot be downloaded, deleted or copied, or the embedded engine cannot answer with it.
#[derive(Debug, Error)]
pub enum ModelManagementError {
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Pull(#[from] PullError),
    #[error(transparent)]
    Directory(#[from] ModelDirectoryError),
    /// No source has a model of this name.
    #[error(transparent)]
    Unknown(#[from] PullSpecError),
    #[error("'{name}' is a path. Run 'hob model pull {name}' on the server's machine")]
    LocalPath { name: String },
    #[error("{engines} cannot download models. Download the model with the engine's own tools")]
    NoSource { engines: String },
    #[error("'{model}' is a model of {engine}, which does not let Hob {what} models")]
    NotOurs { model: String, engine: String, what: &'static str },
    #[error("'{model}' cannot be loaded: {reason}")]
    NotLoaded { model: String, reason: String },
    #[error("'{model}' makes vectors and writes no answers. Choose another model")]
    NoAnswers { model: String },
    #[error(
        "this Hob was built without the embedded engine. Install a release of Hob, or start another engine"
    )]
    NoEmbeddedEngine,
    #[error(
        "Hob was started with '--engine {engine}', so no other engine may answer. Start it without that option"
    )]
    OnlyOtherEngine { engine: String },
    /// The choice of an engine cannot be saved.
    #[error(transparent)]
    Settings(#[from] Box<SettingsError>),
}

impl ModelManagementError {
    /// What kind of failure it is, for callers who answer each differently.
    pub fn reason(&self) -> ModelFailureKind {
        match self {
            ModelManagementError::Engine(_) => ModelFailureKind::Source,
            ModelManagementError::Unknown(_) => ModelFailureKind::NotFound,
            ModelManagementError::Directory(error) => error.failure(),
            ModelManagementError::Pull(error) => error.failure(),
            ModelManagementError::LocalPath { .. }
            | ModelManagementError::NoSource { .. }
            | ModelManagementError::NotOurs { .. }
            | ModelManagementError::NoAnswers { .. }
            | ModelManagementError::NoEmbeddedEngine
            | ModelManagementError::OnlyOtherEngine { .. } => ModelFailureKind::Impossible,
            ModelManagementError::NotLoaded { .. } | ModelManagementError::Settings(_) => {
                ModelFailureKind::Disk
            }
        }
    }
}

/// The steps of a download until `success` or an error. Dropping it stops the download; the next one resumes it.
pub type PullSteps = Pin<Box<dyn Stream<Item = Result<PullStep, ModelManagementError>> + Send>>;

/// The models that this server can add and remove.
pub struct ModelManagement {
    pool: Arc<EnginePool>,
    pub(crate) local: LocalModels,
    /// What the machine has for models, once it was measured.
    machine: OnceCell<Option<MachineRoom>>,
    /// `None` where no Ollama answers here.
    ollama: Option<Ollama>,
}

/// Where a model comes from.
#[derive(Debug, PartialEq, Eq)]
enum PullSource {
    Files(PullSpec),
    Ollama(String),
}

impl ModelManagement {
    /// For the engines in `pool`. `home` is where Hob keeps its files.
    pub fn open(config: &Config, home: &Path, pool: Arc<EnginePool>) -> Result<Self, EngineError> {
        let has_ollama = pool.with_key(Ollama::KEY).is_some();
        let ollama = has_ollama.then(|| ollama(config)).transpose()?;
        Ok(ModelManagement { local: local_models(config, home), machine: OnceCell::new(), ollama, pool })
    }

    /// The same without the network: only what an Ollama downloads can be downloaded.
    pub fn offline(mut self) -> Self {
        self.local.files.go_offline();
        self
    }

    /// Searches for all words. Measures the machine at the first search, which takes some tenths of a second.
    pub async fn search(&self, words: &str, hub: HubSearch) -> ModelSearch {
        let machine = *self.machine.get_or_init(|| self.local.machine_room()).await;
        self.local.search(words, hub, machine).await
    }

    /// Begins a download. `name` is one of Hob's own list, `hf:OWNER/REPO[:QUANTISATION]`, or a name that Ollama knows.
    pub async fn pull(&self, name: &str) -> Result<PullSteps, ModelManagementError> {
        let (steps, engine) = match (self.source(name)?, &self.ollama) {
            (PullSource::Files(spec), _) => (self.pull_files(spec, name), EngineName::Embedded.as_str()),
            (PullSource::Ollama(name), Some(ollama)) => {
                let steps = ollama.pull(&name).await?;
                let step = |step: hob_engines::ollama::OllamaPullProgress| PullStep {
                    status: step.status,
                    digest: step.digest,
                    total: step.total,
                    completed: step.completed,
                };
                (
                    steps.map(move |next| next.map(step).map_err(ModelManagementError::from)).boxed(),
                    Ollama::KEY,
                )
            }
            (PullSource::Ollama(_), None) => return Err(self.no_source()),
        };
        // A client that lists the models next finds this one.
        let pool = Arc::clone(&self.pool);
        let noticed = steps.inspect(move |step| {
            if step.as_ref().is_ok_and(PullStep::is_last) {
                pool.forget_models(engine);
            }
        });
        Ok(noticed.boxed())
    }

    /// Begins a download for the embedded engine, which need not answer here yet.
    pub(crate) fn pull_files(&self, spec: PullSpec, name: &str) -> PullSteps {
        self.local.files.pull_steps(spec, name).map(|next| next.map_err(ModelManagementError::from)).boxed()
    }

    fn source(&self, name: &str) -> Result<PullSource, ModelManagementError> {
        let has_files = self.pool.with_key(EngineName::Embedded.as_str()).is_some();
        source(name, has_files, self.ollama.is_some())
            .map_err(|error| error.unwrap_or_else(|| self.no_source()))
    }

    fn no_source(&self) -> ModelManagementError {
        let engines: Vec<&str> = self.pool.engines().map(|engine| engine.key()).collect();
        ModelManagementError::NoSource { engines: engines.join(", ") }
    }

    /// Deletes a model.
    pub async fn delete(&self, model: &str) -> Result<(), ModelManagementError> {
        let (engine, id) = match self.engine_of(model).await? {
            Some(found) => found,
            // A file that cannot be loaded, or a download that was not finished.
            None if self.pool.with_key(EngineName::Embedded.as_str()).is_some() => {
                return self.remove_file(model.to_owned()).await;
            }
            None => return Err(self.not_found(model)),
        };
        match (engine.key(), &self.ollama) {
            (Ollama::KEY, Some(ollama)) => ollama.delete(&id).await?,
            (key, _) if key == EngineName::Embedded.as_str() => {
                engine.unload(&id).await?;
                self.remove_file(id).await?;
            }
            (key, _) => {
                return Err(ModelManagementError::NotOurs {
                    model: id,
                    engine: key.to_owned(),
                    what: "delete",
                });
            }
        }
        self.pool.forget_models(engine.key());
        Ok(())
    }

    /// Whether models of this engine can be deleted here.
    pub fn can_delete(&self, engine: &str) -> bool {
        engine == EngineName::Embedded.as_str() || engine == Ollama::KEY && self.ollama.is_some()
    }

    /// Gives a model of Ollama a second name.
    pub async fn copy(&self, source: &str, destination: &str) -> Result<(), ModelManagementError> {
        let Some((engine, id)) = self.engine_of(source).await? else { return Err(self.not_found(source)) };
        match (engine.key(), &self.ollama) {
            (Ollama::KEY, Some(ollama)) => {
                ollama.copy(&id, destination).await?;
                self.pool.forget_models(Ollama::KEY);
                Ok(())
            }
            (key, _) => {
                Err(ModelManagementError::NotOurs { model: id, engine: key.to_owned(), what: "copy" })
            }
        }
    }

    async fn remove_file(&self, id: String) -> Result<(), ModelManagementError> {
        let files = self.local.files.clone();
        let removed = tokio::task::spawn_blocking(move || files.remove(&id)).await;
        // The runtime is going down.
        removed.unwrap_or(Ok(())).map_err(ModelManagementError::from)
    }

    /// The engine that lists this model, and the model's id there.
    async fn engine_of(
        &self,
        model: &str,
    ) -> Result<Option<(Arc<dyn Engine>, String)>, ModelManagementError> {
        let listed = self.pool.list().await?;
        let found = listed.into_iter().find(|listed| self.pool.means(model, listed));
        Ok(found.and_then(|found| Some((Arc::clone(self.pool.with_key(&found.engine)?), found.model.id))))
    }

    fn not_found(&self, model: &str) -> ModelManagementError {
        let engine = self.pool.selected().key().to_owned();
        EngineError::ModelNotFound { engine, model: model.to_owned(), available: Vec::new() }.into()
    }
}

/// Where a model of this name comes from. The error is `None` where nothing here can download.
fn source(name: &str, has_files: bool, has_ollama: bool) -> Result<PullSource, Option<ModelManagementError>> {
    // Clients of Ollama add a tag.
    let ours = name.strip_suffix(":latest").unwrap_or(name);
    let spec: Result<PullSpec, PullSpecError> = ours.parse();
    match spec {
        Ok(spec) if has_files && is_pulled_by_hob(&spec, ours, has_ollama) => Ok(PullSource::Files(spec)),
        // Ollama has no such names.
        Err(error @ PullSpecError::FileAddress { .. }) if has_files => Err(Some(error.into())),
        _ if has_ollama => Ok(PullSource::Ollama(name.to_owned())),
        _ if !has_files => Err(None),
        Ok(_) => Err(Some(ModelManagementError::LocalPath { name: name.to_owned() })),
        Err(error) => Err(Some(error.into())),
    }
}

#[cfg(test)]
mod tests {
    use std::error::Error;
    use std::io;

    use super::*;

    fn files(spec: &str) -> PullSource {
        PullSource::Files(spec.parse().expect("a model of Hob's own"))
    }

    #[test]
    fn a_model_comes_from_where_this_server_can_answer_with_it() {
        let of = |name: &str, has_files, has_ollama| source(name, has_files, has_ollama).ok();
        let ollama = |name: &str| Some(PullSource::Ollama(name.to_owned()));
        assert_eq!(of("smollm2-135m-instruct:latest", true, false), Some(files("smollm2-135m-instruct")));
        assert_eq!(of("hf.co/a/b:Q8_0", true, true), Some(files("hf:a/b:Q8_0")));
        assert_eq!(of("hf.co/a/b:Q8_0", false, true), ollama("hf.co/a/b:Q8_0"));
        assert_eq!(of("qwen3:8b", true, true), ollama("qwen3:8b"));
        assert_eq!(of("qwen3-8b", true, true), Some(files("qwen3:8b")));
        assert_eq!(of("qwen3:8b", true, false), Some(files("qwen3:8b")));
        assert_eq!(of("someone/model", true, true), ollama("someone/model"));
    }

    #[test]
    fn what_cannot_be_downloaded_says_why() {
        let refused = |name: &str, has_files, has_ollama| {
            source(name, has_files, has_ollama).expect_err("refused").map(|error| error.to_string())
        };
        let why = |name: &str, has_files| refused(name, has_files, false);
        assert_eq!(why("qwen3:8b", false), None);
        assert_eq!(
            why("/etc/passwd.gguf", true).as_deref(),
            Some(
                "'/etc/passwd.gguf' is a path. Run 'hob model pull /etc/passwd.gguf' on the server's machine"
            )
        );
        assert!(why("qwen9:8b", true).is_some_and(|message| message.contains("is not in the built-in list")));
        let of_file = refused("https://huggingface.co/a/b/blob/v2/x.gguf", true, true);
        assert!(of_file.is_some_and(|message| message.contains("Write hf:owner/repo:file.gguf")));
    }

    #[test]
    fn a_full_disk_is_known_as_the_cause_of_a_failed_download() {
        let path = Path::new("/models/x.part").to_owned();
        let full = PullError::DiskFull { path, source: io::ErrorKind::StorageFull.into() };
        let error = ModelManagementError::from(full);
        assert_eq!(error.reason(), ModelFailureKind::Disk);
        let cause = error.source().and_then(|cause| cause.downcast_ref::<io::Error>());
        assert_eq!(cause.map(io::Error::kind), Some(io::ErrorKind::StorageFull));
    }
}
