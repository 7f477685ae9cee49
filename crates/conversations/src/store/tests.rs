//! Saved conversations: found again, replaced, deleted, and kept within the limits.

use std::time::{Duration, SystemTime};

use hob_core::Moment;
use hob_db::Database;

use super::limits::{CUT, MAX_BYTES, MAX_CHAT_BYTES, MAX_CHATS, MAX_TEXT_BYTES, MAX_TURNS};
use super::*;
use crate::types::TurnEnding;

fn chats() -> SqliteConversationStore {
    SqliteConversationStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened"))
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn turn(question: &str, answer: &str) -> ChatTurn {
    ChatTurn {
        question: question.into(),
        answer: answer.into(),
        ending: TurnEnding::Complete,
        model: "m".into(),
    }
}

/// What was said; nothing where there is no such conversation.
fn turns(chats: &dyn ConversationStore, chat: ChatId) -> Vec<ChatTurn> {
    chats.get(chat).expect("read").map(|conversation| conversation.turns).unwrap_or_default()
}

fn questions(chats: &dyn ConversationStore, chat: ChatId) -> Vec<String> {
    turns(chats, chat).into_iter().map(|turn| turn.question).collect()
}

#[test]
fn a_conversation_is_found_again_as_it_was() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let open = || SqliteConversationStore::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
    let stopped = ChatTurn { ending: TurnEnding::Stopped, ..turn("And\nthen?", "Then the") };
    let chat = open().add(None, &turn("What  is\na hob?", "A spirit."), at(1)).expect("written").chat;
    let last = open().add(Some(chat), &stopped, at(2)).expect("written");
    assert_eq!(last.chat, chat);
    let chats = open();
    let said = vec![turn("What  is\na hob?", "A spirit."), stopped];
    assert_eq!(chats.get(chat).expect("read"), Some(Conversation { turns: said, last }));
    let summary =
        ChatSummary { id: chat, title: "What is a hob?".into(), turns: 2, last_used: Moment::of(at(2)) };
    assert_eq!(chats.list(10).expect("read"), [summary]);
    assert_eq!(chats.latest().expect("read"), Some(chat));
}

#[test]
fn the_one_that_was_used_last_comes_first() {
    let chats = chats();
    let first = chats.add(None, &turn("a", "1"), at(1)).expect("written").chat;
    let second = chats.add(None, &turn("b", "2"), at(2)).expect("written").chat;
    assert_eq!(chats.latest().expect("read"), Some(second));
    chats.add(Some(first), &turn("c", "3"), at(3)).expect("written");
    assert_eq!(chats.latest().expect("read"), Some(first));
    let listed: Vec<ChatId> = chats.list(10).expect("read").into_iter().map(|chat| chat.id).collect();
    assert_eq!(listed, [first, second]);
}

#[test]
fn another_try_takes_the_place_of_its_answer_and_of_no_other() {
    let chats = chats();
    let chat = chats.add(None, &turn("a", "1"), at(1)).expect("written").chat;
    let bad = chats.add(Some(chat), &turn("b", "bad"), at(2)).expect("written");
    chats.add(Some(chat), &turn("c", "from elsewhere"), at(3)).expect("written");
    assert_eq!(chats.replace(bad, &turn("b", "good"), at(4)).expect("written"), bad);
    assert_eq!(turns(&chats, chat), [turn("a", "1"), turn("b", "good"), turn("c", "from elsewhere")]);
}

#[test]
fn another_try_of_a_turn_that_made_room_stands_at_the_end() {
    let chats = chats();
    let first = chats.add(None, &turn("first", "bad"), at(1)).expect("written");
    for number in 0..MAX_TURNS {
        chats.add(Some(first.chat), &turn(&number.to_string(), ""), at(2)).expect("written");
    }
    let again = chats.replace(first, &turn("first", "good"), at(3)).expect("written");
    assert_eq!(again.chat, first.chat);
    assert!(again.number > first.number);
    let said = questions(&chats, first.chat);
    assert_eq!((said.len() as i64, said[0].as_str()), (MAX_TURNS, "1"));
    assert_eq!(said.last().map(String::as_str), Some("first"));
}

#[test]
fn a_conversation_that_was_forgotten_meanwhile_begins_anew() {
    let chats = chats();
    let kept = chats.add(None, &turn("a", "1"), at(1)).expect("written");
    let chat = kept.chat;
    assert!(chats.forget(chat).expect("written"));
    assert!(!chats.forget(chat).expect("written"));
    assert_eq!(chats.get(chat).expect("read"), None);
    let added = chats.add(Some(chat), &turn("b", "2"), at(2)).expect("written").chat;
    let replaced = chats.replace(kept, &turn("c", "3"), at(3)).expect("written").chat;
    assert!(chat < added && added < replaced, "no number is given twice");
    assert_eq!(questions(&chats, added), ["b"]);
    assert_eq!(questions(&chats, replaced), ["c"]);
}

#[test]
fn old_conversations_and_old_turns_make_room() {
    let chats = chats();
    let first = chats.add(None, &turn("first", ""), at(0)).expect("written").chat;
    for number in 0..MAX_CHATS {
        chats.add(None, &turn("another", ""), at(1 + number as u64)).expect("written");
    }
    assert_eq!(chats.list(usize::MAX).expect("read").len() as i64, MAX_CHATS);
    assert_eq!(turns(&chats, first), []);

    let long = chats.add(None, &turn("0", ""), at(10_000)).expect("written").chat;
    for number in 1..=MAX_TURNS {
        chats.add(Some(long), &turn(&number.to_string(), ""), at(10_000)).expect("written");
    }
    let kept = questions(&chats, long);
    assert_eq!((kept.len() as i64, kept[0].as_str()), (MAX_TURNS, "1"));
}

#[test]
fn what_is_kept_has_a_size() {
    let chats = chats();
    let text = "ü".repeat(MAX_TEXT_BYTES / 2);
    let too_long = format!("{text}ü");
    let chat = chats.add(None, &turn(&text, &too_long), at(1)).expect("written").chat;
    let [kept] = turns(&chats, chat).try_into().expect("one turn");
    assert_eq!(kept.question, text);
    assert!(kept.answer == format!("{text}{CUT}"), "the rest is marked as left out");

    let turns_of_one = MAX_CHAT_BYTES as usize / (2 * MAX_TEXT_BYTES);
    for second in 0..turns_of_one + 2 {
        chats.add(Some(chat), &turn(&text, &text), at(2 + second as u64)).expect("written");
    }
    assert_eq!(turns(&chats, chat).len(), turns_of_one);

    let conversations = MAX_BYTES as usize / (2 * MAX_TEXT_BYTES);
    for second in 0..conversations {
        chats.add(None, &turn(&text, &text), at(1_000 + second as u64)).expect("written");
    }
    assert_eq!(turns(&chats, chat), [], "the oldest is gone");
    assert_eq!(chats.list(usize::MAX).expect("read").len(), conversations);
}
