use std::time::SystemTime;

use hob_db::Database;

use super::sqlite::history::KEPT_OF_ONE;
use super::sqlite::inbox::REMEMBERED;
use super::*;

fn conversations() -> Conversations {
    Conversations::new(Database::in_memory(&[MIGRATIONS]).expect("opened"))
}

const NOW: SystemTime = SystemTime::UNIX_EPOCH;

fn thread(conversation: &str) -> Thread<'_> {
    Thread { channel: "telegram", conversation }
}

fn said(conversations: &Conversations, conversation: &str, sender: &str, question: &str) {
    let exchange = Exchange { sender, question, answer: &format!("re: {question}") };
    conversations.remember(thread(conversation), exchange, NOW).expect("written");
}

#[test]
fn a_message_is_taken_in_once_and_remembered_until_it_is_settled() {
    let conversations = conversations();
    let first = conversations.take(Some("a"), "hello", NOW).expect("written").expect("new");
    assert_eq!(conversations.take(Some("a"), "hello", NOW).expect("written"), None);
    let second = conversations.take(Some("b"), "again", NOW).expect("written").expect("new");
    assert_eq!(
        conversations.unsettled().expect("read"),
        [Unsettled { id: first, message: "hello".into() }, Unsettled { id: second, message: "again".into() }]
    );
    conversations.settle(first).expect("written");
    assert_eq!(conversations.unsettled().expect("read"), [Unsettled { id: second, message: "again".into() }]);
    assert_eq!(conversations.take(Some("a"), "hello", NOW).expect("written"), None, "still known");
    conversations.reopen(first, "hello").expect("written");
    assert_eq!(conversations.unsettled().expect("read").len(), 2);
}

#[test]
fn a_message_without_an_identity_is_always_new() {
    let conversations = conversations();
    for _ in 0..2 {
        assert!(conversations.take(None, "x", NOW).expect("written").is_some());
    }
}

#[test]
fn what_was_taken_in_survives_the_end_of_the_process() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let open = || Conversations::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
    let id = open().take(Some("a"), "hello", NOW).expect("written").expect("new");
    said(&open(), "t1", "ann", "hi");
    let conversations = open();
    assert_eq!(conversations.unsettled().expect("read"), [Unsettled { id, message: "hello".into() }]);
    assert_eq!(conversations.take(Some("a"), "hello", NOW).expect("written"), None);
    assert_eq!(conversations.history(thread("t1"), 10).expect("read").len(), 2);
}

#[test]
fn old_messages_are_forgotten() {
    let conversations = conversations();
    let first = conversations.take(Some("a"), "hello", NOW).expect("written").expect("new");
    // As if as many others had come since.
    let skip =
        format!("UPDATE sqlite_sequence SET seq = {} WHERE name = 'channel_inbox'", first + REMEMBERED - 1);
    conversations.database.writer().execute_batch(&skip).expect("written");
    conversations.take(Some("b"), "x", NOW).expect("written").expect("new");
    assert_eq!(conversations.unsettled().expect("read").len(), 1);
    assert!(conversations.take(Some("a"), "hello", NOW).expect("written").is_some());
}

#[test]
fn a_conversation_is_told_from_its_end_and_keeps_to_itself() {
    let conversations = conversations();
    said(&conversations, "t1", "ann", "one");
    said(&conversations, "t2", "bob", "elsewhere");
    said(&conversations, "t1", "ann", "two");
    let lines: Vec<(Speaker, String)> = conversations
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
    assert_eq!(conversations.history(thread("t1"), 0).expect("read"), []);
    let elsewhere = Thread { channel: "slack", conversation: "t1" };
    assert_eq!(conversations.history(elsewhere, 3).expect("read"), []);
}

#[test]
fn a_conversation_is_kept_within_bounds() {
    let conversations = conversations();
    said(&conversations, "other", "bob", "x");
    for number in 0..KEPT_OF_ONE {
        said(&conversations, "t1", "ann", &number.to_string());
    }
    let lines = conversations.history(thread("t1"), usize::MAX).expect("read");
    assert_eq!(lines.len() as i64, KEPT_OF_ONE);
    assert_eq!(lines.last().map(|line| line.content.clone()), Some(format!("re: {}", KEPT_OF_ONE - 1)));
    assert_eq!(conversations.history(thread("other"), 9).expect("read").len(), 2, "others are not touched");
}
