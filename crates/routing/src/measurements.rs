//! What routing needs to know of models from the part that measures them.

use hob_core::Usage;
use hob_db::DatabaseError;

/// Says how fast models are and what their answers cost.
pub trait Measurements: Send + Sync {
    /// How fast models wrote in the last `days`, for `most` models at most. Blocks.
    fn speeds(&self, days: u32, most: u32) -> Result<Vec<MeasuredSpeed>, DatabaseError>;

    /// What an answer of a cloud model cost in dollars; `None` where that is not known.
    fn price(&self, model: &str, usage: Usage) -> Option<f64>;
}

/// How fast a model writes.
#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredSpeed {
    pub engine: String,
    pub model: String,
    pub tokens_per_second: f64,
}
