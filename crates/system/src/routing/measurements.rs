//! What the router wants to know of models and their answers from whatever records them.

use std::time::SystemTime;

use hob_core::{RequestSource, Usage};
use hob_db::DatabaseError;
use hob_store::routing::Answer;

/// Says how fast models are, what their answers cost, and which answers there were.
pub trait Measurements: Send + Sync {
    /// How fast models wrote in the last `days`, for `most` models at most. Blocks.
    fn speeds(&self, days: u32, most: u32) -> Result<Vec<MeasuredSpeed>, DatabaseError>;

    /// What an answer of a cloud model cost in dollars; `None` where that is not known.
    fn price(&self, model: &str, usage: Usage) -> Option<f64>;

    /// The recorded answer of a run since a moment. Blocks.
    fn find_answer(&self, run: &str, since: SystemTime) -> Result<Option<Answer>, DatabaseError>;

    /// The last recorded answer that somebody may have read. Blocks.
    fn last_answer(&self, wanted: &ReadableAnswers<'_>) -> Result<Option<Answer>, DatabaseError>;
}

/// Answers that somebody may have read.
#[derive(Debug, Clone, Copy)]
pub struct ReadableAnswers<'a> {
    pub since: SystemTime,
    /// Answers that came from elsewhere than here.
    pub except_sources: &'a [RequestSource],
    /// Answers of other runs than these.
    pub except_runs: &'a [&'a str],
}

/// How fast a model writes.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredSpeed {
    pub engine: String,
    pub model: String,
    pub tokens_per_second: f64,
}
