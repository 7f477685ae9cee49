//! What was chosen, learned and rated, in both databases.

use std::ops::Deref;
use std::time::{Duration, UNIX_EPOCH};

use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase};

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

/// A store in an empty database.
pub(super) struct TestStore {
    store: Arc<dyn RoutingStore>,
    connected: Connected,
}

enum Connected {
    Sqlite { database: Database, directory: tempfile::TempDir },
    Postgres { database: PostgresDatabase, created: TestDatabase },
}

type NewStore = fn() -> TestStore;

fn sqlite() -> TestStore {
    sqlite_in(tempfile::tempdir().expect("a directory"))
}

fn sqlite_in(directory: tempfile::TempDir) -> TestStore {
    let database = Database::open(&directory.path().join("hob.db"), &[MIGRATIONS]).expect("opened");
    let store = Arc::new(SqliteRoutingStore::new(database.clone()));
    TestStore { store, connected: Connected::Sqlite { database, directory } }
}

fn postgres() -> TestStore {
    postgres_in(PostgresServer::shared().create_database())
}

fn postgres_in(created: TestDatabase) -> TestStore {
    let database = connect(&created);
    let store = Arc::new(PostgresRoutingStore::new(database.clone()));
    TestStore { store, connected: Connected::Postgres { database, created } }
}

/// A process of its own, as far as the server knows.
pub(super) fn connect(created: &TestDatabase) -> PostgresDatabase {
    let options = created.url().parse().expect("a URL");
    PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("opened")
}

impl Deref for TestStore {
    type Target = dyn RoutingStore;

    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

impl TestStore {
    fn reopened(self) -> Self {
        drop(self.store);
        match self.connected {
            Connected::Sqlite { database, directory } => {
                drop(database);
                sqlite_in(directory)
            }
            Connected::Postgres { database, created } => {
                drop(database);
                postgres_in(created)
            }
        }
    }

    fn run_sql(&self, sqlite: &str, postgres: &str) {
        match &self.connected {
            Connected::Sqlite { database, .. } => database.writer().execute_batch(sqlite).expect("run"),
            Connected::Postgres { database, .. } => {
                database.write(|transaction| transaction.run_script(postgres)).expect("run");
            }
        }
    }
}

hob_testkit::on_both_databases!(
    sqlite, postgres:
    knowledge_survives_a_restart,
    nothing_is_learned_from_a_missing_choice,
    the_same_question_is_found_within_its_time_and_not_in_itself,
    every_choice_is_a_try_even_one_that_is_withdrawn,
    a_reset_deletes_the_knowledge_and_keeps_the_ratings,
    an_answer_whose_model_the_caller_chose_can_be_rated_and_a_second_rating_replaces_the_first,
    the_last_answered_choice_excludes_sources_and_runs,
    only_a_changed_rating_is_learned_from,
    a_rating_that_cannot_be_learned_from_is_not_saved,
    the_number_of_stored_choices_is_limited,
    the_number_of_stored_ratings_is_limited,
    a_choice_that_is_saved_again_begins_anew,
);

pub(super) fn rating_of(run: &str, rating: Rating, seconds: u64) -> NewRating<'_> {
    NewRating { run, engine: "ollama", model: "a", rating, rated: at(seconds) }
}

fn knowledge_survives_a_restart(new: NewStore) {
    let learnt = ModelRecord {
        weight: -1.25,
        tries: 5,
        samples: 3,
        rewards: 2.5,
        log_seconds: Some(0.5),
        dollars: None,
    };
    let routing = new();
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
    let routing = routing.reopened();
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

fn nothing_is_learned_from_a_missing_choice(new: NewStore) {
    let routing = new();
    let found = routing.learn("unheard of", &mut |_, _| panic!("there is nothing to learn"));
    assert!(!found.expect("looked"));
    assert_eq!(routing.knowledge().expect("read"), Knowledge::new());
}

fn the_same_question_is_found_within_its_time_and_not_in_itself(new: NewStore) {
    let routing = new();
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

fn every_choice_is_a_try_even_one_that_is_withdrawn(new: NewStore) {
    let routing = new();
    routing.save(&decision("answered", 0)).expect("saved");
    routing.save(&RoutingDecision { question: None, ..decision("handed over", 1) }).expect("saved");
    routing.withdraw("handed over").expect("withdrawn");
    let tries = routing.knowledge().expect("read")[&CODE].models["a"].tries;
    assert_eq!((tries, routing.count().expect("counted")), (2, 1));
    assert_eq!(routing.find("handed over").expect("looked"), None);
}

fn a_reset_deletes_the_knowledge_and_keeps_the_ratings(new: NewStore) {
    let routing = new();
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

fn an_answer_whose_model_the_caller_chose_can_be_rated_and_a_second_rating_replaces_the_first(new: NewStore) {
    let routing = new();
    let rate = |rating, seconds| {
        let new = rating_of("chatcmpl-1", rating, seconds);
        routing.rate(&new, &mut |_, _| panic!("the router did not choose the model")).expect("rated")
    };
    assert_eq!((rate(Rating::Good, 11), rate(Rating::Bad, 12)), (false, false));
    assert_eq!(routing.ratings().expect("counted"), Ratings { good: 0, bad: 1 });
}

fn the_last_answered_choice_excludes_sources_and_runs(new: NewStore) {
    let routing = new();
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

fn only_a_changed_rating_is_learned_from(new: NewStore) {
    let routing = new();
    routing.save(&decision("r", 0)).expect("saved");
    let lessons = std::cell::Cell::new(0);
    for rating in [Rating::Good, Rating::Good, Rating::Bad] {
        let found = routing.rate(&rating_of("r", rating, 1), &mut |_, _| lessons.set(lessons.get() + 1));
        assert!(found.expect("rated"));
    }
    assert_eq!(lessons.get(), 2);
}

fn a_rating_that_cannot_be_learned_from_is_not_saved(new: NewStore) {
    let routing = new();
    routing.save(&decision("r", 0)).expect("saved");
    routing.learn("r", &mut |_, _| {}).expect("learnt");
    let broken = "UPDATE router_class SET recent = 'nonsense'";
    routing.run_sql(broken, broken);
    assert!(routing.rate(&rating_of("r", Rating::Good, 1), &mut |_, _| {}).is_err());
    assert_eq!(routing.ratings().expect("counted"), Ratings::default());
}

fn the_number_of_stored_choices_is_limited(new: NewStore) {
    let routing = new();
    let start = Moment::of(at(0)).microseconds();
    let values = format!("{start} + n * 1000000, 'ask', 'grpo', 'code/short/english', 'ollama', 'a', '[]'");
    let insert = "INSERT INTO router_decision (run, decided, source, policy, class, engine, model, rivals, answered, retried)";
    routing.run_sql(
        &format!(
            "WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < 10002)
             {insert} SELECT cast(n AS TEXT), {values}, FALSE, FALSE FROM number"
        ),
        &format!(
            "{insert} SELECT n::text, {values}, FALSE, FALSE FROM generate_series(0::bigint, 10002) AS n"
        ),
    );
    routing.save(&decision("last", 10_003)).expect("saved");
    assert_eq!(routing.count().expect("counted"), 10_000);
    assert_eq!(routing.find("3").expect("looked"), None);
    assert!(routing.find("4").expect("looked").is_some());
    assert!(routing.find("last").expect("looked").is_some());
}

fn the_number_of_stored_ratings_is_limited(new: NewStore) {
    let routing = new();
    let start = Moment::of(at(0)).microseconds();
    let values = format!("{start} + n * 1000000, 'bad', 'ollama', 'a'");
    let insert = "INSERT INTO feedback (run, rated, rating, engine, model)";
    routing.run_sql(
        &format!(
            "WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < 10002)
             {insert} SELECT cast(n AS TEXT), {values} FROM number"
        ),
        &format!("{insert} SELECT n::text, {values} FROM generate_series(0::bigint, 10002) AS n"),
    );
    routing.rate(&rating_of("last", Rating::Good, 10_003), &mut |_, _| {}).expect("rated");
    assert_eq!(routing.ratings().expect("counted"), Ratings { good: 1, bad: 9_999 });
}

fn a_choice_that_is_saved_again_begins_anew(new: NewStore) {
    let routing = new();
    routing.save(&decision("r", 0)).expect("saved");
    routing.learn("r", &mut |stored, _| stored.reward = Some(1.0)).expect("learnt");
    routing.save(&RoutingDecision { model: "b".into(), ..decision("r", 5) }).expect("saved");
    let found = routing.find("r").expect("looked").expect("found");
    let expected = stored_anew("r", 5);
    let decision = RoutingDecision { model: "b".into(), ..expected.decision };
    assert_eq!(found, StoredDecision { decision, ..expected });
}
