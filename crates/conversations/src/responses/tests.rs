//! Stored responses: found again by their owner alone, continued, deleted, and kept within the limits.

use std::time::{Duration, SystemTime};

use hob_db::Database;

use super::limits::{MAX_CHAIN, MAX_CONVERSATION_BYTES, MAX_CONVERSATION_ITEMS, StoredLimits};
use super::sqlite::PRUNE_EVERY;
use super::*;
use crate::MIGRATIONS;

fn store() -> SqliteResponseStore {
    SqliteResponseStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened"))
}

fn at(seconds: u64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(seconds)
}

fn response(id: &str, previous: Option<&str>) -> StoredResponse {
    StoredResponse {
        id: id.to_owned(),
        previous: previous.map(str::to_owned),
        body: format!("{{\"id\":\"{id}\"}}"),
        input: "[]".to_owned(),
        lease: None,
    }
}

fn item(id: &str) -> ConversationItem {
    ConversationItem { id: id.to_owned(), item: format!("{{\"id\":\"{id}\"}}") }
}

fn append(conversation: &str, items: Vec<ConversationItem>) -> ConversationAppend {
    ConversationAppend { conversation: conversation.to_owned(), items }
}

fn conversation(id: &str, seconds: u64) -> StoredConversation {
    StoredConversation { id: id.to_owned(), created: Moment::of(at(seconds)), metadata: "{}".to_owned() }
}

#[test]
fn a_response_is_found_again_after_a_restart() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let open = || SqliteResponseStore::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
    let owner = ResponseOwner::owner();
    open().save(&owner, &response("a", None), None, at(1)).expect("written");
    assert_eq!(open().find(&owner, "a").expect("read"), Some(response("a", None)));
    assert!(open().delete(&owner, "a").expect("written"));
    assert!(!open().delete(&owner, "a").expect("written"));
    assert_eq!(open().find(&owner, "a").expect("read"), None);
}

#[test]
fn nothing_is_created_by_looking() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let store = SqliteResponseStore::new(hob_db::LazyDatabase::at(&path, &[MIGRATIONS]));
    assert_eq!(store.find(&ResponseOwner::owner(), "a").expect("read"), None);
    assert!(!path.exists());
}

#[test]
fn what_belongs_to_one_caller_is_not_there_for_another() {
    let store = store();
    let callers = [ResponseOwner::owner(), ResponseOwner::stranger()];
    for (index, owner) in callers.iter().enumerate() {
        let stranger = &callers[1 - index];
        let (id, chat) = (format!("r{index}"), format!("c{index}"));
        store.save(owner, &response(&id, None), None, at(1)).expect("written");
        store.create_conversation(owner, &conversation(&chat, 1)).expect("written");
        assert_eq!(store.find(stranger, &id).expect("read"), None);
        assert_eq!(store.chain(stranger, &id, at(2)).expect("read"), ResponseChain::Missing(id.clone()));
        assert!(!store.update(stranger, &response(&id, None), None, at(2)).expect("written"));
        assert!(!store.delete(stranger, &id).expect("written"));
        assert_eq!(store.conversation(stranger, &chat).expect("read"), None);
        assert_eq!(store.items(stranger, &chat, at(2)).expect("read"), None);
        let items = append(&chat, vec![item("i")]);
        assert_eq!(store.append(stranger, &items, at(2)).expect("written"), Appended::NoSuchConversation);
        assert!(!store.set_metadata(stranger, &chat, "{\"a\":\"b\"}").expect("written"));
        store.save(stranger, &response("other", None), Some(&items), at(2)).expect("written");
        assert_eq!(store.items(owner, &chat, at(3)).expect("read"), Some(Vec::new()));
        assert_eq!(store.append(owner, &items, at(3)).expect("written"), Appended::Yes);
        assert!(!store.delete_item(stranger, &chat, "i").expect("written"));
        assert!(!store.delete_conversation(stranger, &chat).expect("written"));
        assert_eq!(store.find(owner, &id).expect("read"), Some(response(&id, None)));
        assert_eq!(store.items(owner, &chat, at(3)).expect("read"), Some(vec![item("i")]));
    }
}

#[test]
fn a_chain_is_complete_or_says_what_is_missing() {
    let store = store();
    let owner = ResponseOwner::owner();
    let all = [response("a", None), response("b", Some("a")), response("c", Some("b"))];
    for response in &all {
        store.save(&owner, response, None, at(1)).expect("written");
    }
    assert_eq!(store.chain(&owner, "c", at(2)).expect("read"), ResponseChain::Whole(all.to_vec()));
    store.delete(&owner, "a").expect("written");
    assert_eq!(store.chain(&owner, "c", at(2)).expect("read"), ResponseChain::Missing("a".into()));
}

#[test]
fn a_chain_has_a_length_even_if_it_is_a_circle() {
    let store = store();
    let owner = ResponseOwner::owner();
    store.save(&owner, &response("0", None), None, at(1)).expect("written");
    for number in 1..MAX_CHAIN {
        let (id, previous) = (number.to_string(), (number - 1).to_string());
        store.save(&owner, &response(&id, Some(&previous)), None, at(1)).expect("written");
    }
    let last = (MAX_CHAIN - 1).to_string();
    let chain = store.chain(&owner, &last, at(1)).expect("read");
    assert!(matches!(chain, ResponseChain::Whole(responses) if responses.len() == MAX_CHAIN));
    store.save(&owner, &response("0", Some(&last)), None, at(1)).expect("written");
    assert_eq!(store.chain(&owner, &last, at(1)).expect("read"), ResponseChain::TooLong);
}

#[test]
fn what_was_not_used_for_the_longest_time_makes_room() {
    let store = store();
    let stranger = ResponseOwner::stranger();
    let owner = ResponseOwner::owner();
    let limits = StoredLimits::of(&stranger);
    store.save(&owner, &response("owners", None), None, at(0)).expect("written");
    store.save(&stranger, &response("old", None), None, at(1)).expect("written");
    store.save(&stranger, &response("continued", None), None, at(1)).expect("written");
    store.chain(&stranger, "continued", at(50_000)).expect("read");
    let more = limits.responses as u64 + PRUNE_EVERY;
    for number in 0..more {
        store.save(&stranger, &response(&number.to_string(), None), None, at(10 + number)).expect("written");
    }
    assert_eq!(store.find(&stranger, "old").expect("read"), None);
    assert_eq!(store.find(&stranger, "0").expect("read"), None);
    let newest = (more - 1).to_string();
    for id in ["continued", newest.as_str()] {
        assert!(store.find(&stranger, id).expect("read").is_some(), "{id}");
    }
    assert!(store.find(&owner, "owners").expect("read").is_some(), "a caller displaces only its own");
}

#[test]
fn what_is_old_or_large_makes_room() {
    let owner = ResponseOwner::stranger();
    let limits = StoredLimits::of(&owner);
    let later = limits.age.as_secs() + 100;
    let aged = store();
    aged.save(&owner, &response("old", None), None, at(1)).expect("written");
    for number in 0..PRUNE_EVERY {
        aged.save(&owner, &response(&number.to_string(), None), None, at(later)).expect("written");
    }
    assert_eq!(aged.find(&owner, "old").expect("read"), None);

    let large = store();
    let body = "x".repeat(limits.response_bytes / PRUNE_EVERY as usize);
    for number in 0..2 * PRUNE_EVERY + 1 {
        let response = StoredResponse { body: body.clone(), ..response(&number.to_string(), None) };
        large.save(&owner, &response, None, at(1 + number)).expect("written");
    }
    assert_eq!(large.find(&owner, "0").expect("read"), None);
    assert!(large.find(&owner, &(2 * PRUNE_EVERY).to_string()).expect("read").is_some());
}

#[test]
fn a_response_that_was_deleted_while_it_was_written_stays_deleted() {
    let store = store();
    let owner = ResponseOwner::owner();
    let lease = Some(Moment::of(at(60)));
    let running = StoredResponse { lease, ..response("a", None) };
    store.save(&owner, &running, None, at(1)).expect("written");
    store.renew(&owner, "a", Moment::of(at(90))).expect("written");
    let renewed = StoredResponse { lease: Some(Moment::of(at(90))), ..running };
    assert_eq!(store.find(&owner, "a").expect("read"), Some(renewed));
    assert!(store.update(&owner, &response("a", None), None, at(2)).expect("written"));
    store.renew(&owner, "a", Moment::of(at(120))).expect("written");
    assert_eq!(
        store.find(&owner, "a").expect("read"),
        Some(response("a", None)),
        "a finished one has no lease"
    );
    store.delete(&owner, "a").expect("written");
    assert!(!store.update(&owner, &response("a", None), None, at(3)).expect("written"));
    assert_eq!(store.find(&owner, "a").expect("read"), None);
}

#[test]
fn a_conversation_has_its_items_in_order() {
    let store = store();
    let owner = ResponseOwner::owner();
    store.create_conversation(&owner, &conversation("c", 7)).expect("written");
    assert!(store.set_metadata(&owner, "c", "{\"a\":\"b\"}").expect("written"));
    let expected = StoredConversation { metadata: "{\"a\":\"b\"}".into(), ..conversation("c", 7) };
    assert_eq!(store.conversation(&owner, "c").expect("read"), Some(expected));
    store.append(&owner, &append("c", vec![item("1"), item("2")]), at(8)).expect("written");
    store
        .save(&owner, &response("r", None), Some(&append("c", vec![item("3"), item("4")])), at(9))
        .expect("written");
    assert!(store.delete_item(&owner, "c", "2").expect("written"));
    assert!(!store.delete_item(&owner, "c", "2").expect("written"));
    let items = store.items(&owner, "c", at(10)).expect("read");
    assert_eq!(items, Some(vec![item("1"), item("3"), item("4")]));
    assert!(store.delete_conversation(&owner, "c").expect("written"));
    assert_eq!(store.items(&owner, "c", at(10)).expect("read"), None);
    assert_eq!(store.conversation(&owner, "c").expect("read"), None);
}

#[test]
fn a_conversation_takes_so_many_items_and_bytes() {
    let store = store();
    let owner = ResponseOwner::owner();
    for id in ["many", "large"] {
        store.create_conversation(&owner, &conversation(id, 1)).expect("written");
    }
    let most: Vec<_> = (0..MAX_CONVERSATION_ITEMS).map(|number| item(&number.to_string())).collect();
    assert_eq!(store.append(&owner, &append("many", most), at(1)).expect("written"), Appended::Yes);
    let one_more = append("many", vec![item("x")]);
    assert_eq!(store.append(&owner, &one_more, at(1)).expect("written"), Appended::Full);
    store.delete_item(&owner, "many", "0").expect("written");
    assert_eq!(store.append(&owner, &one_more, at(1)).expect("written"), Appended::Yes);

    let large = ConversationItem { id: "x".into(), item: "x".repeat(MAX_CONVERSATION_BYTES) };
    assert_eq!(store.append(&owner, &append("large", vec![large]), at(1)).expect("written"), Appended::Yes);
    let one_more = append("large", vec![item("y")]);
    assert_eq!(store.append(&owner, &one_more, at(1)).expect("written"), Appended::Full);
}

#[test]
fn old_conversations_make_room() {
    let store = store();
    let owner = ResponseOwner::stranger();
    let limits = StoredLimits::of(&owner);
    for number in 0..=limits.conversations as u64 {
        store.create_conversation(&owner, &conversation(&number.to_string(), number)).expect("written");
    }
    assert_eq!(store.conversation(&owner, "0").expect("read"), None);
    assert!(store.conversation(&owner, "1").expect("read").is_some());
    let later = limits.age.as_secs() + 10_000;
    store.create_conversation(&owner, &conversation("new", later)).expect("written");
    assert_eq!(store.conversation(&owner, "1").expect("read"), None);
}
