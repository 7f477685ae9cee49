use std::time::{Duration, UNIX_EPOCH};

use hob_db::Database;

use super::*;
use crate::question_class::{QuestionClass, QuestionLanguage, QuestionLength, QuestionTopic};
use crate::records::ModelRecord;

const CODE: QuestionClass = QuestionClass {
    topic: QuestionTopic::Code,
    length: QuestionLength::Short,
    language: QuestionLanguage::English,
};

pub(super) fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(1_800_000_000 + seconds)
}

pub(super) fn decision(run: &str, seconds: u64) -> RoutingDecision {
    RoutingDecision {
        run: run.into(),
        decided: at(seconds),
        source: RequestSource::Ask,
        policy: "grpo".into(),
        class: CODE,
        engine: "ollama".into(),
        model: "a".into(),
        candidates: vec!["a".into(), "b".into()],
        probability: Some(0.5),
        question: Some(u64::MAX - 7),
    }
}

/// The choice before it is known what came of it.
fn stored_anew(run: &str, seconds: u64) -> StoredDecision {
    let decision = decision(run, seconds);
    StoredDecision { decision, answered: false, retried: false, rated: false, implicit: None, reward: None }
}

pub(super) fn routing() -> SqliteRoutingStore {
    SqliteRoutingStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened"))
}

pub(super) fn rating_of(run: &str, rating: Rating, seconds: u64) -> NewRating<'_> {
    NewRating { run, engine: "ollama", model: "a", rating, rated: at(seconds) }
}

#[test]
fn knowledge_survives_a_restart() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let learnt = ModelRecord {
        weight: -1.25,
        tries: 5,
        samples: 3,
        rewards: 2.5,
        log_seconds: Some(0.5),
        dollars: None,
    };
    {
        let routing = SqliteRoutingStore::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
        routing.save(&decision("r", 0)).expect("saved");
        let found = routing.learn("r", &mut |stored, record| {
            assert_eq!(*stored, stored_anew("r", 0));
            let tried = ModelRecord { tries: 1, ..ModelRecord::default() };
            assert_eq!(*record, ClassRecord { models: [("a".to_owned(), tried)].into(), recent: Vec::new() });
            *stored = StoredDecision {
                answered: true,
                retried: true,
                implicit: Some(0.5),
                reward: Some(0.75),
                ..stored.clone()
            };
            record.recent = vec![0.5, 0.75];
            record.models.insert("a".into(), learnt);
        });
        assert!(found.expect("learnt"));
    }
    let routing = SqliteRoutingStore::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
    let record = ClassRecord { recent: vec![0.5, 0.75], models: [("a".to_owned(), learnt)].into() };
    assert_eq!(routing.knowledge().expect("read"), Knowledge::from([(CODE, record.clone())]));
    let found = routing.learn("r", &mut |stored, known| {
        let expected = StoredDecision {
            answered: true,
            retried: true,
            implicit: Some(0.5),
            reward: Some(0.75),
            ..stored_anew("r", 0)
        };
        assert_eq!(*stored, expected);
        assert_eq!(*known, record);
    });
    assert!(found.expect("learnt"));
}

#[test]
fn nothing_is_learned_from_a_missing_choice() {
    let routing = routing();
    let found = routing.learn("unheard of", &mut |_, _| panic!("there is nothing to learn"));
    assert!(!found.expect("looked"));
    assert_eq!(routing.knowledge().expect("read"), Knowledge::new());
}

#[test]
fn the_same_question_is_found_within_its_time_and_not_in_itself() {
    let routing = routing();
    routing.save(&decision("first", 0)).expect("saved");
    routing.save(&decision("second", 60)).expect("saved");
    let before = |run: &str, since| routing.asked_before(&decision(run, 90), at(since)).expect("looked");
    assert_eq!(before("third", 0).as_deref(), Some("second"));
    assert_eq!(before("second", 0).as_deref(), Some("first"));
    assert_eq!(before("second", 1), None);
    let asked = |decision: RoutingDecision| routing.asked_before(&decision, at(0)).expect("looked");
    assert_eq!(asked(RoutingDecision { question: Some(1), ..decision("third", 90) }), None);
    assert_eq!(asked(RoutingDecision { question: None, ..decision("third", 90) }), None, "nothing was asked");
    let elsewhere = RoutingDecision { source: RequestSource::Channel, ..decision("third", 90) };
    assert_eq!(asked(elsewhere), None, "another user asks the same");
}

#[test]
fn every_choice_is_a_try_even_one_that_is_withdrawn() {
    let routing = routing();
    routing.save(&decision("answered", 0)).expect("saved");
    routing.save(&RoutingDecision { question: None, ..decision("handed over", 1) }).expect("saved");
    routing.withdraw("handed over").expect("withdrawn");
    let tries = routing.knowledge().expect("read")[&CODE].models["a"].tries;
    assert_eq!((tries, routing.count().expect("counted")), (2, 1));
    assert_eq!(routing.find("handed over").expect("looked"), None);
}

#[test]
fn a_reset_deletes_the_knowledge_and_keeps_the_ratings() {
    let routing = routing();
    routing.save(&decision("r", 0)).expect("saved");
    routing.learn("r", &mut |_, record| record.recent.push(0.5)).expect("learnt");
    routing.rate(&rating_of("r", Rating::Good, 1), &mut |_, _| {}).expect("rated");
    assert_eq!(routing.reset().expect("reset"), 1);
    assert_eq!(
        (routing.knowledge().expect("read"), routing.count().expect("counted")),
        (Knowledge::new(), 0)
    );
    assert_eq!(routing.ratings().expect("counted"), Ratings { good: 1, bad: 0 });
}

#[test]
fn an_answer_whose_model_the_caller_chose_can_be_rated_and_a_second_rating_replaces_the_first() {
    let routing = routing();
    let rate = |rating, seconds| {
        let new = rating_of("chatcmpl-1", rating, seconds);
        routing.rate(&new, &mut |_, _| panic!("the router did not choose the model")).expect("rated")
    };
    assert_eq!((rate(Rating::Good, 11), rate(Rating::Bad, 12)), (false, false));
    assert_eq!(routing.ratings().expect("counted"), Ratings { good: 0, bad: 1 });
}

#[test]
fn the_last_answered_choice_excludes_sources_and_runs() {
    let routing = routing();
    let last = || {
        let found = routing.last_answered(
            Moment::of(at(0)),
            &[RequestSource::Scheduler, RequestSource::Bench],
            &["", "ask"],
        );
        found.expect("looked").map(|stored| stored.decision.run.to_string())
    };
    for (run, source, seconds) in
        [("1", RequestSource::Ask, 1), ("2", RequestSource::Scheduler, 2), ("ask", RequestSource::Ask, 3)]
    {
        routing.save(&RoutingDecision { source, ..decision(run, seconds) }).expect("saved");
        assert_eq!(
            last().as_deref(),
            (seconds > 1).then_some("1"),
            "an answer that is not complete does not count"
        );
        routing.learn(run, &mut |stored, _| stored.answered = true).expect("learnt");
    }
    assert_eq!(last().as_deref(), Some("1"));
    let before = routing.last_answered(Moment::of(at(2)), &[], &["ask"]).expect("looked");
    assert_eq!(before.map(|stored| stored.decision.run.to_string()).as_deref(), Some("2"));
    assert_eq!(routing.last_answered(Moment::of(at(4)), &[], &[]).expect("looked"), None);
}

#[test]
fn only_a_changed_rating_is_learned_from() {
    let routing = routing();
    routing.save(&decision("r", 0)).expect("saved");
    let lessons = std::cell::Cell::new(0);
    for rating in [Rating::Good, Rating::Good, Rating::Bad] {
        let found = routing.rate(&rating_of("r", rating, 1), &mut |_, _| lessons.set(lessons.get() + 1));
        assert!(found.expect("rated"));
    }
    assert_eq!(lessons.get(), 2);
}
