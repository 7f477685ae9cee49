//! The measurements that routing needs.

use hob_core::Usage;
use hob_db::DbResult;

pub trait Measurements: Send + Sync {
    /// The speeds in the last `days`, of at most `most` models. Blocks.
    fn speeds(&self, days: u32, most: u32) -> DbResult<Vec<MeasuredSpeed>>;

    /// The price of an answer of a cloud model in dollars, if known.
    fn price(&self, model: &str, usage: Usage) -> Option<f64>;
}

#[derive(Debug, Clone, PartialEq)]
pub struct MeasuredSpeed {
    pub engine: String,
    pub model: String,
    pub tokens_per_second: f64,
}
