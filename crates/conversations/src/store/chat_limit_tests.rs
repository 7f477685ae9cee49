//! How much the chats of the pages may have: turns, bytes, settings, and their number.

use std::thread;

use hob_testkit::on_both_databases;

use super::chat_tests::{NewStore, answer, ask, at, me, new_chat, new_postgres, new_sqlite, node, question};
use super::limits::MAX_SYSTEM_BYTES;
use super::tests::LIMITS;
use super::*;
use crate::chat::SettingsChange;

on_both_databases!(new_sqlite, new_postgres:
    a_full_chat_refuses_questions_and_loses_nothing,
    an_answer_is_refused_when_all_chats_together_are_full,
    questions_at_the_same_time_share_the_room,
    settings_count_in_the_bytes_of_chats,
    a_caller_has_a_number_of_chats,
);

fn a_full_chat_refuses_questions_and_loses_nothing(new: NewStore) {
    let store = new();
    let chat = new_chat(&store, "Long", at(1));
    for number in 0..LIMITS.turns {
        ask(&store, chat, None, &number.to_string());
    }
    let one_more = NewQuestion { parent: None, question: question("one more") };
    assert_eq!(store.chats.add_question(&me(), chat, &one_more, at(12)).expect("read"), TurnSaved::ChatFull);
    let found = store.chats.chat(&me(), chat).expect("read").expect("there");
    assert_eq!(found.turns.len() as i64, LIMITS.turns);

    let large = new_chat(&store, "Large", at(2));
    let text = "x".repeat(1 << 20);
    // The settings have the first bytes of the last MiB.
    for _ in 1..LIMITS.chat_bytes >> 20 {
        ask(&store, large, None, &text);
    }
    let one_more = NewQuestion { parent: None, question: question(&text) };
    assert_eq!(store.chats.add_question(&me(), large, &one_more, at(12)).expect("read"), TurnSaved::ChatFull);
}

fn an_answer_is_refused_when_all_chats_together_are_full(new: NewStore) {
    let store = new();
    // Every question is there before the first answer.
    let turns = ["a", "b", "c", "d", "e", "f"].map(|title| {
        let chat = new_chat(&store, title, at(1));
        SavedTurn { chat, number: ask(&store, chat, None, "?") }
    });
    let save = |turn: SavedTurn, text: &str| {
        store.small.save_answer(&me(), turn, &answer(text), at(11)).expect("read")
    };
    // One MiB, and the five of an answer that belongs to an admitted question.
    let text = "x".repeat(1 << 20);
    for turn in &turns[..5] {
        node(save(*turn, &text));
    }
    assert_eq!(save(turns[5], &text), TurnSaved::StorageFull);
    let found = store.chats.chat(&me(), turns[5].chat).expect("read").expect("there");
    assert_eq!(found.turns[0].answer, None);
    let one_more = NewQuestion { parent: None, question: question("one more") };
    let asked = store.small.add_question(&me(), turns[5].chat, &one_more, at(12));
    assert_eq!(asked.expect("read"), TurnSaved::StorageFull);

    node(save(turns[0], "A shorter answer makes room."));
    node(save(turns[5], &text));
}

fn questions_at_the_same_time_share_the_room(new: NewStore) {
    let store = new();
    let chats: Vec<ChatId> = (0..8).map(|number| new_chat(&store, &number.to_string(), at(1))).collect();
    // Five of them fit.
    let asked = NewQuestion { parent: None, question: question(&"x".repeat(200 << 10)) };
    let (small, asked) = (&store.small, &asked);
    let saved: Vec<TurnSaved> = thread::scope(|scope| {
        let ask = |chat: &ChatId| {
            let chat = *chat;
            scope.spawn(move || small.add_question(&me(), chat, asked, at(2)).expect("read"))
        };
        let threads: Vec<_> = chats.iter().map(ask).collect();
        threads.into_iter().map(|thread| thread.join().expect("asked")).collect()
    });
    let (kept, refused): (Vec<_>, Vec<_>) =
        saved.into_iter().partition(|saved| matches!(saved, TurnSaved::Saved(_)));
    assert_eq!((kept.len(), refused), (5, vec![TurnSaved::StorageFull; 3]));
}

fn settings_count_in_the_bytes_of_chats(new: NewStore) {
    let store = new();
    let system = "x".repeat(MAX_SYSTEM_BYTES);
    let settings = SavedSettings { system: Some(system.clone()), ..SavedSettings::default() };
    let with_system = NewChat { title: None, settings };
    let create = |chat: &NewChat| store.small.create(&me(), chat, at(1)).expect("written");
    // Sixteen system prompts are one MiB, and the rest of their settings is over it.
    let first = create(&with_system).expect("room");
    for _ in 1..15 {
        assert!(create(&with_system).is_some());
    }
    assert_eq!(create(&with_system), None);
    let plain = create(&NewChat::default()).expect("room");

    let set = |chat: ChatId, system: Option<String>| {
        let settings = SettingsChange { system: Some(system), ..SettingsChange::default() };
        let change = ChatChange { settings: Some(settings), ..ChatChange::default() };
        store.small.change(&me(), chat, &change).expect("read")
    };
    assert_eq!(set(plain.id, Some(system.clone())), ChatChanged::StorageFull);
    assert_eq!(store.chats.chat(&me(), plain.id).expect("read").expect("there").summary, plain);
    assert!(matches!(set(first.id, None), ChatChanged::Changed(_)));
    assert!(matches!(set(plain.id, Some(system.clone())), ChatChanged::Changed(_)));
    assert_eq!(set(first.id, Some(system)), ChatChanged::StorageFull);
    // The size of a chat has its settings after a question too.
    let new = NewQuestion { parent: None, question: question("?") };
    node(store.small.add_question(&me(), plain.id, &new, at(2)).expect("written"));
    assert_eq!(create(&with_system), None);
}

fn a_caller_has_a_number_of_chats(new: NewStore) {
    let store = new();
    let ana = ResponseOwner::member("ana");
    for number in 0..LIMITS.chats {
        new_chat(&store, &number.to_string(), at(1));
    }
    assert_eq!(store.chats.create(&me(), &NewChat::default(), at(2)).expect("read"), None);
    assert!(store.chats.create(&ana, &NewChat::default(), at(2)).expect("written").is_some());
}
