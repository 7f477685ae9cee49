//! Rates answers: those whose model the router chose, and any other that was recorded. Knows nothing of learning.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::{Moment, RequestSource};
use hob_db::{DatabaseError, DbResult};
use thiserror::Error;

use crate::records::Rating;
use crate::service::RoutingService;
use crate::store::{NewRating, RoutingStore, StoredDecision};

/// How long an answer can be rated if the router did not choose its model: it is searched in all recorded calls.
const RATABLE_FOR: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Sources of requests whose answers no person reads.
const UNATTENDED_SOURCES: [RequestSource; 2] = [RequestSource::Scheduler, RequestSource::Bench];

/// Older versions gave these ids to every run of the command line, so they do not identify a run.
const SHARED_RUN_NAMES: [&str; 3] = ["", "ask", "chat"];

/// Finds recorded answers, also those whose model the router did not choose. Every call blocks.
pub trait RecordedAnswers: Send + Sync {
    /// Waits a moment for answers that are not recorded yet.
    fn settle(&self);

    /// The last answer of a run since a moment.
    fn find_run(&self, run: &str, since: Moment) -> DbResult<Option<RatableAnswer>>;

    /// The last complete answer since a moment, without those of some sources and of some runs.
    fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> DbResult<Option<RatableAnswer>>;
}

/// An answer that a person can rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatableAnswer {
    pub run: String,
    pub engine: String,
    pub model: String,
    pub source: String,
    pub at: Moment,
}

/// A rating that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatingResult {
    pub answer: RatableAnswer,
    pub rating: Rating,
    /// Whether the router learned from it: only if it chose the model.
    pub learnt: bool,
}

/// Why an answer cannot be rated.
#[derive(Debug, Error)]
pub enum RateError {
    #[error("there is no answer '{run}' of the last days")]
    NoSuchAnswer { run: String },
    #[error("there is no answer yet that could be rated")]
    NoAnswer,
    #[error(transparent)]
    Store(#[from] DatabaseError),
}

/// Rates answers. Cheap to clone. The default finds no answers.
#[derive(Clone, Default)]
pub struct FeedbackService {
    routing: RoutingService,
    /// `None` if no answers are recorded.
    recorded: Option<Arc<dyn RecordedAnswers>>,
}

impl FeedbackService {
    pub fn new(routing: RoutingService, recorded: Option<Arc<dyn RecordedAnswers>>) -> Self {
        FeedbackService { routing, recorded }
    }

    /// Rates the answer of a run, `None` for the last one. Blocks.
    pub fn rate(&self, run: Option<&str>, rating: Rating) -> Result<RatingResult, RateError> {
        let now = SystemTime::now();
        let nothing = || match run {
            Some(run) => RateError::NoSuchAnswer { run: run.chars().take(80).collect() },
            None => RateError::NoAnswer,
        };
        self.routing.flush();
        let Some(store) = self.routing.find()? else { return Err(nothing()) };
        if let Some(recorded) = &self.recorded {
            recorded.settle();
        }
        let answer = match run {
            Some(run) => self.answer(store.as_ref(), run, now)?,
            None => self.last_answer(store.as_ref(), now)?,
        };
        let answer = answer.ok_or_else(nothing)?;
        let RatableAnswer { run, engine, model, .. } = &answer;
        let learnt = self.routing.rate(&NewRating { run, engine, model, rating, rated: now })?;
        Ok(RatingResult { answer, rating, learnt })
    }

    /// The answer of a run; `None` if there is none, or if it is too old.
    fn answer(
        &self,
        store: &dyn RoutingStore,
        run: &str,
        now: SystemTime,
    ) -> DbResult<Option<RatableAnswer>> {
        if let Some(chosen) = store.find(run)? {
            return Ok(Some(chosen.into()));
        }
        self.recorded.as_ref().map_or(Ok(None), |recorded| recorded.find_run(run, oldest(now)))
    }

    /// The last answer that a person may have read: not that of a task or of a benchmark.
    fn last_answer(&self, store: &dyn RoutingStore, now: SystemTime) -> DbResult<Option<RatableAnswer>> {
        let since = oldest(now);
        let chosen =
            store.last_answered(since, &UNATTENDED_SOURCES, &SHARED_RUN_NAMES)?.map(RatableAnswer::from);
        let recorded = match &self.recorded {
            Some(recorded) => recorded.last_complete(since, &UNATTENDED_SOURCES, &SHARED_RUN_NAMES)?,
            None => None,
        };
        Ok(chosen.into_iter().chain(recorded).max_by_key(|answer| answer.at))
    }
}

fn oldest(now: SystemTime) -> Moment {
    Moment::of(now.checked_sub(RATABLE_FOR).unwrap_or(SystemTime::UNIX_EPOCH))
}

impl From<StoredDecision> for RatableAnswer {
    fn from(chosen: StoredDecision) -> Self {
        let decision = chosen.decision;
        RatableAnswer {
            run: decision.run.to_string(),
            engine: decision.engine,
            model: decision.model,
            source: decision.source.as_str().to_owned(),
            at: Moment::of(decision.decided),
        }
    }
}

#[cfg(test)]
#[path = "feedback_tests.rs"]
mod tests;
