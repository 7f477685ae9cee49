//! Watched pages in both databases.

use hob_db::postgres::PostgresDatabase;
use hob_db::{Database, LazyDatabase};
use hob_testkit::{PostgresServer, TestDatabase};

use super::*;

/// A store in an empty database, which is deleted with it.
struct TestStore {
    store: Arc<dyn SourceStore>,
    _directory: Option<tempfile::TempDir>,
    _created: Option<TestDatabase>,
}

type NewStore = fn() -> TestStore;

fn sqlite() -> TestStore {
    let directory = tempfile::tempdir().expect("a directory");
    let database = Database::open(&directory.path().join("hob.db"), &[MIGRATIONS]).expect("opened");
    TestStore { store: source_store(database), _directory: Some(directory), _created: None }
}

fn postgres() -> TestStore {
    let created = PostgresServer::shared().create_database();
    let options = created.url().parse().expect("a URL");
    let database = PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("opened");
    TestStore { store: source_store(database), _directory: None, _created: Some(created) }
}

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_page_is_found_as_it_was_saved_last,
    the_number_of_pages_is_limited,
);

fn page(text: &str, seconds: i64) -> PageSnapshot {
    let moment = |seconds: i64| Moment::from_microseconds(seconds * 1_000_000);
    PageSnapshot {
        address: "https://example.org/\u{0}".to_owned(),
        earlier: format!("earlier {text}"),
        earlier_read: moment(seconds),
        latest: format!("latest {text}\u{0}\u{1a}\n"),
        window_began: moment(seconds + 1),
    }
}

fn a_page_is_found_as_it_was_saved_last(new: NewStore) {
    let pages = new();
    assert_eq!(pages.store.page("times").expect("looked"), None);
    pages.store.save_page("times", &page("one", 10)).expect("saved");
    pages.store.save_page("other", &page("two", 20)).expect("saved");
    assert_eq!(pages.store.page("times").expect("looked"), Some(page("one", 10)));
    pages.store.save_page("times", &page("three", 30)).expect("saved");
    assert_eq!(pages.store.page("times").expect("looked"), Some(page("three", 30)));
    assert_eq!(pages.store.page("other").expect("looked"), Some(page("two", 20)));
}

fn the_number_of_pages_is_limited(new: NewStore) {
    let pages = new();
    for number in 0..MAX_PAGES + 2 {
        pages.store.save_page(&number.to_string(), &page("", number)).expect("saved");
    }
    for (name, is_there) in [("0", false), ("1", false), ("2", true), ("1001", true)] {
        assert_eq!(pages.store.page(name).expect("looked").is_some(), is_there, "{name}");
    }
}

#[test]
fn looking_creates_no_file() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("hob.db");
    let database = LazyDatabase::at(&path, &[MIGRATIONS]);
    assert_eq!(source_store(database).page("times").expect("looked"), None);
    assert!(!path.exists());
}
