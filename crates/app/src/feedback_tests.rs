use std::time::UNIX_EPOCH;

use hob_core::{FinishReason, Usage};
use hob_routing::{
    QuestionClass, QuestionLanguage, QuestionLength, QuestionTopic, RoutingDecision, SqliteRoutingStore,
};
use hob_telemetry::{
    Inference, InferenceEnd, Prices, SqliteTelemetryStore, TelemetryService, TelemetryStore,
};

use super::*;
use crate::databases::hob_database;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
}

/// A database whose calls were recorded before recording was disabled.
struct Home {
    _root: tempfile::TempDir,
    routing: SqliteRoutingStore,
    telemetry: SqliteTelemetryStore,
    feedback: FeedbackService,
}

impl Home {
    fn new() -> Self {
        let root = tempfile::tempdir().expect("a directory");
        let lazy = hob_database(root.path());
        let database = lazy.open().expect("opened");
        Home {
            _root: root,
            routing: SqliteRoutingStore::new(database.clone()),
            telemetry: SqliteTelemetryStore::new(database),
            feedback: FeedbackService::new(
                RoutingService::default(),
                Some(RecordedCalls::new(lazy, TelemetryService::default())),
            ),
        }
    }

    fn find(&self, run: &str, now: SystemTime) -> Option<RatableAnswer> {
        self.feedback.answer(&self.routing, run, now).expect("looked")
    }

    fn last(&self, now: SystemTime) -> Option<String> {
        self.feedback.last_answer(&self.routing, now).expect("looked").map(|answer| answer.run)
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
        candidates: vec!["a".into(), "b".into()],
        probability: Some(0.5),
        question: Some(7),
    }
}

/// A recorded call whose model the caller chose.
fn recorded(home: &Home, run: &str, source: RequestSource, seconds: u64) {
    let inference = Inference {
        started: at(seconds),
        run: run.into(),
        source,
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
    home.telemetry.record_batch(&[inference], &Prices::standard()).expect("recorded");
}

#[test]
fn any_recorded_answer_can_be_rated_for_a_week() {
    let home = Home::new();
    recorded(&home, "chatcmpl-1", RequestSource::Server, 5);
    let expected = RatableAnswer {
        run: "chatcmpl-1".into(),
        engine: "vllm".into(),
        model: "m".into(),
        source: "server".into(),
        at: Moment::of(at(5)),
    };
    assert_eq!(home.find("chatcmpl-1", at(10)), Some(expected));
    assert_eq!(home.find("chatcmpl-2", at(10)), None);
    assert_eq!(home.find("chatcmpl-1", at(40 * 24 * 3600)), None, "too long ago");
}

#[test]
fn an_answer_of_a_routed_model_can_be_rated_at_any_age() {
    let home = Home::new();
    home.routing.save(&decision("ask-1", 4)).expect("kept");
    let expected = RatableAnswer {
        run: "ask-1".into(),
        engine: "ollama".into(),
        model: "a".into(),
        source: "ask".into(),
        at: Moment::of(at(4)),
    };
    assert_eq!(home.find("ask-1", at(40 * 24 * 3600)), Some(expected));
}

#[test]
fn the_last_answer_excludes_tasks_benches_and_failures() {
    let home = Home::new();
    let last = || home.last(at(100));
    assert_eq!(last(), None);
    recorded(&home, "chatcmpl-1", RequestSource::Server, 1);
    recorded(&home, "task", RequestSource::Scheduler, 2);
    recorded(&home, "measured", RequestSource::Bench, 3);
    assert_eq!(last().as_deref(), Some("chatcmpl-1"));
    home.routing.save(&decision("ask-1", 4)).expect("kept");
    assert_eq!(last().as_deref(), Some("chatcmpl-1"), "a choice without an answer cannot be rated");
    home.routing.learn("ask-1", &mut |kept, _| kept.answered = true).expect("learnt");
    assert_eq!(last().as_deref(), Some("ask-1"));
    recorded(&home, "ask-2", RequestSource::Ask, 5);
    assert_eq!(last().as_deref(), Some("ask-2"));
}
