//! The router, as the configuration wants it, with what the record of calls tells of models.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use hob_config::{Config, RouterKey};
use hob_core::Usage;
use hob_db::DatabaseError;
use hob_store::UtcDay;

use crate::databases::DATABASE;
use crate::record::Record;
use crate::routing::{MeasuredSpeed, Measurements, PolicyName, Router, RouterBook};

/// Chooses where the model is `auto`. Rules have nothing to learn, so where nothing is recorded, no choice is either.
pub(crate) fn open_router(config: &Config, home: &Path, record: &Record) -> Router {
    let policy = policy(config.intelligence.router);
    let book = match config.telemetry.enabled || policy == PolicyName::Grpo {
        true => open_router_book(home, record.clone()),
        false => RouterBook::default(),
    };
    Router::new(policy, book)
}

/// The choices in `home`, and what was learnt from them.
pub fn open_router_book(home: &Path, record: Record) -> RouterBook {
    RouterBook::at(&home.join(DATABASE), Arc::new(RecordMeasurements { record }))
}

fn policy(key: RouterKey) -> PolicyName {
    match key {
        RouterKey::Heuristic => PolicyName::Heuristic,
        RouterKey::Grpo => PolicyName::Grpo,
    }
}

/// What the record of calls tells of models.
struct RecordMeasurements {
    record: Record,
}

impl Measurements for RecordMeasurements {
    fn speeds(&self, days: u32, most: u32) -> Result<Vec<MeasuredSpeed>, DatabaseError> {
        let Some(telemetry) = self.record.telemetry() else { return Ok(Vec::new()) };
        let speeds = telemetry.speeds(UtcDay::of(SystemTime::now()).minus(days), most)?;
        let measured = speeds.into_iter().map(|speed| MeasuredSpeed {
            engine: speed.engine,
            model: speed.model,
            tokens_per_second: speed.tokens_per_second,
        });
        Ok(measured.collect())
    }

    fn price(&self, model: &str, usage: Usage) -> Option<f64> {
        let price = self.record.prices().of(model)?;
        Some((price.of_input(usage.prompt_tokens) + price.of_output(usage.completion_tokens)).as_f64())
    }

    fn settle(&self) {
        self.record.settle();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_of_the_cloud_costs_what_its_model_does() {
        let measurements = RecordMeasurements { record: Record::default() };
        let usage = Usage { prompt_tokens: 1000, completion_tokens: 1000, ..Usage::default() };
        assert!(measurements.price("gpt-5.2", usage).is_some_and(|dollars| dollars > 0.0));
        assert_eq!(measurements.price("a model that nobody has heard of", usage), None);
    }
}
