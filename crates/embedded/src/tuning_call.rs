//! A tuning that somebody waits for. When they leave it ends, and what was written of it is gone at once.
//!
//! llama.cpp cannot be stopped while it writes. What it writes to can be taken away, which a program that is about to end must do
//! before it does: nobody else will.

use std::mem;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use hob_core::EngineError;

use crate::error::{interrupted, unusable};
use crate::models::StoredModel;
use crate::options::EmbeddedOptions;
use crate::tune::{Keep, TuneError, TuneReport, Tuning, clear};

/// How far it is.
enum Stage {
    Ahead,
    /// It is writing into this directory, or measuring what lies there.
    UnderWay(PathBuf),
    Over,
    /// Nobody waits for it any more.
    Abandoned,
}

/// Measures a model against its Q4_0 form, on a thread of its own, for as long as the future lives.
pub(crate) async fn tune_for_caller(
    stored: StoredModel,
    options: EmbeddedOptions,
    keep: Keep,
) -> Result<TuneReport, EngineError> {
    let stage = Arc::new(Mutex::new(Stage::Ahead));
    let _caller = Caller(Arc::clone(&stage));
    let id = stored.id.clone();
    tokio::task::spawn_blocking(move || work(&stored, &options, keep, &stage))
        .await
        .map_err(|error| unusable(format!("the model '{id}' cannot be tuned: {error}")))?
}

/// Takes a while and all threads.
fn work(
    stored: &StoredModel,
    options: &EmbeddedOptions,
    keep: Keep,
    stage: &Mutex<Stage>,
) -> Result<TuneReport, EngineError> {
    let is_wanted = || !matches!(*lock(stage), Stage::Abandoned);
    let tuning = Tuning::begin(stored, options)?;
    enter(stage, Stage::UnderWay(tuning.directory().to_owned()));
    let outcome = match is_wanted() {
        true => tuning.draft(options.threads).write().map_err(TuneError::from),
        false => Err(TuneError::Interrupted),
    };
    let outcome = outcome.and_then(|()| tuning.judge(keep, &is_wanted));
    // From here on the directory may be another process's.
    enter(stage, Stage::Over);
    match outcome {
        Ok(report) => Ok(report),
        Err(TuneError::Failed(error)) => Err(error),
        Err(TuneError::Interrupted) => Err(interrupted("the tuning was interrupted")),
    }
}

/// Goes on to the next stage, unless the caller has left.
fn enter(stage: &Mutex<Stage>, next: Stage) {
    let mut stage = lock(stage);
    if !matches!(*stage, Stage::Abandoned) {
        *stage = next;
    }
}

/// Whoever waits. Dropped with their future.
struct Caller(Arc<Mutex<Stage>>);

impl Drop for Caller {
    fn drop(&mut self) {
        let mut stage = lock(&self.0);
        // Under the lock, so that the thread does not let go of the model in the meantime.
        if let Stage::UnderWay(directory) = mem::replace(&mut *stage, Stage::Abandoned) {
            clear(&directory);
        }
    }
}

fn lock(stage: &Mutex<Stage>) -> MutexGuard<'_, Stage> {
    stage.lock().unwrap_or_else(PoisonError::into_inner)
}
