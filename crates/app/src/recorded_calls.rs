//! The calls that telemetry recorded, as routing and its feedback need them: speeds, prices, and the answer of a run.

use std::sync::Arc;
use std::time::SystemTime;

use hob_core::{Moment, RequestSource, Usage, UtcDay};
use hob_db::{DbResult, Storage};
use hob_routing::{MeasuredSpeed, Measurements, RatableAnswer, RecordedAnswers};
use hob_telemetry::{CallRecord, TelemetryService, TelemetryStore, find_telemetry_store};

/// The recorded calls. Cheap to clone.
#[derive(Clone)]
pub(crate) struct RecordedCalls {
    pub(crate) record: TelemetryService,
    /// Also has the calls from before recording was disabled.
    pub(crate) database: Storage,
}

impl RecordedCalls {
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

impl RecordedAnswers for RecordedCalls {
    fn settle(&self) {
        self.record.settle();
    }

    fn find_run(&self, run: &str, since: Moment) -> DbResult<Option<RatableAnswer>> {
        let Some(store) = self.store()? else { return Ok(None) };
        Ok(store.find_run(run, since)?.map(ratable))
    }

    fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> DbResult<Option<RatableAnswer>> {
        let Some(store) = self.store()? else { return Ok(None) };
        Ok(store.last_complete(since, except_sources, except_runs)?.map(ratable))
    }
}

fn ratable(recorded: CallRecord) -> RatableAnswer {
    let CallRecord { run, engine, model, source, started, .. } = recorded;
    RatableAnswer { run, engine, model, source, at: started }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::{Duration, UNIX_EPOCH};

    use hob_core::FinishReason;
    use hob_telemetry::{Inference, InferenceEnd, Prices, SqliteTelemetryStore};

    use super::*;
    use crate::databases::hob_database;

    #[test]
    fn a_cloud_answer_has_the_price_of_its_model() {
        let database = hob_database(Path::new("never-opened")).into();
        let calls = RecordedCalls { record: TelemetryService::default(), database };
        let usage = Usage { prompt_tokens: 1000, completion_tokens: 1000, ..Usage::default() };
        assert!(calls.price("gpt-5.2", usage).is_some_and(|dollars| dollars > 0.0));
        assert_eq!(calls.price("an unknown model", usage), None);
    }

    #[test]
    fn an_answer_from_before_recording_was_disabled_is_found() {
        let home = tempfile::tempdir().expect("a directory");
        let database = hob_database(home.path());
        let started = UNIX_EPOCH + Duration::from_secs(1_800_000_000);
        let inference = Inference {
            started,
            run: "chatcmpl-1".into(),
            source: RequestSource::Server,
            engine: "vllm".into(),
            model: "m".into(),
            agent: None,
            key: None,
            end_user: None,
            details: Default::default(),
            streamed: false,
            usage: Usage::default(),
            estimated: false,
            latency: Duration::from_secs(1),
            first_token: None,
            energy: None,
            ending: InferenceEnd::Complete(FinishReason::Stop),
        };
        let store = SqliteTelemetryStore::new(database.open().expect("opened"));
        store.record_batch(&[inference], &Prices::standard()).expect("recorded");

        let calls = RecordedCalls { record: TelemetryService::default(), database: database.into() };
        let expected = RatableAnswer {
            run: "chatcmpl-1".to_owned(),
            engine: "vllm".to_owned(),
            model: "m".to_owned(),
            source: "server".to_owned(),
            at: Moment::of(started),
        };
        let since = Moment::of(UNIX_EPOCH);
        assert_eq!(calls.find_run("chatcmpl-1", since).expect("looked"), Some(expected.clone()));
        assert_eq!(calls.last_complete(since, &[], &[]).expect("looked"), Some(expected));
        assert_eq!(calls.last_complete(since, &[RequestSource::Server], &[]).expect("looked"), None);
        assert_eq!(
            calls.find_run("chatcmpl-1", Moment::of(started + Duration::from_secs(1))).expect("looked"),
            None
        );
    }
}
