//! Several processes on one memory, and one that is killed. The test program starts itself as the other processes.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hob_testkit::{PostgresServer, TestDatabase, test_process};
use tokio_util::sync::CancellationToken;

use crate::index::{IndexOptions, index};
use crate::store::tests::connect;
use crate::store::{MemoryStore, PostgresMemoryStore, SqliteMemoryStore};
use crate::word_query::WordQuery;

/// The directory for the other process, and the database if it is on a server.
const DIRECTORY: &str = "HOB_TEST_MEMORY";
const DATABASE: &str = "HOB_TEST_MEMORY_DATABASE";

/// More than are written at once.
const FILES: usize = 6_000;

/// A directory of notes, and where they are indexed.
struct Notes {
    root: PathBuf,
    url: Option<String>,
    _directory: tempfile::TempDir,
    _database: Option<TestDatabase>,
}

type NewNotes = fn() -> Notes;

fn sqlite() -> Notes {
    notes(None)
}

fn postgres() -> Notes {
    notes(Some(PostgresServer::shared().create_database()))
}

hob_testkit::on_both_databases!(
    sqlite, postgres:
    two_processes_index_and_a_third_searches_at_once,
    a_killed_process_leaves_a_good_index_and_the_next_continues,
);

fn notes(database: Option<TestDatabase>) -> Notes {
    let root = tempfile::tempdir().unwrap();
    let notes = root.path().join("notes");
    std::fs::create_dir(&notes).unwrap();
    for number in 0..FILES {
        let text = format!("# Note {number}\n\nthe common text and word{number}\n");
        std::fs::write(notes.join(format!("{number}.md")), text).unwrap();
    }
    let url = database.as_ref().map(TestDatabase::url);
    Notes { root: root.path().to_owned(), url, _directory: root, _database: database }
}

fn store(root: &Path, url: Option<&str>) -> Arc<dyn MemoryStore> {
    match url {
        Some(url) => Arc::new(PostgresMemoryStore::new(connect(url))),
        None => Arc::new(SqliteMemoryStore::open(&root.join("memory.db")).unwrap()),
    }
}

fn take_in(root: &Path, url: Option<&str>) -> crate::types::IndexReport {
    let stop = CancellationToken::new();
    index(&*store(root, url), &root.join("notes"), &IndexOptions::default(), &|_| {}, &stop).unwrap()
}

#[test]
#[ignore = "a process that the other tests start"]
fn indexes() {
    let root: PathBuf = std::env::var_os(DIRECTORY).expect("only started by another test").into();
    take_in(&root, std::env::var(DATABASE).ok().as_deref());
}

impl Notes {
    fn store(&self) -> Arc<dyn MemoryStore> {
        store(&self.root, self.url.as_deref())
    }

    fn take_in(&self) -> crate::types::IndexReport {
        take_in(&self.root, self.url.as_deref())
    }

    /// Indexes in another process.
    fn start(&self) -> Child {
        let mut command = test_process("processes_tests::indexes");
        command.env(DIRECTORY, &self.root).envs(self.url.iter().map(|url| (DATABASE, url)));
        command.spawn().unwrap()
    }

    /// Every file is in it once, each is found, and the index of words knows nothing else.
    fn assert_good(&self) {
        let store = self.store();
        let size = store.size().unwrap();
        assert_eq!((size.sources, size.chunks), (FILES as u64, FILES as u64));
        for number in [0, 1, FILES / 2, FILES - 1] {
            assert_eq!(found(&*store, &format!("word{number}")), 1, "{number}");
        }
        store.check().unwrap();
    }
}

fn found(store: &dyn MemoryStore, word: &str) -> usize {
    store.find_words(&WordQuery::of(word).unwrap(), 10).unwrap().len()
}

fn two_processes_index_and_a_third_searches_at_once(new: NewNotes) {
    let notes = new();
    let ours = notes.store();
    let children = [notes.start(), notes.start()];
    let ends: Vec<bool> = children
        .into_iter()
        .map(|mut child| {
            loop {
                assert!(found(&*ours, "common text") <= 10);
                if let Some(ended) = child.try_wait().unwrap() {
                    return ended.success();
                }
            }
        })
        .collect();
    assert_eq!(ends, [true, true]);
    notes.assert_good();
}

fn a_killed_process_leaves_a_good_index_and_the_next_continues(new: NewNotes) {
    let notes = new();
    let ours = notes.store();
    let mut child = notes.start();
    let deadline = Instant::now() + Duration::from_secs(120);
    // On a busy machine it may be ready before this process looks.
    while ours.size().unwrap().sources == 0 && child.try_wait().unwrap().is_none() {
        assert!(Instant::now() < deadline, "nothing is being indexed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let left = ours.size().unwrap();
    assert!(left.sources > 0, "nothing was indexed");
    assert_eq!(left.sources, left.chunks, "every file that is there is there with its chunk");
    ours.check().unwrap();
    let report = notes.take_in();
    // A server may have committed meanwhile what the process sent.
    assert!(report.unchanged >= left.sources, "what was done is not done again");
    assert_eq!(report.indexed, FILES as u64 - report.unchanged);
    notes.assert_good();
}
