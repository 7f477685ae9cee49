use std::time::{Duration, UNIX_EPOCH};

use hob_core::FinishReason;
use hob_routing::{QuestionClass, QuestionLanguage, QuestionLength, QuestionTopic, RoutingDecision};
use hob_store::Routing;
use hob_telemetry::{Inference, InferenceEnd, Prices};

use super::*;
use crate::routing::Answers;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
}

/// A database whose calls were recorded before recording was switched off.
struct Home {
    _root: tempfile::TempDir,
    routing: Routing,
    store: SqliteTelemetryStore,
    measurements: RecordMeasurements,
}

impl Home {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let lazy = hob_database(root.path());
        let database = lazy.open().expect("opened");
        Home {
            _root: root,
            routing: Routing::new(database.clone()),
            store: SqliteTelemetryStore::new(database),
            measurements: RecordMeasurements { record: TelemetryService::default(), database: lazy },
        }
    }

    fn answers(&self) -> Answers<'_> {
        Answers { routing: &self.routing, measurements: Some(&self.measurements) }
    }
}

fn decision(run: &str, seconds: u64) -> RoutingDecision {
    RoutingDecision {
        run: run.into(),
        decided: at(seconds),
        source: RequestSource::Ask,
        policy: "grpo".into(),
        class: QuestionClass {
            topic: QuestionTopic::Code,
            length: QuestionLength::Short,
            language: QuestionLanguage::English,
        },
        engine: "ollama".into(),
        model: "a".into(),
        rivals: vec!["a".into(), "b".into()],
        probability: Some(0.5),
        question: Some(7),
    }
}

/// A call on record whose model the caller chose.
fn recorded(home: &Home, run: &str, source: RequestSource, seconds: u64) {
    let inference = Inference {
        started: at(seconds),
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
        ending: InferenceEnd::Complete(FinishReason::Stop),
    };
    home.store.record_batch(&[inference], &Prices::standard()).expect("recorded");
}

#[test]
fn an_answer_of_the_cloud_costs_what_its_model_does() {
    let measurements = RecordMeasurements {
        record: TelemetryService::default(),
        database: hob_database(Path::new("never-opened")),
    };
    let usage = Usage { prompt_tokens: 1000, completion_tokens: 1000, ..Usage::default() };
    assert!(measurements.price("gpt-5.2", usage).is_some_and(|dollars| dollars > 0.0));
    assert_eq!(measurements.price("a model that nobody has heard of", usage), None);
}

#[test]
fn any_answer_on_record_is_found_for_some_days() {
    let home = Home::new();
    recorded(&home, "chatcmpl-1", RequestSource::Server, 5);
    let expected = RatableAnswer {
        run: "chatcmpl-1".into(),
        engine: "vllm".into(),
        model: "m".into(),
        source: "server".into(),
        at: Moment::of(at(5)),
    };
    assert_eq!(home.answers().find("chatcmpl-1", at(10)).expect("looked"), Some(expected));
    assert_eq!(home.answers().find("chatcmpl-2", at(10)).expect("looked"), None);
    assert_eq!(home.answers().find("chatcmpl-1", at(40 * 24 * 3600)).expect("looked"), None, "too long ago");
}

#[test]
fn an_answer_whose_model_the_router_chose_is_found_however_old() {
    let home = Home::new();
    home.routing.keep(&decision("ask-1", 4)).expect("kept");
    let expected = RatableAnswer {
        run: "ask-1".into(),
        engine: "ollama".into(),
        model: "a".into(),
        source: "ask".into(),
        at: Moment::of(at(4)),
    };
    assert_eq!(home.answers().find("ask-1", at(40 * 24 * 3600)).expect("looked"), Some(expected));
}

#[test]
fn the_last_answer_is_one_that_somebody_may_have_read() {
    let home = Home::new();
    let last = || home.answers().last(at(100)).expect("looked").map(|answer| answer.run);
    assert_eq!(last(), None);
    recorded(&home, "chatcmpl-1", RequestSource::Server, 1);
    recorded(&home, "task", RequestSource::Scheduler, 2);
    recorded(&home, "measured", RequestSource::Bench, 3);
    assert_eq!(last().as_deref(), Some("chatcmpl-1"));
    home.routing.keep(&decision("ask-1", 4)).expect("kept");
    assert_eq!(last().as_deref(), Some("chatcmpl-1"), "nobody can have read what was not answered");
    home.routing.learn("ask-1", |kept, _| kept.answered = true).expect("learnt");
    assert_eq!(last().as_deref(), Some("ask-1"));
    recorded(&home, "ask-2", RequestSource::Ask, 5);
    assert_eq!(last().as_deref(), Some("ask-2"));
}
