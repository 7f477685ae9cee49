//! The calls that telemetry recorded, as routing and feedback need them: speeds, prices, and the answer of a run.

use std::sync::Arc;
use std::time::SystemTime;

use hob_core::{Moment, RequestSource, Usage, UtcDay};
use hob_db::{DbResult, Storage};
use hob_routing::{MeasuredSpeed, Measurements};
use hob_telemetry::{CallRecord, TelemetryService, TelemetryStore, find_telemetry_store};

/// The recorded calls. Cheap to clone.
#[derive(Clone)]
pub struct RecordedCalls {
    record: TelemetryService,
    /// Also has the calls from before recording was disabled.
    database: Storage,
}

impl RecordedCalls {
    pub(crate) fn new(database: impl Into<Storage>, record: TelemetryService) -> Self {
        RecordedCalls { record, database: database.into() }
    }

    pub(crate) fn database(&self) -> &Storage {
        &self.database
    }

    /// The last answer of a run since a moment. Blocks.
    pub(crate) fn find_run(&self, run: &str, since: Moment) -> DbResult<Option<CallRecord>> {
        let Some(store) = self.store()? else { return Ok(None) };
        store.find_run(run, since)
    }

    /// The last complete answer since a moment, without those of some sources and of some runs. Blocks.
    pub(crate) fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> DbResult<Option<CallRecord>> {
        let Some(store) = self.store()? else { return Ok(None) };
        store.last_complete(since, except_sources, except_runs)
    }

    /// Waits a moment for answers that are not recorded yet. Blocks.
    pub(crate) fn settle(&self) {
        self.record.settle();
    }

    /// `None` if nothing was ever recorded.
    fn store(&self) -> DbResult<Option<Arc<dyn TelemetryStore>>> {
        if let Some(store) = self.record.store() {
            return Ok(Some(Arc::clone(store)));
        }
        find_telemetry_store(&self.database)
    }
}

impl Measurements for RecordedCalls {
    fn speeds(&self, days: u32, most: u32) -> DbResult<Vec<MeasuredSpeed>> {
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
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::databases::hob_database;

    #[test]
    fn a_cloud_answer_has_the_price_of_its_model() {
        let calls = RecordedCalls::new(hob_database(Path::new("never-opened")), TelemetryService::default());
        let usage = Usage { prompt_tokens: 1000, completion_tokens: 1000, ..Usage::default() };
        assert!(calls.price("gpt-5.2", usage).is_some_and(|dollars| dollars > 0.0));
        assert_eq!(calls.price("an unknown model", usage), None);
    }
}
