//! Saved conversations: found again, replaced, deleted, and kept within the limits.

use std::ops::Deref;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, SystemTime};

use hob_core::Moment;
use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase, on_both_databases};

use super::limits::{CUT, ChatLimits, MAX_TEXT_BYTES};
use super::*;
use crate::types::{TurnEnding, TurnNumber};

/// Small, so that a test reaches them soon.
pub(super) const LIMITS: ChatLimits =
    ChatLimits { chats: 60, bytes: 16 << 20, turns: 120, chat_bytes: 6 << 20, assistants: 3 };

/// A database, and what opens it once more, as another process does.
struct TestChats {
    store: Arc<dyn ConversationStore>,
    open: Box<dyn Fn() -> Arc<dyn ConversationStore>>,
    _database: Option<TestDatabase>,
}

impl Deref for TestChats {
    type Target = dyn ConversationStore;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

type NewChats = fn() -> TestChats;

fn sqlite() -> TestChats {
    let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
    let open = move || -> Arc<dyn ConversationStore> {
        Arc::new(SqliteConversationStore::new(database.clone()).with_limits(LIMITS))
    };
    TestChats { store: open(), open: Box::new(open), _database: None }
}

fn postgres() -> TestChats {
    let database = PostgresServer::shared().create_database();
    let url = database.url();
    let open = move || -> Arc<dyn ConversationStore> {
        let options = url.parse().expect("a URL");
        let database = PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("opened");
        Arc::new(PostgresConversationStore::new(database).with_limits(LIMITS))
    };
    TestChats { store: open(), open: Box::new(open), _database: Some(database) }
}

on_both_databases!(sqlite, postgres:
    a_conversation_is_found_again_as_it_was,
    the_one_that_was_used_last_comes_first,
    another_try_takes_the_place_of_its_answer_and_of_no_other,
    another_try_of_a_turn_that_made_room_stands_at_the_end,
    a_conversation_that_was_forgotten_meanwhile_begins_anew,
    old_conversations_and_old_turns_make_room,
    what_is_kept_has_a_size,
    turns_of_several_processes_are_all_kept_in_one_order,
    processes_that_begin_conversations_keep_to_the_limit,
    any_character_is_found_again,
);

fn me() -> ResponseOwner {
    ResponseOwner::owner()
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn turn(question: &str, answer: &str) -> ChatTurn {
    ChatTurn {
        question: question.into(),
        attachments: Vec::new(),
        answer: answer.into(),
        ending: TurnEnding::Complete,
        model: "m".into(),
    }
}

/// What was said; nothing where there is no such conversation.
fn turns(chats: &dyn ConversationStore, chat: ChatId) -> Vec<ChatTurn> {
    chats.get(&me(), chat).expect("read").map(|conversation| conversation.turns).unwrap_or_default()
}

fn questions(chats: &dyn ConversationStore, chat: ChatId) -> Vec<String> {
    turns(chats, chat).into_iter().map(|turn| turn.question).collect()
}

fn a_conversation_is_found_again_as_it_was(new: NewChats) {
    let kept = new();
    let open = || (kept.open)();
    let stopped = ChatTurn { ending: TurnEnding::Stopped, ..turn("And\nthen?", "Then the") };
    let chat = open().add(&me(), None, &turn("What  is\na hob?", "A spirit."), at(1)).expect("written").chat;
    let last = open().add(&me(), Some(chat), &stopped, at(2)).expect("written");
    assert_eq!(last.chat, chat);
    let chats = open();
    let said = vec![turn("What  is\na hob?", "A spirit."), stopped];
    assert_eq!(
        chats.get(&me(), chat).expect("read"),
        Some(Conversation { chat, turns: said, last: Some(last) })
    );
    let summary = ChatSummary {
        id: chat,
        title: "What is a hob?".into(),
        pinned: false,
        turns: 2,
        created: Moment::of(at(1)),
        last_used: Moment::of(at(2)),
        settings: SavedSettings::default(),
    };
    assert_eq!(chats.list(&me(), 10).expect("read"), [summary]);
    assert_eq!(chats.latest(&me()).expect("read"), Some(chat));
}

fn the_one_that_was_used_last_comes_first(new: NewChats) {
    let chats = new();
    let first = chats.add(&me(), None, &turn("a", "1"), at(1)).expect("written").chat;
    let second = chats.add(&me(), None, &turn("b", "2"), at(2)).expect("written").chat;
    assert_eq!(chats.latest(&me()).expect("read"), Some(second));
    chats.add(&me(), Some(first), &turn("c", "3"), at(3)).expect("written");
    assert_eq!(chats.latest(&me()).expect("read"), Some(first));
    let listed: Vec<ChatId> = chats.list(&me(), 10).expect("read").into_iter().map(|chat| chat.id).collect();
    assert_eq!(listed, [first, second]);
}

fn another_try_takes_the_place_of_its_answer_and_of_no_other(new: NewChats) {
    let chats = new();
    let chat = chats.add(&me(), None, &turn("a", "1"), at(1)).expect("written").chat;
    let bad = chats.add(&me(), Some(chat), &turn("b", "bad"), at(2)).expect("written");
    chats.add(&me(), Some(chat), &turn("c", "from elsewhere"), at(3)).expect("written");
    assert_eq!(chats.replace(&me(), bad, &turn("b", "good"), at(4)).expect("written"), bad);
    assert_eq!(turns(&*chats, chat), [turn("a", "1"), turn("b", "good"), turn("c", "from elsewhere")]);
}

fn another_try_of_a_turn_that_made_room_stands_at_the_end(new: NewChats) {
    let chats = new();
    let first = chats.add(&me(), None, &turn("first", "bad"), at(1)).expect("written");
    for number in 0..LIMITS.turns {
        chats.add(&me(), Some(first.chat), &turn(&number.to_string(), ""), at(2)).expect("written");
    }
    let again = chats.replace(&me(), first, &turn("first", "good"), at(3)).expect("written");
    assert_eq!(again.chat, first.chat);
    assert!(again.number > first.number);
    let said = questions(&*chats, first.chat);
    assert_eq!((said.len() as i64, said[0].as_str()), (LIMITS.turns, "1"));
    assert_eq!(said.last().map(String::as_str), Some("first"));
}

fn a_conversation_that_was_forgotten_meanwhile_begins_anew(new: NewChats) {
    let chats = new();
    let kept = chats.add(&me(), None, &turn("a", "1"), at(1)).expect("written");
    let chat = kept.chat;
    assert!(chats.forget(&me(), chat).expect("written"));
    assert!(!chats.forget(&me(), chat).expect("written"));
    assert_eq!(chats.get(&me(), chat).expect("read"), None);
    let added = chats.add(&me(), Some(chat), &turn("b", "2"), at(2)).expect("written").chat;
    let replaced = chats.replace(&me(), kept, &turn("c", "3"), at(3)).expect("written").chat;
    assert!(chat < added && added < replaced, "no number is given twice");
    assert_eq!(questions(&*chats, added), ["b"]);
    assert_eq!(questions(&*chats, replaced), ["c"]);
}

fn old_conversations_and_old_turns_make_room(new: NewChats) {
    let chats = new();
    let first = chats.add(&me(), None, &turn("first", ""), at(0)).expect("written").chat;
    for number in 0..LIMITS.chats {
        chats.add(&me(), None, &turn("another", ""), at(1 + number as u64)).expect("written");
    }
    assert_eq!(chats.list(&me(), usize::MAX).expect("read").len() as i64, LIMITS.chats);
    assert_eq!(turns(&*chats, first), []);

    let long = chats.add(&me(), None, &turn("0", ""), at(10_000)).expect("written").chat;
    for number in 1..=LIMITS.turns {
        chats.add(&me(), Some(long), &turn(&number.to_string(), ""), at(10_000)).expect("written");
    }
    let kept = questions(&*chats, long);
    assert_eq!((kept.len() as i64, kept[0].as_str()), (LIMITS.turns, "1"));
}

fn what_is_kept_has_a_size(new: NewChats) {
    let chats = new();
    let text = "ü".repeat(MAX_TEXT_BYTES / 2);
    let too_long = format!("{text}ü");
    let chat = chats.add(&me(), None, &turn(&text, &too_long), at(1)).expect("written").chat;
    let [kept] = turns(&*chats, chat).try_into().expect("one turn");
    assert_eq!(kept.question, text);
    assert!(kept.answer == format!("{text}{CUT}"), "the rest is marked as left out");

    let turns_of_one = LIMITS.chat_bytes as usize / (2 * MAX_TEXT_BYTES);
    for second in 0..turns_of_one + 2 {
        chats.add(&me(), Some(chat), &turn(&text, &text), at(2 + second as u64)).expect("written");
    }
    assert_eq!(turns(&*chats, chat).len(), turns_of_one);

    let conversations = LIMITS.bytes as usize / (2 * MAX_TEXT_BYTES);
    for second in 0..conversations {
        chats.add(&me(), None, &turn(&text, &text), at(1_000 + second as u64)).expect("written");
    }
    assert_eq!(turns(&*chats, chat), [], "the oldest is gone");
    assert_eq!(chats.list(&me(), usize::MAX).expect("read").len(), conversations);
}

fn turns_of_several_processes_are_all_kept_in_one_order(new: NewChats) {
    let chats = new();
    let chat = chats.add(&me(), None, &turn("first", ""), at(1)).expect("written").chat;
    let (processes, turns_of_each) = (4_usize, 20_usize);
    let numbers: Vec<Vec<TurnNumber>> = thread::scope(|scope| {
        let running: Vec<_> = (0..processes)
            .map(|process| {
                let store = (chats.open)();
                scope.spawn(move || {
                    let add = |number| {
                        let turn = turn(&format!("{process} {number}"), "");
                        store.add(&me(), Some(chat), &turn, at(2)).expect("written").number
                    };
                    (0..turns_of_each).map(add).collect()
                })
            })
            .collect();
        running.into_iter().map(|one| one.join().expect("no panic")).collect()
    });
    let mut all: Vec<TurnNumber> = numbers.into_iter().flatten().collect();
    all.sort_unstable();
    let most = 1 + (processes * turns_of_each) as i64;
    let expected: Vec<TurnNumber> = (2..=most).map(TurnNumber::new).collect();
    assert_eq!(all, expected, "each has a number of its own, and none is left out");
    assert_eq!(questions(&*chats, chat).len() as i64, most);
}

fn processes_that_begin_conversations_keep_to_the_limit(new: NewChats) {
    let chats = new();
    for second in 0..LIMITS.chats {
        chats.add(&me(), None, &turn("old", ""), at(second as u64)).expect("written");
    }
    thread::scope(|scope| {
        for process in 0..4 {
            let store = (chats.open)();
            scope.spawn(move || {
                for second in 0..5 {
                    let turn = turn(&format!("{process} {second}"), "");
                    store.add(&me(), None, &turn, at(10_000 + second)).expect("written");
                }
            });
        }
    });
    let listed = chats.list(&me(), usize::MAX).expect("read");
    assert_eq!(listed.len() as i64, LIMITS.chats);
    assert_eq!(listed.iter().filter(|chat| chat.title != "old").count(), 20, "the new ones stay");
}

#[test]
fn conversations_are_still_in_the_file_after_a_restart() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let open = || SqliteConversationStore::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
    let chat = open().add(&me(), None, &turn("a", "1"), at(1)).expect("written").chat;
    assert_eq!(turns(&open(), chat), [turn("a", "1")]);
}

fn any_character_is_found_again(new: NewChats) {
    let chats = new();
    let odd = ChatTurn { model: "m\0".into(), ..turn("a\0b\u{1a}0 \u{1b}[1m", "\0\u{1a}") };
    let chat = chats.add(&me(), None, &odd, at(1)).expect("written").chat;
    assert_eq!(turns(&*chats, chat), [odd]);
    assert_eq!(chats.list(&me(), 1).expect("read")[0].title, "a\0b\u{1a}0 \u{1b}[1m");
}
