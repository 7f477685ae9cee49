//! The router, as the configuration wants it, with what the record of calls tells of models.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use hob_config::{Config, RouterName};
use hob_core::{Moment, RequestSource, Usage, UtcDay};
use hob_db::{DatabaseError, LazyDatabase};
use hob_telemetry::{CallRecord, SqliteTelemetryStore, TelemetryService, TelemetryStore};

use crate::databases::hob_database;
use crate::routing::{MeasuredSpeed, Measurements, PolicyName, RatableAnswer, Router, RouterBook};

/// Chooses where the model is `auto`. Rules have nothing to learn, so where nothing is recorded, no choice is either.
pub(crate) fn open_router(config: &Config, database: &LazyDatabase, record: &TelemetryService) -> Router {
    let policy = policy(config.intelligence.router);
    let book = match config.telemetry.enabled || policy == PolicyName::Grpo {
        true => router_book(database.clone(), record.clone()),
        false => RouterBook::default(),
    };
    Router::new(policy, book)
}

/// The choices in `home`, and what was learnt from them.
pub fn open_router_book(home: &Path, record: TelemetryService) -> RouterBook {
    router_book(hob_database(home), record)
}

fn router_book(database: LazyDatabase, record: TelemetryService) -> RouterBook {
    let measurements = RecordMeasurements { record, database: database.clone() };
    RouterBook::new(database, Some(Arc::new(measurements)))
}

fn policy(key: RouterName) -> PolicyName {
    match key {
        RouterName::Heuristic => PolicyName::Heuristic,
        RouterName::Grpo => PolicyName::Grpo,
    }
}

/// What the record of calls tells of models.
struct RecordMeasurements {
    record: TelemetryService,
    /// Has what was recorded before recording was switched off.
    database: LazyDatabase,
}

impl RecordMeasurements {
    /// `None` where nothing was ever recorded.
    fn store(&self) -> Result<Option<Arc<dyn TelemetryStore>>, DatabaseError> {
        if let Some(store) = self.record.store() {
            return Ok(Some(Arc::clone(store)));
        }
        let database = self.database.find()?;
        Ok(database.map(|database| Arc::new(SqliteTelemetryStore::new(database)) as Arc<dyn TelemetryStore>))
    }
}

fn ratable(recorded: CallRecord) -> RatableAnswer {
    let CallRecord { run, engine, model, source, started, .. } = recorded;
    RatableAnswer { run, engine, model, source, at: started }
}

impl Measurements for RecordMeasurements {
    fn speeds(&self, days: u32, most: u32) -> Result<Vec<MeasuredSpeed>, DatabaseError> {
        let Some(store) = self.record.store() else { return Ok(Vec::new()) };
        let speeds = store.speeds(UtcDay::of(SystemTime::now()).minus(days), most)?;
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

    fn find_run(&self, run: &str, since: Moment) -> Result<Option<RatableAnswer>, DatabaseError> {
        let Some(store) = self.store()? else { return Ok(None) };
        Ok(store.find_run(run, since)?.map(ratable))
    }

    fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> Result<Option<RatableAnswer>, DatabaseError> {
        let Some(store) = self.store()? else { return Ok(None) };
        Ok(store.last_complete(since, except_sources, except_runs)?.map(ratable))
    }

    fn settle(&self) {
        self.record.settle();
    }
}

#[cfg(test)]
#[path = "routing_tests.rs"]
mod tests;
