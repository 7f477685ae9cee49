use std::time::UNIX_EPOCH;

use hob_db::Database;
use parking_lot::Mutex;

use super::*;
use crate::question_class::{QuestionClass, QuestionLanguage, QuestionLength, QuestionTopic};
use crate::records::RoutingDecision;
use crate::store::{MIGRATIONS, SqliteRoutingStore};

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
}

/// Recorded answers, the oldest first. All are complete.
#[derive(Default)]
struct Records(Mutex<Vec<RatableAnswer>>);

impl Records {
    fn last(&self, is_meant: impl Fn(&RatableAnswer) -> bool) -> Option<RatableAnswer> {
        self.0.lock().iter().rev().find(|answer| is_meant(answer)).cloned()
    }
}

impl RecordedAnswers for Records {
    fn settle(&self) {}

    fn find_run(&self, run: &str, since: Moment) -> DbResult<Option<RatableAnswer>> {
        Ok(self.last(|answer| answer.run == run && answer.at >= since))
    }

    fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> DbResult<Option<RatableAnswer>> {
        Ok(self.last(|answer| {
            let is_excepted = except_sources.iter().any(|source| source.as_str() == answer.source);
            answer.at >= since && !is_excepted && !except_runs.contains(&answer.run.as_str())
        }))
    }
}

struct Home {
    routing: SqliteRoutingStore,
    records: Arc<Records>,
    feedback: FeedbackService,
}

impl Home {
    fn new() -> Self {
        let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
        let records = Arc::new(Records::default());
        let recorded = Arc::clone(&records) as Arc<dyn RecordedAnswers>;
        Home {
            routing: SqliteRoutingStore::new(database),
            records,
            feedback: FeedbackService::new(RoutingService::default(), Some(recorded)),
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

/// An answer whose model the caller chose.
fn recorded(home: &Home, run: &str, source: RequestSource, seconds: u64) {
    home.records.0.lock().push(RatableAnswer {
        run: run.to_owned(),
        engine: "vllm".to_owned(),
        model: "m".to_owned(),
        source: source.as_str().to_owned(),
        at: Moment::of(at(seconds)),
    });
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
    recorded(&home, "chat", RequestSource::Ask, 3);
    assert_eq!(last().as_deref(), Some("chatcmpl-1"));
    home.routing.save(&decision("ask-1", 4)).expect("kept");
    assert_eq!(last().as_deref(), Some("chatcmpl-1"), "a choice without an answer cannot be rated");
    home.routing.learn("ask-1", &mut |kept, _| kept.answered = true).expect("learnt");
    assert_eq!(last().as_deref(), Some("ask-1"));
    recorded(&home, "ask-2", RequestSource::Ask, 5);
    assert_eq!(last().as_deref(), Some("ask-2"));
}
