//! Chats of the pages: trees of turns, settings, search, pages, and whose they are.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase, on_both_databases};
use serde_json::json;

use super::limits::ChatLimits;
use super::tests::LIMITS;
use super::*;
use crate::chat::{ChatCursor, NewQuestion, SavedQuestion, SettingsChange, TurnNode};
use crate::types::{TurnEnding, TurnNumber};

/// One database, as the pages and as the terminal use it.
pub(super) struct TestStore {
    pub(super) chats: Arc<dyn ChatStore>,
    /// With `FEW_BYTES`.
    pub(super) small: Arc<dyn ChatStore>,
    terminal: Arc<dyn ConversationStore>,
    _database: Option<TestDatabase>,
}

pub(super) type NewStore = fn() -> TestStore;

const FEW_BYTES: ChatLimits = ChatLimits { bytes: 1 << 20, ..LIMITS };

pub(super) fn new_sqlite() -> TestStore {
    let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
    let store = SqliteConversationStore::new(database).with_limits(LIMITS);
    TestStore {
        chats: Arc::new(store.clone()),
        small: Arc::new(store.clone().with_limits(FEW_BYTES)),
        terminal: Arc::new(store),
        _database: None,
    }
}

pub(super) fn new_postgres() -> TestStore {
    let database = PostgresServer::shared().create_database();
    let opened = PostgresDatabase::new(database.url().parse().expect("a URL"), &[POSTGRES_MIGRATIONS]);
    let store = PostgresConversationStore::new(opened.expect("opened")).with_limits(LIMITS);
    TestStore {
        chats: Arc::new(store.clone()),
        small: Arc::new(store.clone().with_limits(FEW_BYTES)),
        terminal: Arc::new(store),
        _database: Some(database),
    }
}

on_both_databases!(new_sqlite, new_postgres:
    an_edited_question_is_another_branch,
    an_answer_is_found_as_it_was_saved,
    the_terminal_continues_the_branch_that_is_shown,
    a_chat_has_a_title_settings_and_a_pin,
    a_chat_belongs_to_its_caller,
    pages_follow_each_other_without_gaps,
    words_are_found_in_titles_and_texts,
    assistants_are_saved_changed_and_deleted,
    a_pinned_chat_makes_room_last,
);

pub(super) fn me() -> ResponseOwner {
    ResponseOwner::owner()
}

pub(super) fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

pub(super) fn new_chat(store: &TestStore, title: &str, now: SystemTime) -> ChatId {
    let new = NewChat { title: Some(title.to_owned()), ..NewChat::default() };
    store.chats.create(&me(), &new, now).expect("written").expect("room").id
}

pub(super) fn question(text: &str) -> SavedQuestion {
    SavedQuestion { text: text.to_owned(), attachments: Vec::new() }
}

pub(super) fn ask(store: &TestStore, chat: ChatId, parent: Option<TurnNumber>, text: &str) -> TurnNumber {
    let new = NewQuestion { parent, question: question(text) };
    node(store.chats.add_question(&me(), chat, &new, at(10)).expect("written")).number
}

pub(super) fn node(saved: TurnSaved) -> TurnNode {
    match saved {
        TurnSaved::Saved(node) => *node,
        other => panic!("not saved: {other:?}"),
    }
}

pub(super) fn answer(text: &str) -> SavedAnswer {
    SavedAnswer {
        text: text.to_owned(),
        reasoning: None,
        model: "m".into(),
        sources: Vec::new(),
        steps: Vec::new(),
        usage: None,
        ending: TurnEnding::Complete,
        error: None,
    }
}

fn reply(store: &TestStore, chat: ChatId, number: TurnNumber, text: &str) {
    let saved = store.chats.save_answer(&me(), SavedTurn { chat, number }, &answer(text), at(11));
    node(saved.expect("written"));
}

fn search(store: &TestStore, words: &str) -> Vec<String> {
    let query = ChatPageQuery { words: Some(words.to_owned()), limit: 10, after: None };
    store.chats.page(&me(), &query).expect("read").chats.into_iter().map(|chat| chat.title).collect()
}

fn an_edited_question_is_another_branch(new: NewStore) {
    let store = new();
    let chat = store.chats.create(&me(), &NewChat::default(), at(1)).expect("written").expect("room");
    assert_eq!((chat.title.as_str(), chat.turns), ("", 0));
    let first = ask(&store, chat.id, None, "What is  a hob?");
    reply(&store, chat.id, first, "A spirit.");
    let second = ask(&store, chat.id, Some(first), "Where?");
    let edited = ask(&store, chat.id, Some(first), "Since when?");
    let other = ask(&store, chat.id, None, "What is a nob?");
    let saved = store.chats.chat(&me(), chat.id).expect("read").expect("there");
    let tree: Vec<_> =
        saved.turns.iter().map(|turn| (turn.number, turn.parent, turn.question.text.as_str())).collect();
    assert_eq!(
        tree,
        [
            (first, None, "What is  a hob?"),
            (second, Some(first), "Where?"),
            (edited, Some(first), "Since when?"),
            (other, None, "What is a nob?"),
        ]
    );
    assert_eq!((saved.summary.title.as_str(), saved.summary.turns), ("What is a hob?", 4));
    assert_eq!(saved.current, Some(other));

    let shown = ChatChange { current: Some(second), ..ChatChange::default() };
    assert!(matches!(store.chats.change(&me(), chat.id, &shown), Ok(ChatChanged::Changed(_))));
    let saved = store.chats.chat(&me(), chat.id).expect("read").expect("there");
    assert_eq!(saved.current, Some(second));
    let unknown = TurnNumber::new(99);
    let shown = ChatChange { current: Some(unknown), ..ChatChange::default() };
    assert_eq!(store.chats.change(&me(), chat.id, &shown).expect("read"), ChatChanged::NoSuchTurn);
    let lost = NewQuestion { parent: Some(unknown), question: question("?") };
    assert_eq!(store.chats.add_question(&me(), chat.id, &lost, at(12)).expect("read"), TurnSaved::NoSuchTurn);
    let turn = SavedTurn { chat: chat.id, number: unknown };
    let saved = store.chats.save_answer(&me(), turn, &answer(""), at(12)).expect("read");
    assert_eq!(saved, TurnSaved::NoSuchTurn);
}

fn an_answer_is_found_as_it_was_saved(new: NewStore) {
    let store = new();
    let chat = new_chat(&store, "Files", at(1));
    let asked: SavedQuestion = serde_json::from_value(json!({ "text": "What is in it? \0", "attachments": [
        { "name": "a.txt", "kind": "text", "content": "\0 x" },
        { "name": "b.png", "kind": "image", "content": "data:image/png;base64,AAAA" },
    ] }))
    .expect("a question");
    let new = NewQuestion { parent: None, question: asked.clone() };
    let turn = node(store.chats.add_question(&me(), chat, &new, at(2)).expect("written"));
    assert_eq!((&turn.question, &turn.answer), (&asked, &None));
    let saved = SavedTurn { chat, number: turn.number };
    for answered in [
        json!({
            "text": "An x.", "reasoning": "Look.", "model": "m", "ending": "complete", "error": null,
            "sources": [{ "document": "/n/a.md", "passage": "An x", "score": 0.5 }],
            "steps": [{ "tool": "think", "arguments": "{\"a\":1}", "result": "x", "success": true }],
            "usage": { "prompt_tokens": 3, "completion_tokens": 4, "seconds": 0.25 },
        }),
        json!({
            "text": "An", "reasoning": null, "model": "m", "ending": "cut", "error": "the engine stopped",
            "sources": [], "steps": [], "usage": null,
        }),
        json!({
            "text": "", "reasoning": null, "model": "m", "ending": "failed", "error": "no engine answered",
            "sources": [], "steps": [], "usage": null,
        }),
    ] {
        let answer: SavedAnswer = serde_json::from_value(answered.clone()).expect("an answer");
        let turn = node(store.chats.save_answer(&me(), saved, &answer, at(3)).expect("written"));
        assert_eq!(turn.answer.as_ref(), Some(&answer));
        let found = store.chats.chat(&me(), chat).expect("read").expect("there");
        assert_eq!(found.turns, [turn]);
        assert_eq!(serde_json::to_value(&found.turns[0].answer).expect("JSON"), answered);
    }
}

fn the_terminal_continues_the_branch_that_is_shown(new: NewStore) {
    let store = new();
    let chat = new_chat(&store, "Hobs", at(1));
    let first = ask(&store, chat, None, "a");
    reply(&store, chat, first, "1");
    let second = ask(&store, chat, Some(first), "b");
    reply(&store, chat, second, "2");
    let edited = ask(&store, chat, Some(first), "c");
    reply(&store, chat, edited, "3");
    // Without an answer, as after a crash.
    let lost = ask(&store, chat, Some(second), "lost");
    let said = || {
        let conversation = store.terminal.get(&me(), chat).expect("read").expect("there");
        let turns: Vec<_> =
            conversation.turns.iter().map(|turn| (turn.question.clone(), turn.answer.clone())).collect();
        (turns, conversation.last.map(|last| last.number))
    };
    let pair = |question: &str, answer: &str| (question.to_owned(), answer.to_owned());
    assert_eq!(said(), (vec![pair("a", "1"), pair("b", "2")], Some(second)));
    let turn = ChatTurn {
        question: "d".into(),
        attachments: Vec::new(),
        answer: "4".into(),
        ending: TurnEnding::Complete,
        model: "m".into(),
    };
    let added = store.terminal.add(&me(), Some(chat), &turn, at(20)).expect("written");
    assert_eq!(said(), (vec![pair("a", "1"), pair("b", "2"), pair("d", "4")], Some(added.number)));
    let found = store.chats.chat(&me(), chat).expect("read").expect("there");
    assert_eq!(found.current, Some(added.number));
    assert_eq!(found.turns.last().map(|turn| turn.parent), Some(Some(lost)));
    assert_eq!(store.terminal.list(&me(), 10).expect("read"), [found.summary]);
}

fn a_chat_has_a_title_settings_and_a_pin(new: NewStore) {
    let store = new();
    let settings: SavedSettings =
        serde_json::from_value(json!({ "model": "qwen3:8b", "documents": true })).expect("settings");
    let new = NewChat { title: None, settings: settings.clone() };
    let before = store.chats.create(&me(), &new, at(1)).expect("written").expect("room");
    assert_eq!(before.settings, settings);
    let change = ChatChange {
        title: Some("Boiler".into()),
        pinned: Some(true),
        settings: Some(SettingsChange { temperature: Some(Some(0.5)), ..SettingsChange::default() }),
        current: None,
    };
    let after = ChatSummary {
        title: "Boiler".into(),
        pinned: true,
        settings: SavedSettings { temperature: Some(0.5), ..settings },
        ..before
    };
    let changed = store.chats.change(&me(), before.id, &change).expect("written");
    assert_eq!(changed, ChatChanged::Changed(Box::new(after.clone())));
    ask(&store, before.id, None, "a question is no title now");
    let found = store.chats.chat(&me(), before.id).expect("read").expect("there").summary;
    assert_eq!((found.title, found.pinned, found.settings), (after.title, true, after.settings));
}

fn a_chat_belongs_to_its_caller(new: NewStore) {
    let store = new();
    let [ana, ben] = ["ana", "ben"].map(ResponseOwner::member);
    let chat = store.chats.create(&ana, &NewChat::default(), at(1)).expect("written").expect("room").id;
    let new = NewQuestion { parent: None, question: question("secret") };
    let number = node(store.chats.add_question(&ana, chat, &new, at(2)).expect("written")).number;
    for other in [&ben, &me()] {
        let all = ChatPageQuery { words: None, limit: 10, after: None };
        let found = ChatPageQuery { words: Some("secret".into()), ..all.clone() };
        for query in [all, found] {
            assert_eq!(
                store.chats.page(other, &query).expect("read"),
                ChatPage { chats: vec![], next: None }
            );
        }
        assert_eq!(store.chats.chat(other, chat).expect("read"), None);
        assert_eq!(store.terminal.get(other, chat).expect("read"), None);
        assert_eq!(store.terminal.latest(other).expect("read"), None);
        let change = ChatChange { pinned: Some(true), ..ChatChange::default() };
        assert_eq!(store.chats.change(other, chat, &change).expect("read"), ChatChanged::NoSuchChat);
        assert!(!store.chats.delete(other, chat).expect("read"));
        assert_eq!(store.chats.add_question(other, chat, &new, at(3)).expect("read"), TurnSaved::NoSuchChat);
        let saved = store.chats.save_answer(other, SavedTurn { chat, number }, &answer("x"), at(3));
        assert_eq!(saved.expect("read"), TurnSaved::NoSuchChat);
    }
    assert!(store.chats.delete(&ana, chat).expect("written"));
    assert_eq!(store.chats.chat(&ana, chat).expect("read"), None);
}

fn pages_follow_each_other_without_gaps(new: NewStore) {
    let store = new();
    // Two of each time, so that the id decides.
    let ids: Vec<ChatId> = (0..7).map(|n| new_chat(&store, &format!("chat {n}"), at(n / 2))).collect();
    let pin = ChatChange { pinned: Some(true), ..ChatChange::default() };
    for pinned in [1, 4] {
        store.chats.change(&me(), ids[pinned], &pin).expect("written");
    }
    let mut found = Vec::new();
    let mut after: Option<ChatCursor> = None;
    for length in [3, 3, 1] {
        let page = store.chats.page(&me(), &ChatPageQuery { words: None, limit: 3, after }).expect("read");
        assert_eq!(page.chats.len(), length);
        found.extend(page.chats.iter().map(|chat| chat.id));
        after = page.next;
    }
    assert_eq!(after, None);
    assert_eq!(found, [4, 1, 6, 5, 3, 2, 0].map(|place: usize| ids[place]));
}

fn words_are_found_in_titles_and_texts(new: NewStore) {
    let store = new();
    let boiler = new_chat(&store, "The boiler", at(1));
    let file = new_chat(&store, "Notes", at(2));
    let number = ask(&store, file, None, "What is in file.txt, of which größe?");
    reply(&store, file, number, "The state-of-the-art BOILER.");
    assert_eq!(search(&store, "boiler"), ["Notes", "The boiler"]);
    for words in ["txt", "file.txt", "größe", "art state", "boil", "NOTES", "question's txt OR \"what\" "] {
        let expected: &[&str] = if words == "boil" {
            &["Notes", "The boiler"]
        } else if words.starts_with("question") {
            &[]
        } else {
            &["Notes"]
        };
        assert_eq!(search(&store, words), expected, "{words}");
    }
    assert_eq!(search(&store, "oiler"), [""; 0], "a word begins so");
    assert_eq!(search(&store, "?!"), [""; 0]);
    reply(&store, file, number, "Gone.");
    let rename = ChatChange { title: Some("Heating".into()), ..ChatChange::default() };
    store.chats.change(&me(), boiler, &rename).expect("written");
    assert_eq!(search(&store, "boiler"), [""; 0]);
    assert_eq!(search(&store, "heat"), ["Heating"]);
    assert!(store.chats.delete(&me(), file).expect("written"));
    assert_eq!(search(&store, "gone"), [""; 0]);
}

fn assistants_are_saved_changed_and_deleted(new: NewStore) {
    let store = new();
    let settings = SavedSettings { system: Some("Be brief.".into()), ..SavedSettings::default() };
    let create = |name| store.chats.create_assistant(&me(), name, &settings).expect("written");
    let brief = create("Brief").expect("room");
    assert_eq!((brief.name.as_str(), &brief.settings), ("Brief", &settings));
    let change = AssistantChange {
        name: Some("Briefer".into()),
        settings: Some(SettingsChange { model: Some(Some("m".into())), ..SettingsChange::default() }),
    };
    let changed = SavedAssistant {
        id: brief.id,
        name: "Briefer".into(),
        settings: SavedSettings { model: Some("m".into()), ..settings.clone() },
    };
    let found = store.chats.change_assistant(&me(), brief.id, &change).expect("written");
    assert_eq!(found.as_ref(), Some(&changed));
    assert_eq!(store.chats.assistant(&me(), brief.id).expect("read"), Some(changed));
    assert!(create("Second").is_some() && create("Third").is_some());
    assert_eq!(create("Fourth"), None, "there is a limit");
    let names: Vec<String> =
        store.chats.assistants(&me()).expect("read").into_iter().map(|one| one.name).collect();
    assert_eq!(names, ["Briefer", "Second", "Third"]);

    let ana = ResponseOwner::member("ana");
    assert_eq!(store.chats.assistants(&ana).expect("read"), []);
    assert_eq!(store.chats.assistant(&ana, brief.id).expect("read"), None);
    assert_eq!(store.chats.change_assistant(&ana, brief.id, &change).expect("read"), None);
    assert!(!store.chats.delete_assistant(&ana, brief.id).expect("read"));
    assert!(store.chats.delete_assistant(&me(), brief.id).expect("written"));
    assert_eq!(store.chats.assistant(&me(), brief.id).expect("read"), None);
}

fn a_pinned_chat_makes_room_last(new: NewStore) {
    let store = new();
    let pinned = new_chat(&store, "pinned", at(1));
    let pin = ChatChange { pinned: Some(true), ..ChatChange::default() };
    store.chats.change(&me(), pinned, &pin).expect("written");
    let turn = ChatTurn {
        question: "q".into(),
        attachments: Vec::new(),
        answer: "a".into(),
        ending: TurnEnding::Complete,
        model: "m".into(),
    };
    for second in 0..=LIMITS.chats {
        store.terminal.add(&me(), None, &turn, at(2 + second as u64)).expect("written");
    }
    let listed = store.terminal.list(&me(), usize::MAX).expect("read");
    assert_eq!((listed.len() as i64, listed[0].id), (LIMITS.chats, pinned));
}

/// A page costs the same, however many chats follow it.
#[test]
fn ten_thousand_chats_are_listed_by_the_index() {
    const CHATS: u64 = 10_000;
    let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
    let filled = database.write(|transaction| {
        let mut insert = transaction
            .prepare("INSERT INTO chat (title, bytes, created, last_used) VALUES (?1, 10, ?2, ?2)")?;
        for number in 0..CHATS as i64 {
            insert.execute((format!("chat number {number}"), number))?;
        }
        Ok(())
    });
    filled.expect("written");
    let plan: Vec<String> = database
        .read(|connection| {
            let mut plan = connection.prepare(
                "EXPLAIN QUERY PLAN SELECT id FROM chat WHERE owner = 'owner' AND (pinned, last_used, id) < (0, 9, 9)
                 ORDER BY pinned DESC, last_used DESC, id DESC LIMIT 50",
            )?;
            let rows = plan.query_map([], |row| row.get(3))?;
            rows.collect()
        })
        .expect("explained");
    assert_eq!(plan.len(), 1, "no sorting: {plan:?}");
    assert!(plan[0].contains("chat_page (owner=? AND"), "{plan:?}");

    let store = SqliteConversationStore::new(database);
    let (mut found, mut after) = (0, None);
    loop {
        let page = store.page(&me(), &ChatPageQuery { words: None, limit: 200, after }).expect("read");
        found += page.chats.len() as u64;
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(found, CHATS);
    let query = ChatPageQuery { words: Some("number 9999".into()), limit: 10, after: None };
    assert_eq!(store.page(&me(), &query).expect("read").chats.len(), 1);
}
