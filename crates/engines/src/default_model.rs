//! The model that `default` means.
//!
//! A model that the owner named is the default. Otherwise the first model of the engine is chosen once and recorded in the home
//! directory, for each engine: a model that is pulled later never becomes the default because of its name. A recorded model that
//! was removed is replaced, and the log says so.
//!
//! What is in memory and what is recorded change together: a choice by a page and one by a request cannot leave two different models.
//! Other processes of the same home record their choices in the same file, so it is locked while it is changed.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use arc_swap::ArcSwapOption;
use hob_core::EngineError;
use hob_core::model::AUTO;
use hob_process::{FileLock, Overwrite, WriteError, write_new};
use serde_json::json;
use tokio::sync::Mutex;

use crate::model_list_cache::{Lookup, ModelListCache};
use crate::pool::EnginePool;

/// The file in the home directory with the recorded choices, by engine.
const FILE: &str = "default_models.json";

/// How long a request waits for another process that changes the file. It blocks the connections of its thread, and a change takes
/// milliseconds.
const MAX_LOCK_WAIT: Duration = Duration::from_millis(200);

/// The default model of an engine, without the rest of the pool.
pub struct DefaultModel {
    /// As configured, which may be `auto`. Replaced when the configuration is reloaded.
    configured: ArcSwapOption<String>,
    /// The file with recorded choices; `None` keeps them in memory only.
    file: Option<PathBuf>,
    /// Whether a choice is written there, or only read.
    recording: Recording,
    /// Whether it was reported that the file cannot be read.
    is_reported: Arc<AtomicBool>,
    chosen: ArcSwapOption<ChosenModel>,
    /// Held during a choice, so that concurrent requests choose once.
    choosing: Mutex<()>,
    /// Held while the choice changes, in memory and in the file. Requests wait for it, so it is not held during a long wait.
    changing: std::sync::Mutex<()>,
}

/// The model that was chosen for an engine.
struct ChosenModel {
    /// The key of the engine.
    engine: String,
    model: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Recording {
    On,
    Off,
}

impl DefaultModel {
    pub fn new(configured: Option<String>) -> Self {
        DefaultModel {
            configured: ArcSwapOption::new(configured.map(Arc::new)),
            file: None,
            recording: Recording::On,
            is_reported: Arc::default(),
            chosen: ArcSwapOption::empty(),
            choosing: Mutex::new(()),
            changing: std::sync::Mutex::new(()),
        }
    }

    /// The same with a home directory in which the choice is recorded.
    pub fn recorded_at(self, home: &Path) -> Self {
        DefaultModel { file: Some(home.join(FILE)), ..self }
    }

    /// The same, for display: choices that are recorded there are read, and none is recorded.
    pub fn read_from(self, home: &Path) -> Self {
        DefaultModel { recording: Recording::Off, ..self.recorded_at(home) }
    }

    /// Another one with this configuration and file. It chooses for itself.
    pub fn sibling(&self) -> Self {
        DefaultModel {
            file: self.file.clone(),
            recording: self.recording,
            is_reported: Arc::clone(&self.is_reported),
            ..DefaultModel::new(self.configured().as_deref().cloned())
        }
    }

    /// As configured, which may be `auto`.
    pub fn configured(&self) -> Option<Arc<String>> {
        self.configured.load_full()
    }

    /// Replaces the configured model for requests from now on.
    pub fn configure(&self, model: Option<String>) {
        self.configured.store(model.map(Arc::new));
    }

    /// Chooses a model of an engine, and records the choice. It is the default while that engine is selected and no model is
    /// configured. Blocks.
    pub fn choose(&self, engine: &str, model: &str) {
        let lock = self.recorded_file().map(FileLock::take);
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        self.remember(engine, Some(model));
        self.record(lock, engine, Some(model));
    }

    /// The default, which may be `auto`; `None` when the engine has no model.
    pub async fn get(&self, pool: &EnginePool) -> Result<Option<String>, EngineError> {
        match self.configured() {
            Some(model) => Ok(Some(model.as_ref().clone())),
            None => self.chosen(pool.selected_models()).await,
        }
    }

    /// The model for work that always needs the same model: the default, or the chosen model if that is `auto`.
    pub async fn steady(&self, pool: &EnginePool) -> Result<Option<String>, EngineError> {
        match self.configured() {
            Some(model) if *model != AUTO => Ok(Some(model.as_ref().clone())),
            _ => self.chosen(pool.selected_models()).await,
        }
    }

    /// The model that was chosen for an engine. Chooses one if there is none yet.
    async fn chosen(&self, catalog: &ModelListCache) -> Result<Option<String>, EngineError> {
        let engine = catalog.engine().key();
        if let Some(model) = self.remembered(engine)
            && catalog.contains(&model) != Some(false)
        {
            return Ok(Some(model));
        }
        let _choosing = self.choosing.lock().await;
        let recorded = self.remembered(engine).or_else(|| self.read().remove(engine));
        let is_there = match &recorded {
            Some(model) => !matches!(catalog.look_up(model).await, Lookup::Lacks),
            None => false,
        };
        let found = match is_there {
            true => recorded.clone(),
            false => catalog.first_text_model().await?,
        };
        Ok(self.replace(engine, recorded, found))
    }

    /// Replaces the choice `before` by `found`. The engine took time to answer, and `choose` does not wait for it: a choice that was made
    /// meanwhile counts. Returns the choice that counts.
    fn replace(&self, engine: &str, before: Option<String>, found: Option<String>) -> Option<String> {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.remembered(engine);
        if now.is_some() && now != before {
            return now;
        }
        self.remember(engine, found.as_deref());
        if found == before {
            return found;
        }
        if let Some(gone) = before {
            let default = found.as_deref().unwrap_or("none");
            tracing::warn!(
                engine,
                gone,
                default,
                "the default model is gone, and another takes its place. 'hob model use NAME' chooses one"
            );
        }
        let lock = self.recorded_file().map(|file| FileLock::take_within(file, MAX_LOCK_WAIT));
        self.record(lock, engine, found.as_deref());
        found
    }

    /// The model that this process chose for an engine.
    fn remembered(&self, engine: &str) -> Option<String> {
        let chosen = self.chosen.load();
        chosen.as_ref().filter(|chosen| chosen.engine == engine).map(|chosen| chosen.model.clone())
    }

    fn remember(&self, engine: &str, model: Option<&str>) {
        let chosen = |model: &str| ChosenModel { engine: engine.to_owned(), model: model.to_owned() };
        self.chosen.store(model.map(chosen).map(Arc::new));
    }

    /// The recorded choices. A file that cannot be read counts as empty: a new choice is better than no answer. It is reported once until it
    /// can be read.
    fn read(&self) -> BTreeMap<String, String> {
        let Some(file) = &self.file else { return BTreeMap::new() };
        let parse = |bytes: Vec<u8>| serde_json::from_slice(&bytes).map_err(std::io::Error::from);
        let read = fs::read(file).and_then(parse);
        let failure = read.as_ref().err().filter(|error| error.kind() != ErrorKind::NotFound);
        let was_reported = self.is_reported.swap(failure.is_some(), Ordering::Relaxed);
        if let Some(error) = failure.filter(|_| !was_reported) {
            tracing::warn!(
                file = %file.display(),
                %error,
                "the recorded default models cannot be read; Hob chooses new ones. 'hob model use NAME' sets one"
            );
        }
        read.unwrap_or_default()
    }

    /// The file in which choices are recorded, if they are.
    fn recorded_file(&self) -> Option<&Path> {
        self.file.as_deref().filter(|_| self.recording == Recording::On)
    }

    /// Records a choice, with the lock of the file. If that is not possible, the choice lasts as long as the process.
    fn record(&self, lock: Option<Result<FileLock, WriteError>>, engine: &str, model: Option<&str>) {
        let (Some(file), Some(lock)) = (self.recorded_file(), lock) else { return };
        // The lock is held until the file is written.
        if let Err(error) = lock.and_then(|_lock| self.write_choice(file, engine, model)) {
            tracing::info!(%error, "the default model cannot be recorded");
        }
    }

    fn write_choice(&self, file: &Path, engine: &str, model: Option<&str>) -> Result<(), WriteError> {
        let mut choices = self.read();
        let is_new = match model {
            Some(model) => choices.insert(engine.to_owned(), model.to_owned()).as_deref() != Some(model),
            None => choices.remove(engine).is_some(),
        };
        match is_new {
            true => write_new(file, &format!("{:#}\n", json!(choices)), Overwrite::Force),
            false => Ok(()),
        }
    }
}

#[cfg(test)]
#[path = "default_model_tests.rs"]
mod tests;
