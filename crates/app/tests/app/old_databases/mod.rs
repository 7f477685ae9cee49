//! Databases of every older version, with rows: they open and keep their rows. `hob` has what Hob of each version
//! added to the database of the version before: its migration as it was released, its rows, and its version.

#![expect(clippy::expect_used, reason = "a database that cannot be read is a failed test")]

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use hob_app::HOB_MIGRATIONS;
use hob_channels::store::{ChannelStore, HistoryLine, Speaker, SqliteChannelStore, ThreadKey};
use hob_conversations::{
    ChatPageQuery, ChatStore, ConversationStore, ResponseOwner, SqliteConversationStore, TurnEnding,
};
use hob_db::{Database, DatabaseError, LazyDatabase, inspect};
use hob_routing::{QuestionClass, Ratings, RoutingStore, SqliteRoutingStore};
use hob_tasks::TaskId;
use hob_tasks::store::{SqliteTaskStore, TaskStore};
use hob_telemetry::{CallExport, SqliteTelemetryStore, TelemetryStore, has_answered};
use hob_testkit::old_database::{file, left_at, schema, user_version, versions};
use hob_testkit::test_process;

const HOB: [&str; 10] = [
    include_str!("hob/1.sql"),
    include_str!("hob/2.sql"),
    include_str!("hob/3.sql"),
    include_str!("hob/4.sql"),
    include_str!("hob/5.sql"),
    include_str!("hob/6.sql"),
    include_str!("hob/7.sql"),
    include_str!("hob/8.sql"),
    include_str!("hob/9.sql"),
    include_str!("hob/10.sql"),
];

/// Versions in which Hob recorded calls.
const CALLS: [u64; 5] = [1, 6, 7, 8, 10];

/// The variable that names the file for the other process.
const FILE: &str = "HOB_TEST_OLD_DATABASE";

/// Asserts that everything that versions up to this one wrote is there.
fn expect_rows_up_to(version: u64, database: &Database) {
    let calls: Vec<u64> = CALLS.into_iter().filter(|written| *written <= version).collect();
    let telemetry = SqliteTelemetryStore::new(database.clone());
    let runs: Vec<String> =
        CallExport::new(Arc::new(telemetry.clone()), None).map(|call| call.expect("readable").run).collect();
    let expected: Vec<String> = calls.iter().map(|written| format!("run-{written}")).collect();
    assert_eq!(runs, expected, "calls of version {version}");
    let figures = telemetry.overview(None).expect("readable").figures;
    let sum: u64 = calls.iter().sum();
    assert_eq!(
        (figures.calls, figures.prompt_tokens, figures.completion_tokens),
        (calls.len() as u64, 100 * sum, 10 * sum),
        "sums of version {version}"
    );
    let measured = calls.iter().filter(|written| (6..=8).contains(*written)).count() as u64;
    assert_eq!(figures.measured, measured, "energy of version {version}");

    let tasks = SqliteTaskStore::new(database.clone());
    let listed = tasks.list(None).expect("readable");
    let prompts: Vec<&str> = listed.iter().map(|task| task.prompt.as_str()).collect();
    assert_eq!(prompts.len(), usize::from(version >= 2));
    if version >= 2 {
        assert_eq!(prompts, ["Remind me to water the plants"]);
        let id = TaskId::parse("water-the-plants").expect("an id");
        let results: Vec<Option<String>> =
            tasks.runs(&id, 10).expect("readable").into_iter().map(|run| run.result).collect();
        assert_eq!(results, [Some("They are dry".to_owned())]);
    }

    let conversations = SqliteChannelStore::new(database.clone());
    let open: Vec<String> =
        conversations.unsettled().expect("readable").into_iter().map(|message| message.message).collect();
    assert_eq!(open.len(), usize::from(version >= 3));
    if version >= 3 {
        assert_eq!(open, ["What is the weather?"]);
        let family = ThreadKey { channel: "whatsapp", conversation: "family" };
        let line =
            |speaker, content: &str| HistoryLine { speaker, sender: "ada".into(), content: content.into() };
        assert_eq!(
            conversations.history(family, 10).expect("readable"),
            [line(Speaker::Person, "Good morning"), line(Speaker::Hob, "Good morning, Ada")]
        );
    }

    let routing = SqliteRoutingStore::new(database.clone());
    let knowledge = routing.knowledge().expect("readable");
    assert_eq!(knowledge.len(), usize::from(version >= 4));
    if version >= 4 {
        let class = QuestionClass::parse("code/short/english").expect("a class");
        let known = knowledge[&class].models["m"];
        let choices = if version >= 9 { 3 } else { 2 };
        assert_eq!((known.tries, known.samples, known.weight), (choices, choices, 0.25));
        assert_eq!(knowledge[&class].recent, [0.6, 0.96]);
        assert_eq!(routing.count().expect("counted"), choices);
        assert_eq!(routing.ratings().expect("counted"), Ratings { good: 1, bad: 0 });
    }

    let chats = SqliteConversationStore::new(database.clone());
    let owner = ResponseOwner::owner();
    let listed = chats.list(&owner, 10).expect("readable");
    assert_eq!(listed.len(), usize::from(version >= 5));
    if let Some(chat) = chats.latest(&owner).expect("readable") {
        let conversation = chats.get(&owner, chat).expect("readable").expect("there");
        assert_eq!(conversation.turns[0].answer, "A helpful spirit of the house");
        // The pages have it too, as one branch, and find its words.
        let saved = chats.chat(&owner, chat).expect("readable").expect("there");
        assert_eq!(saved.turns.len(), conversation.turns.len());
        assert_eq!(saved.current, saved.turns.last().map(|turn| turn.number));
        let mut before = None;
        for turn in &saved.turns {
            assert_eq!(turn.parent, before);
            assert!(turn.answer.as_ref().is_some_and(|answer| answer.ending != TurnEnding::Failed));
            before = Some(turn.number);
        }
        let query = ChatPageQuery { words: Some("helpful spirit".into()), limit: 10, after: None };
        assert_eq!(chats.page(&owner, &query).expect("readable").chats, listed);
    }
}

#[test]
fn every_version_of_hob_db_opens_and_keeps_its_rows() {
    let fresh = schema(&Database::in_memory(HOB_MIGRATIONS).expect("opened").writer());
    let expected = [
        ("channels", 3),
        ("conversations", 3),
        ("keys", 2),
        ("routing", 2),
        ("sources", 1),
        ("tasks", 3),
        ("telemetry", 7),
    ];
    let expected = expected.map(|(capability, version)| (capability.to_owned(), version));
    for version in 0..=HOB.len() {
        let (_root, path) = file("hob.db");
        drop(left_at(&HOB, version, &path));
        let state = inspect(&path, HOB_MIGRATIONS).expect("good").expect("there");
        assert_eq!(state.steps_behind, (HOB.len() - version) as i64 + 12, "from version {version}");
        for opening in ["first", "second"] {
            let database = Database::open(&path, HOB_MIGRATIONS).expect("opened");
            assert_eq!(schema(&database.writer()), fresh, "from version {version}, {opening} opening");
            assert_eq!(versions(&database.writer()), expected);
            assert_eq!(user_version(&database.writer()), 11, "an older Hob refuses this");
            expect_rows_up_to(version as u64, &database);
        }
        assert_eq!(
            has_answered(&LazyDatabase::at(&path, HOB_MIGRATIONS).into(), "engine-1").expect("readable"),
            version >= 1
        );
        assert_eq!(inspect(&path, HOB_MIGRATIONS).expect("good").expect("there").steps_behind, 0);
    }
}

#[test]
fn databases_of_a_newer_hob_are_refused_and_unchanged() {
    let (_root, path) = file("hob.db");
    let connection = left_at(&HOB, HOB.len(), &path);
    let one_more = HOB.len() as i64 + 1;
    connection.pragma_update(None, "user_version", one_more).expect("written");
    let before = schema(&connection);
    let error = Database::open(&path, HOB_MIGRATIONS).err().expect("refused").to_string();
    let known = HOB.len();
    assert_eq!(
        error,
        format!(
            "the database {} was written by a newer Hob: its version is {one_more}, and this Hob supports versions up to {known}. \
             Update Hob, or set HOB_HOME to another directory.",
            path.display()
        )
    );
    assert_eq!((user_version(&connection), schema(&connection)), (one_more, before));
    drop(connection);

    let (_root, path) = file("hob.db");
    let database = Database::open(&path, HOB_MIGRATIONS).expect("made");
    let later = "UPDATE schema_version SET version = version + 1";
    database.write(|transaction| transaction.execute(later, [])).expect("written");
    drop(database);
    assert!(matches!(Database::open(&path, HOB_MIGRATIONS), Err(DatabaseError::Newer { .. })));
    assert!(matches!(inspect(&path, HOB_MIGRATIONS), Err(DatabaseError::Newer { .. })));
}

#[test]
#[ignore = "a process that the other test starts and kills"]
fn adopts() {
    let path: PathBuf = std::env::var_os(FILE).expect("only started by another test").into();
    drop(Database::open(&path, HOB_MIGRATIONS).expect("opened"));
}

#[test]
fn a_process_that_is_killed_at_any_moment_leaves_a_database_that_opens() {
    let (root, old) = file("old.db");
    drop(left_at(&HOB, 7, &old));
    for delay in 0..30 {
        let path = root.path().join(format!("{delay}.db"));
        std::fs::copy(&old, &path).expect("copied");
        let mut child = test_process("old_databases::adopts").env(FILE, &path).spawn().expect("started");
        std::thread::sleep(Duration::from_millis(delay));
        child.kill().expect("killed");
        child.wait().expect("it ended");
        expect_rows_up_to(7, &Database::open(&path, HOB_MIGRATIONS).expect("opened"));
    }
}
