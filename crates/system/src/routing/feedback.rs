//! Which answer a rating is of: one whose model the router chose, or any other that was measured. Knows nothing of learning.

use hob_core::{Moment, RequestSource};
use std::time::{Duration, SystemTime};

use hob_db::DatabaseError;
use hob_store::Routing;
use hob_store::routing::Kept;

use super::measurements::Measurements;

/// How long an answer can be rated whose model the router did not choose: it is searched for in the record of all calls.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Sources of requests whose answers no person reads.
const UNREAD: [RequestSource; 2] = [RequestSource::Scheduler, RequestSource::Bench];

/// Runs of the command line once shared these names, so that they do not identify a run.
const NAMELESS: [&str; 3] = ["", "ask", "chat"];

/// An answer that a person can rate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RatableAnswer {
    pub run: String,
    pub engine: String,
    pub model: String,
    pub source: String,
    pub at: Moment,
}

/// Where answers are found. Everything blocks.
pub(crate) struct Answers<'a> {
    pub(crate) routing: &'a Routing,
    /// `None` where nothing is measured.
    pub(crate) measurements: Option<&'a dyn Measurements>,
}

impl Answers<'_> {
    /// The answer of a run; `None` where there is none, or it is too old.
    pub(crate) fn find(&self, run: &str, now: SystemTime) -> Result<Option<RatableAnswer>, DatabaseError> {
        if let Some(chosen) = self.routing.find(run)? {
            return Ok(Some(chosen.into()));
        }
        self.measurements.map_or(Ok(None), |measurements| measurements.find_run(run, oldest(now)))
    }

    /// The last answer that a person may have read: not that of a task or of a benchmark.
    pub(crate) fn last(&self, now: SystemTime) -> Result<Option<RatableAnswer>, DatabaseError> {
        let since = oldest(now);
        let chosen = self.routing.last_answered(since, &UNREAD, &NAMELESS)?.map(RatableAnswer::from);
        let measured = match self.measurements {
            Some(measurements) => measurements.last_complete(since, &UNREAD, &NAMELESS)?,
            None => None,
        };
        Ok(chosen.into_iter().chain(measured).max_by_key(|answer| answer.at))
    }
}

fn oldest(now: SystemTime) -> Moment {
    Moment::of(now.checked_sub(REMEMBERED).unwrap_or(SystemTime::UNIX_EPOCH))
}

impl From<Kept> for RatableAnswer {
    fn from(chosen: Kept) -> Self {
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
