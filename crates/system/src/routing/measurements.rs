//! What the router needs to know of models and answers from the part that measures them.

use hob_core::{Moment, RequestSource, Usage};
use hob_db::DatabaseError;

use super::feedback::RatableAnswer;

/// Says how fast models are and what their answers cost.
pub trait Measurements: Send + Sync {
    /// How fast models wrote in the last `days`, for `most` models at most. Blocks.
    fn speeds(&self, days: u32, most: u32) -> Result<Vec<MeasuredSpeed>, DatabaseError>;

    /// What an answer of a cloud model cost in dollars; `None` where that is not known.
    fn price(&self, model: &str, usage: Usage) -> Option<f64>;

    /// The last answer of a run since a moment. Blocks.
    fn find_run(&self, run: &str, since: Moment) -> Result<Option<RatableAnswer>, DatabaseError>;

    /// The last complete answer since a moment, without those of some sources and of some runs. Blocks.
    fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> Result<Option<RatableAnswer>, DatabaseError>;

    /// Waits a moment for answers that are not recorded yet. Blocks.
    fn settle(&self);
}

/// How fast a model writes.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredSpeed {
    pub engine: String,
    pub model: String,
    pub tokens_per_second: f64,
}
