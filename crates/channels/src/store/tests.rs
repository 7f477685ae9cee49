//! Messages are taken in once and remembered; conversations keep to themselves and to the limits.

use std::time::SystemTime;

use hob_db::Database;

use super::*;

fn store() -> SqliteChannelStore {
    SqliteChannelStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened"))
}

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn thread(conversation: &str) -> ThreadKey<'_> {
    ThreadKey { channel: "telegram", conversation }
}

fn said(store: &dyn ChannelStore, conversation: &str, sender: &str, question: &str) {
    let exchange = Exchange { sender, question, answer: &format!("re: {question}") };
    store.remember(thread(conversation), exchange, NOW).expect("written");
}

#[test]
fn a_message_is_accepted_once_and_saved_until_it_is_settled() {
    let store = store();
    let first = store.take(Some("a"), "hello", NOW).expect("written").expect("new");
    assert_eq!(store.take(Some("a"), "hello", NOW).expect("written"), None);
    let second = store.take(Some("b"), "again", NOW).expect("written").expect("new");
    assert_eq!(
        store.unsettled().expect("read"),
        [
            UnsettledMessage { id: first, message: "hello".into() },
            UnsettledMessage { id: second, message: "again".into() }
        ]
    );
    store.settle(first).expect("written");
    assert_eq!(store.unsettled().expect("read"), [UnsettledMessage { id: second, message: "again".into() }]);
    assert_eq!(store.take(Some("a"), "hello", NOW).expect("written"), None, "still known");
    store.reopen(first, "hello").expect("written");
    assert_eq!(store.unsettled().expect("read").len(), 2);
}

#[test]
fn a_message_without_an_identity_is_always_new() {
    let store = store();
    for _ in 0..2 {
        assert!(store.take(None, "x", NOW).expect("written").is_some());
    }
}

#[test]
fn accepted_messages_survive_the_end_of_the_process() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let open = || SqliteChannelStore::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
    let id = open().take(Some("a"), "hello", NOW).expect("written").expect("new");
    said(&open(), "t1", "ann", "hi");
    let store = open();
    assert_eq!(store.unsettled().expect("read"), [UnsettledMessage { id, message: "hello".into() }]);
    assert_eq!(store.take(Some("a"), "hello", NOW).expect("written"), None);
    assert_eq!(store.history(thread("t1"), 10).expect("read").len(), 2);
}

#[test]
fn a_history_ends_with_the_newest_line_and_has_one_conversation() {
    let store = store();
    said(&store, "t1", "ann", "one");
    said(&store, "t2", "bob", "elsewhere");
    said(&store, "t1", "ann", "two");
    let lines: Vec<(Speaker, String)> = store
        .history(thread("t1"), 3)
        .expect("read")
        .into_iter()
        .map(|line| (line.speaker, line.content))
        .collect();
    assert_eq!(
        lines,
        [
            (Speaker::Hob, "re: one".to_owned()),
            (Speaker::Person, "two".to_owned()),
            (Speaker::Hob, "re: two".to_owned())
        ]
    );
    assert_eq!(store.history(thread("t1"), 0).expect("read"), []);
    let elsewhere = ThreadKey { channel: "slack", conversation: "t1" };
    assert_eq!(store.history(elsewhere, 3).expect("read"), []);
}

#[test]
fn a_conversation_has_a_limited_length() {
    let store = store();
    said(&store, "other", "bob", "x");
    for number in 0..MAX_THREAD_LINES {
        said(&store, "t1", "ann", &number.to_string());
    }
    let lines = store.history(thread("t1"), usize::MAX).expect("read");
    assert_eq!(lines.len() as i64, MAX_THREAD_LINES);
    assert_eq!(lines.last().map(|line| line.content.clone()), Some(format!("re: {}", MAX_THREAD_LINES - 1)));
    assert_eq!(store.history(thread("other"), 9).expect("read").len(), 2, "others are not touched");
}
