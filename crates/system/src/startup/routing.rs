//! The router, as the configuration wants it, with what the record of calls tells of models.

use std::path::Path;
use std::sync::Arc;
use std::time::SystemTime;

use hob_config::{Config, RouterKey};
use hob_core::Usage;
use hob_db::{DatabaseError, LazyDatabase};
use hob_store::routing::Answer;
use hob_store::telemetry::{Except, Row};
use hob_store::{Moment, Telemetry, UtcDay};

use crate::databases::hob_database;
use crate::record::Record;
use crate::routing::{MeasuredSpeed, Measurements, PolicyName, ReadableAnswers, Router, RouterBook};

/// Chooses where the model is `auto`. Rules have nothing to learn, so where nothing is recorded, no choice is either.
pub(crate) fn open_router(config: &Config, database: &LazyDatabase, record: &Record) -> Router {
    let policy = policy(config.intelligence.router);
    let book = match config.telemetry.enabled || policy == PolicyName::Grpo {
        true => router_book(database.clone(), record.clone()),
        false => RouterBook::default(),
    };
    Router::new(policy, book)
}

/// The choices in `home`, and what was learnt from them.
pub fn open_router_book(home: &Path, record: Record) -> RouterBook {
    router_book(hob_database(home), record)
}

fn router_book(database: LazyDatabase, record: Record) -> RouterBook {
    let measurements = RecordMeasurements { record, database: database.clone() };
    RouterBook::new(database, Some(Arc::new(measurements)))
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
    /// Has what other processes recorded, too.
    database: LazyDatabase,
}

impl RecordMeasurements {
    /// What was recorded up to now; `None` where nothing ever was.
    fn recorded(&self) -> Result<Option<Telemetry>, DatabaseError> {
        self.record.settle();
        let database = self.database.find()?;
        Ok(database.map(|database| Telemetry::new(database, self.record.prices().clone())))
    }
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

    fn find_answer(&self, run: &str, since: SystemTime) -> Result<Option<Answer>, DatabaseError> {
        let Some(telemetry) = self.recorded()? else { return Ok(None) };
        Ok(telemetry.find_run(run, Moment::of(since))?.map(answer))
    }

    fn last_answer(&self, wanted: &ReadableAnswers<'_>) -> Result<Option<Answer>, DatabaseError> {
        let Some(telemetry) = self.recorded()? else { return Ok(None) };
        let ReadableAnswers { since, except_sources: sources, except_runs: runs } = *wanted;
        Ok(telemetry.last_complete(Moment::of(since), &Except { sources, runs })?.map(answer))
    }
}

fn answer(recorded: Row) -> Answer {
    let Row { run, engine, model, source, started, .. } = recorded;
    Answer { run, engine, model, source, at: started }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use hob_core::routing::Rating;
    use hob_core::{Ending, FinishReason, Inference, RequestSource};
    use hob_db::Database;
    use hob_store::HOB_MIGRATIONS;
    use hob_store::savings::Prices;

    use super::*;
    use crate::routing::RateError;

    fn minutes_ago(minutes: u64) -> SystemTime {
        SystemTime::now() - Duration::from_secs(60 * minutes)
    }

    /// Puts an answer on record whose model nobody chose.
    fn recorded(database: &Database, run: &str, source: RequestSource, started: SystemTime) {
        let inference = Inference {
            started,
            run: run.into(),
            source,
            engine: "vllm".into(),
            model: "m".into(),
            agent: None,
            streamed: false,
            usage: Usage::default(),
            estimated: false,
            latency: Duration::from_secs(1),
            first_token: None,
            energy: None,
            ending: Ending::Complete(FinishReason::Stop),
        };
        Telemetry::new(database.clone(), Prices::standard()).record_batch(&[inference]).unwrap();
    }

    fn book() -> (RouterBook, Database) {
        let database = Database::in_memory(HOB_MIGRATIONS).unwrap();
        (router_book(database.clone().into(), Record::default()), database)
    }

    #[test]
    fn an_answer_of_the_cloud_costs_what_its_model_does() {
        let database = Database::in_memory(HOB_MIGRATIONS).unwrap().into();
        let measurements = RecordMeasurements { record: Record::default(), database };
        let usage = Usage { prompt_tokens: 1000, completion_tokens: 1000, ..Usage::default() };
        assert!(measurements.price("gpt-5.2", usage).is_some_and(|dollars| dollars > 0.0));
        assert_eq!(measurements.price("a model that nobody has heard of", usage), None);
    }

    #[test]
    fn any_answer_on_record_can_be_rated_for_some_days() {
        let (book, database) = book();
        let at = minutes_ago(5);
        recorded(&database, "chatcmpl-1", RequestSource::Server, at);
        recorded(&database, "chatcmpl-0", RequestSource::Server, minutes_ago(40 * 24 * 60));
        let rated = book.rate(Some("chatcmpl-1"), Rating::Good).unwrap();
        let expected = Answer {
            run: "chatcmpl-1".into(),
            engine: "vllm".into(),
            model: "m".into(),
            source: "server".into(),
            at: Moment::of(at),
        };
        assert_eq!((rated.answer, rated.learnt), (expected, false));
        for unknown in ["chatcmpl-2", "chatcmpl-0"] {
            let refused = book.rate(Some(unknown), Rating::Good).unwrap_err();
            assert!(matches!(refused, RateError::NoSuchAnswer { .. }), "{unknown}: {refused}");
        }
    }

    #[test]
    fn the_last_answer_is_one_that_somebody_may_have_read() {
        let (book, database) = book();
        assert!(matches!(book.rate(None, Rating::Good), Err(RateError::NoAnswer)));
        recorded(&database, "chatcmpl-1", RequestSource::Server, minutes_ago(9));
        recorded(&database, "task", RequestSource::Scheduler, minutes_ago(8));
        recorded(&database, "measured", RequestSource::Bench, minutes_ago(7));
        recorded(&database, "ask", RequestSource::Ask, minutes_ago(6));
        assert_eq!(book.rate(None, Rating::Good).unwrap().answer.run, "chatcmpl-1");
        recorded(&database, "ask-2", RequestSource::Ask, minutes_ago(5));
        assert_eq!(book.rate(None, Rating::Good).unwrap().answer.run, "ask-2");
    }
}
