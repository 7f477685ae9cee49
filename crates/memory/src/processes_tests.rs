//! Several processes on one memory, and one that is killed. The test program starts itself as the other processes.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use tokio_util::sync::CancellationToken;

use crate::index::{IndexOptions, index};
use crate::store::{MemoryStore, SqliteMemoryStore};
use crate::word_query::WordQuery;

/// The directory for the other process.
const DIRECTORY: &str = "HOB_TEST_MEMORY";

/// More than are written at once.
const FILES: usize = 6_000;

fn folder() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    let notes = root.path().join("notes");
    std::fs::create_dir(&notes).unwrap();
    for number in 0..FILES {
        let text = format!("# Note {number}\n\nthe common text and word{number}\n");
        std::fs::write(notes.join(format!("{number}.md")), text).unwrap();
    }
    root
}

fn store(root: &Path) -> SqliteMemoryStore {
    SqliteMemoryStore::open(&root.join("memory.db")).unwrap()
}

fn take_in(root: &Path) -> crate::types::IndexReport {
    let stop = CancellationToken::new();
    index(&store(root), &root.join("notes"), &IndexOptions::default(), &|_| {}, &stop).unwrap()
}

/// Runs one of the ignored tests below in another process.
fn start(what: &str, root: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("processes_tests::{what}"), "--ignored"])
        .env(DIRECTORY, root)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn directory_of_this_process() -> PathBuf {
    std::env::var_os(DIRECTORY).expect("only started by another test").into()
}

#[test]
#[ignore = "a process that the other tests start"]
fn indexes() {
    take_in(&directory_of_this_process());
}

fn found(store: &dyn MemoryStore, word: &str) -> usize {
    store.find_words(&WordQuery::of(word).unwrap(), 10).unwrap().len()
}

/// Every file is in it once, each is found, and the index of words knows nothing else.
fn assert_good(root: &Path) {
    let store = store(root);
    let size = store.size().unwrap();
    assert_eq!((size.sources, size.chunks), (FILES as u64, FILES as u64));
    for number in [0, 1, FILES / 2, FILES - 1] {
        assert_eq!(found(&store, &format!("word{number}")), 1, "{number}");
    }
    store.check().unwrap();
}

#[test]
fn two_processes_index_and_a_third_searches_at_once() {
    let root = folder();
    let ours = store(root.path());
    let children = [start("indexes", root.path()), start("indexes", root.path())];
    let mut searches = 0;
    let ends: Vec<bool> = children
        .into_iter()
        .map(|mut child| {
            while child.try_wait().unwrap().is_none() {
                assert!(found(&ours, "common text") <= 10);
                searches += 1;
            }
            child.wait().unwrap().success()
        })
        .collect();
    assert_eq!(ends, [true, true]);
    assert!(searches > 0);
    assert_good(root.path());
}

#[test]
fn a_killed_process_leaves_a_good_index_and_the_next_continues() {
    let root = folder();
    let ours = store(root.path());
    let mut child = start("indexes", root.path());
    let deadline = Instant::now() + Duration::from_secs(120);
    while ours.size().unwrap().sources == 0 {
        assert!(Instant::now() < deadline && child.try_wait().unwrap().is_none(), "nothing is being indexed");
        std::thread::yield_now();
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let left = ours.size().unwrap();
    assert_eq!(left.sources, left.chunks, "every file that is there is there with its chunk");
    ours.check().unwrap();
    let report = take_in(root.path());
    assert_eq!(report.unchanged, left.sources, "what was done is not done again");
    assert_eq!(report.indexed, FILES as u64 - left.sources);
    assert_good(root.path());
}
