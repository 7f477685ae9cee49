//! Tunes a model in the spare time of its own thread: once, when nobody has asked for anything for a while, and only until
//! somebody does.
//!
//! Writing the other form cannot be interrupted, so a thread of its own does that, with one core, while the model answers as
//! ever. Measuring is what takes all cores, and stops within a step when somebody asks.

use std::thread::{self, JoinHandle};
use std::time::Duration;

use hob_core::EngineError;

use crate::error::unusable;
use crate::models::StoredModel;
use crate::options::EmbeddedOptions;
use crate::tune::{Keep, TuneError, TuneReport, Tuning, is_due};

/// How often a thread that writes is looked at.
const GLANCE: Duration = Duration::from_millis(250);

/// What came of working at it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Chore {
    /// It is not the time; look again after so long.
    Later(Duration),
    /// There is nothing left to do.
    Done,
    /// There is a faster form of the model now.
    Improved,
}

enum Stage<'a> {
    Waiting,
    Writing { tuning: Tuning<'a>, thread: JoinHandle<Result<(), EngineError>> },
    Written(Tuning<'a>),
    Over,
}

/// A model that is to be tuned.
pub(crate) struct TuningChore<'a> {
    stored: &'a StoredModel,
    options: &'a EmbeddedOptions,
    after: Duration,
    stage: Stage<'a>,
}

impl<'a> TuningChore<'a> {
    /// `None` for a model that nobody wants tuned, or that was tuned before.
    pub(crate) fn of(stored: &'a StoredModel, options: &'a EmbeddedOptions) -> Option<Self> {
        let wish = options.tune.as_ref().filter(|wish| wish.model == stored.id)?;
        is_due(stored).then_some(TuningChore { stored, options, after: wish.after, stage: Stage::Waiting })
    }

    /// Does what there is time for, if the model has been idle for long enough and `nobody_asks`.
    pub(crate) fn work(&mut self, idle_for: Duration, nobody_asks: &dyn Fn() -> bool) -> Chore {
        if idle_for < self.after {
            return Chore::Later(self.after - idle_for);
        }
        if !nobody_asks() {
            return Chore::Later(self.after);
        }
        match self.go_on(nobody_asks) {
            Ok(chore) => chore,
            Err(error) => {
                tracing::warn!(model = %self.stored.id, %error, "the model cannot be tuned");
                Chore::Done
            }
        }
    }

    fn go_on(&mut self, nobody_asks: &dyn Fn() -> bool) -> Result<Chore, EngineError> {
        match std::mem::replace(&mut self.stage, Stage::Over) {
            Stage::Waiting => {
                tracing::info!(model = %self.stored.id, "looking for a faster form of the model while nobody asks");
                let tuning = Tuning::begin(self.stored, self.options)?;
                let draft = tuning.draft(1);
                let thread = thread::Builder::new()
                    .name("tuning".to_owned())
                    .spawn(move || draft.write())
                    .map_err(|error| unusable(format!("there is no thread to write it with: {error}")))?;
                self.stage = Stage::Writing { tuning, thread };
                Ok(Chore::Later(GLANCE))
            }
            Stage::Writing { tuning, thread } if !thread.is_finished() => {
                self.stage = Stage::Writing { tuning, thread };
                Ok(Chore::Later(GLANCE))
            }
            Stage::Writing { tuning, thread } => {
                // A thread that panicked has said so itself.
                if let Ok(outcome) = thread.join() {
                    outcome?;
                    self.stage = Stage::Written(tuning);
                    return Ok(Chore::Later(Duration::ZERO));
                }
                Ok(Chore::Done)
            }
            Stage::Written(tuning) => match tuning.judge(Keep::IfFaster, nobody_asks) {
                Ok(report) => Ok(self.tell(&report)),
                Err(TuneError::Interrupted) => {
                    tracing::info!(model = %self.stored.id, "somebody asks, so the model is measured another time");
                    self.stage = Stage::Written(tuning);
                    Ok(Chore::Later(self.after))
                }
                Err(TuneError::Failed(error)) => Err(error),
            },
            Stage::Over => Ok(Chore::Done),
        }
    }

    fn tell(&self, report: &TuneReport) -> Chore {
        let model = &self.stored.id;
        if report.kept.is_none() {
            tracing::info!(%model, "the model stays as it is: no other form is faster here");
            return Chore::Done;
        }
        let (before, after) = (report.cost.perplexity_before, report.cost.perplexity_after);
        tracing::info!(
            %model,
            form = report.tuned.quantization,
            times_as_fast = format!("{:.2}", report.gain()),
            perplexity = format!("{after:.2} instead of {before:.2}"),
            "a faster form of the model is used from now on"
        );
        Chore::Improved
    }
}

impl Drop for TuningChore<'_> {
    /// The file that is being written is removed only once nobody writes it.
    fn drop(&mut self) {
        if let Stage::Writing { tuning, thread } = std::mem::replace(&mut self.stage, Stage::Over) {
            let _ = thread.join();
            drop(tuning);
        }
    }
}
