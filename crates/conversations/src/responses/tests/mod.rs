//! Stored responses: found again by their owner alone, continued, deleted, and kept within the limits.

mod buffered;
mod processes;

use std::ops::Deref;
use std::time::{Duration, SystemTime};

use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase, on_both_databases};

use super::limits::{MAX_CHAIN, MAX_CONVERSATION_BYTES, MAX_CONVERSATION_ITEMS, StoredLimits};
use super::prune::PRUNE_EVERY;
use super::*;
use crate::{MIGRATIONS, POSTGRES_MIGRATIONS};
use processes::{
    a_background_response_is_renewed_cancelled_and_ended_by_any_process,
    a_full_conversation_is_full_for_all_processes, an_id_is_taken_once_by_several_processes,
    chains_and_limits_of_several_processes_do_not_block_each_other,
    several_processes_add_to_a_conversation_without_gaps_or_doubles,
};

/// A database, and what opens it once more, as another process does.
struct TestResponses {
    store: Arc<dyn ResponseStore>,
    open: Box<dyn Fn() -> Arc<dyn ResponseStore>>,
    _database: Option<TestDatabase>,
}

impl Deref for TestResponses {
    type Target = dyn ResponseStore;

    fn deref(&self) -> &Self::Target {
        &*self.store
    }
}

type NewResponses = fn() -> TestResponses;

fn sqlite() -> TestResponses {
    let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
    let open = move || -> Arc<dyn ResponseStore> { Arc::new(SqliteResponseStore::new(database.clone())) };
    TestResponses { store: open(), open: Box::new(open), _database: None }
}

fn postgres() -> TestResponses {
    let database = PostgresServer::shared().create_database();
    let url = database.url();
    let open = move || -> Arc<dyn ResponseStore> {
        let options = url.parse().expect("a URL");
        let database = PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("opened");
        Arc::new(PostgresResponseStore::new(database))
    };
    TestResponses { store: open(), open: Box::new(open), _database: Some(database) }
}

fn store() -> SqliteResponseStore {
    SqliteResponseStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened"))
}

on_both_databases!(sqlite, postgres:
    what_belongs_to_one_caller_is_not_there_for_another,
    a_chain_is_complete_or_says_what_is_missing,
    a_chain_has_a_length_even_if_it_is_a_circle,
    what_was_not_used_for_the_longest_time_makes_room,
    what_is_old_or_large_makes_room,
    a_response_that_was_deleted_while_it_was_written_stays_deleted,
    a_lease_lasts_by_the_clock_of_the_database,
    a_conversation_has_its_items_in_order,
    a_conversation_takes_so_many_items_and_bytes,
    an_id_is_in_a_conversation_once,
    a_stranger_displaces_its_own_before_those_of_others,
    large_responses_make_room_before_they_are_many,
    old_conversations_make_room,
    several_processes_add_to_a_conversation_without_gaps_or_doubles,
    an_id_is_taken_once_by_several_processes,
    a_full_conversation_is_full_for_all_processes,
    a_background_response_is_renewed_cancelled_and_ended_by_any_process,
    chains_and_limits_of_several_processes_do_not_block_each_other,
    any_character_of_a_response_is_found_again,
);

fn stranger() -> ResponseOwner {
    ResponseOwner::stranger("192.0.2.1")
}

fn all(items: &[&str]) -> FoundItems {
    FoundItems::Items { items: items.iter().map(|id| item(id)).collect(), has_more: false }
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

fn what_belongs_to_one_caller_is_not_there_for_another(new: NewResponses) {
    let store = new();
    let callers = [ResponseOwner::owner(), stranger(), ResponseOwner::stranger("192.0.2.2")];
    for (index, owner) in callers.iter().enumerate() {
        let stranger = &callers[(index + 1) % callers.len()];
        let (id, chat) = (format!("r{index}"), format!("c{index}"));
        store.save(owner, &response(&id, None), None, at(1)).expect("written");
        store.create_conversation(owner, &conversation(&chat, 1)).expect("written");
        assert_eq!(store.find(stranger, &id).expect("read"), None);
        assert_eq!(store.chain(stranger, &id, at(2)).expect("read"), ResponseChain::Missing(id.clone()));
        assert_eq!(store.update(stranger, &response(&id, None), None, at(2)).expect("written"), None);
        assert!(!store.renew(stranger, &id).expect("written"));
        assert!(!store.delete(stranger, &id).expect("written"));
        assert_eq!(store.conversation(stranger, &chat).expect("read"), None);
        assert_eq!(
            store.items(stranger, &chat, &ItemPage::ALL, at(2)).expect("read"),
            FoundItems::NoSuchConversation
        );
        let items = append(&chat, vec![item("i")]);
        assert_eq!(store.append(stranger, &items, at(2)).expect("written"), Appended::NoSuchConversation);
        assert!(!store.set_metadata(stranger, &chat, "{\"a\":\"b\"}").expect("written"));
        let added = store.save(stranger, &response("other", None), Some(&items), at(2)).expect("written");
        assert_eq!(added, Appended::NoSuchConversation);
        assert_eq!(store.items(owner, &chat, &ItemPage::ALL, at(3)).expect("read"), all(&[]));
        assert_eq!(store.append(owner, &items, at(3)).expect("written"), Appended::Yes);
        assert_eq!(store.item(stranger, &chat, "i").expect("read"), None);
        assert_eq!(store.item(owner, &chat, "i").expect("read"), Some(item("i")));
        assert!(!store.delete_item(stranger, &chat, "i").expect("written"));
        assert!(!store.delete_conversation(stranger, &chat).expect("written"));
        assert_eq!(store.find(owner, &id).expect("read"), Some(response(&id, None)));
        assert_eq!(store.items(owner, &chat, &ItemPage::ALL, at(3)).expect("read"), all(&["i"]));
    }
}

fn a_chain_is_complete_or_says_what_is_missing(new: NewResponses) {
    let store = new();
    let owner = ResponseOwner::owner();
    let all = [response("a", None), response("b", Some("a")), response("c", Some("b"))];
    for response in &all {
        store.save(&owner, response, None, at(1)).expect("written");
    }
    assert_eq!(store.chain(&owner, "c", at(2)).expect("read"), ResponseChain::Whole(all.to_vec()));
    store.delete(&owner, "a").expect("written");
    assert_eq!(store.chain(&owner, "c", at(2)).expect("read"), ResponseChain::Missing("a".into()));
}

fn a_chain_has_a_length_even_if_it_is_a_circle(new: NewResponses) {
    let store = new();
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

fn what_was_not_used_for_the_longest_time_makes_room(new: NewResponses) {
    let store = new();
    let stranger = stranger();
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

fn what_is_old_or_large_makes_room(new: NewResponses) {
    let owner = stranger();
    let limits = StoredLimits::of(&owner);
    let later = limits.age.as_secs() + 100;
    let aged = new();
    aged.save(&owner, &response("old", None), None, at(1)).expect("written");
    for number in 0..PRUNE_EVERY {
        aged.save(&owner, &response(&number.to_string(), None), None, at(later)).expect("written");
    }
    assert_eq!(aged.find(&owner, "old").expect("read"), None);

    let large = new();
    let body = "x".repeat(limits.response_bytes / PRUNE_EVERY as usize);
    for number in 0..2 * PRUNE_EVERY + 1 {
        let response = StoredResponse { body: body.clone(), ..response(&number.to_string(), None) };
        large.save(&owner, &response, None, at(1 + number)).expect("written");
    }
    assert_eq!(large.find(&owner, "0").expect("read"), None);
    assert!(large.find(&owner, &(2 * PRUNE_EVERY).to_string()).expect("read").is_some());
}

fn a_response_that_was_deleted_while_it_was_written_stays_deleted(new: NewResponses) {
    let store = new();
    let owner = ResponseOwner::owner();
    let running = StoredResponse { lease: Some(ResponseLease::Held), ..response("a", None) };
    store.save(&owner, &running, None, at(1)).expect("written");
    assert!(store.renew(&owner, "a").expect("written"));
    assert_eq!(store.find(&owner, "a").expect("read"), Some(running));
    let updated = store.update(&owner, &response("a", None), None, at(2)).expect("written");
    assert_eq!(updated, Some(Appended::Yes));
    assert!(!store.renew(&owner, "a").expect("written"));
    let late = StoredResponse { body: "late".into(), ..response("a", None) };
    assert_eq!(store.update(&owner, &late, None, at(2)).expect("written"), None, "it has ended");
    assert_eq!(
        store.find(&owner, "a").expect("read"),
        Some(response("a", None)),
        "a finished one has no lease"
    );
    store.delete(&owner, "a").expect("written");
    assert_eq!(store.update(&owner, &response("a", None), None, at(3)).expect("written"), None);
    assert_eq!(store.find(&owner, "a").expect("read"), None);
}

/// The times that the callers pass differ by years.
fn a_lease_lasts_by_the_clock_of_the_database(new: NewResponses) {
    let store = new();
    let owner = ResponseOwner::owner();
    let with = |lease| StoredResponse { lease: Some(lease), ..response("a", None) };
    for lease in [ResponseLease::Held, ResponseLease::Expired, ResponseLease::Held] {
        store.save(&owner, &with(lease), None, at(1)).expect("written");
        assert_eq!(store.find(&owner, "a").expect("read"), Some(with(lease)));
        let chain = store.chain(&owner, "a", at(u64::from(u32::MAX))).expect("read");
        assert_eq!(chain, ResponseChain::Whole(vec![with(lease)]));
    }
    let updated = store.update(&owner, &with(ResponseLease::Expired), None, at(2)).expect("written");
    assert_eq!(updated, Some(Appended::Yes));
    assert_eq!(store.find(&owner, "a").expect("read"), Some(with(ResponseLease::Expired)));
    assert!(store.renew(&owner, "a").expect("written"));
    assert_eq!(store.find(&owner, "a").expect("read"), Some(with(ResponseLease::Held)));
}

fn a_conversation_has_its_items_in_order(new: NewResponses) {
    let store = new();
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
    let items = |after: Option<&str>, limit: usize, order: ItemOrder| {
        let page = ItemPage { after: after.map(str::to_owned), limit, order };
        store.items(&owner, "c", &page, at(10)).expect("read")
    };
    let more = |ids: &[&str]| match all(ids) {
        FoundItems::Items { items, .. } => FoundItems::Items { items, has_more: true },
        other => other,
    };
    let (oldest, newest) = (ItemOrder::OldestFirst, ItemOrder::NewestFirst);
    assert_eq!(store.items(&owner, "c", &ItemPage::ALL, at(10)).expect("read"), all(&["1", "3", "4"]));
    assert_eq!(items(None, 3, newest), all(&["4", "3", "1"]));
    assert_eq!(items(None, 2, oldest), more(&["1", "3"]));
    assert_eq!(items(Some("3"), 2, oldest), all(&["4"]));
    assert_eq!(items(Some("4"), 1, newest), more(&["3"]));
    assert_eq!(items(Some("1"), 1, newest), all(&[]));
    assert_eq!(items(Some("2"), 1, newest), FoundItems::NothingAfter);
    assert!(store.delete_conversation(&owner, "c").expect("written"));
    let gone = store.items(&owner, "c", &ItemPage::ALL, at(10)).expect("read");
    assert_eq!(gone, FoundItems::NoSuchConversation);
    assert_eq!(store.conversation(&owner, "c").expect("read"), None);
}

fn a_conversation_takes_so_many_items_and_bytes(new: NewResponses) {
    let store = new();
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
    let saved = store.save(&owner, &response("r", None), Some(&one_more), at(1)).expect("written");
    assert_eq!(saved, Appended::Full, "a response has no more room than anything else");
    let running = StoredResponse { lease: Some(ResponseLease::Held), ..response("s", None) };
    store.save(&owner, &running, None, at(1)).expect("written");
    let updated = store.update(&owner, &response("s", None), Some(&one_more), at(1)).expect("written");
    assert_eq!(updated, Some(Appended::Full));
    assert!(store.find(&owner, "r").expect("read").is_some(), "the response itself is stored");
}

fn an_id_is_in_a_conversation_once(new: NewResponses) {
    let store = new();
    let owner = ResponseOwner::owner();
    store.create_conversation(&owner, &conversation("c", 1)).expect("written");
    let added =
        |items: Vec<ConversationItem>| store.append(&owner, &append("c", items), at(1)).expect("written");
    assert_eq!(added(vec![item("a"), item("a")]), Appended::IdTaken("a".into()));
    assert_eq!(added(vec![item("a")]), Appended::Yes);
    assert_eq!(added(vec![item("b"), item("a")]), Appended::IdTaken("a".into()));
    assert_eq!(store.items(&owner, "c", &ItemPage::ALL, at(2)).expect("read"), all(&["a"]));
}

fn a_stranger_displaces_its_own_before_those_of_others(new: NewResponses) {
    let store = new();
    let (loud, quiet) = (stranger(), ResponseOwner::stranger("192.0.2.2"));
    let limits = StoredLimits::of(&loud);
    store.save(&quiet, &response("quiet", None), None, at(1)).expect("written");
    store.create_conversation(&quiet, &conversation("quiet", 1)).expect("written");
    let more = StoredLimits::of_all_like(&loud).responses as u64 * 2;
    for number in 0..more {
        store.save(&loud, &response(&number.to_string(), None), None, at(2 + number)).expect("written");
    }
    for number in 0..=limits.conversations as u64 + PRUNE_EVERY {
        store.create_conversation(&loud, &conversation(&number.to_string(), 2 + number)).expect("written");
    }
    assert_eq!(store.find(&loud, "0").expect("read"), None);
    assert_eq!(store.conversation(&loud, "0").expect("read"), None);
    assert!(store.find(&quiet, "quiet").expect("read").is_some());
    assert!(store.conversation(&quiet, "quiet").expect("read").is_some());
    // All of them together have a limit too, however many addresses they have.
    for number in 0..StoredLimits::of_all_like(&loud).responses as u64 + PRUNE_EVERY {
        let one = ResponseOwner::stranger(&format!("address {number}"));
        store
            .save(&one, &response(&format!("one {number}"), None), None, at(10_000 + number))
            .expect("written");
    }
    assert_eq!(store.find(&quiet, "quiet").expect("read"), None);
}

fn large_responses_make_room_before_they_are_many(new: NewResponses) {
    let store = new();
    let stranger = stranger();
    let limits = StoredLimits::of(&stranger);
    let large = |number: u64| StoredResponse {
        body: "x".repeat(limits.response_bytes),
        ..response(&number.to_string(), None)
    };
    // Fewer than those after which the limits are looked at anyway.
    let most = PRUNE_EVERY / 8;
    for number in 0..most {
        store.save(&stranger, &large(number), None, at(1 + number)).expect("written");
    }
    let stored =
        (0..most).filter(|number| store.find(&stranger, &number.to_string()).expect("read").is_some());
    assert!(stored.count() <= 2, "they were counted");
    // Those in the background are small until they have their output.
    let store = new();
    for number in 0..most {
        let begun =
            StoredResponse { lease: Some(ResponseLease::Held), ..response(&number.to_string(), None) };
        store.save(&stranger, &begun, None, at(1 + number)).expect("written");
        store.update(&stranger, &large(number), None, at(1 + number)).expect("written");
    }
    let stored =
        (0..most).filter(|number| store.find(&stranger, &number.to_string()).expect("read").is_some());
    assert!(stored.count() <= 2, "their output was counted");
}

fn old_conversations_make_room(new: NewResponses) {
    let store = new();
    let owner = stranger();
    let limits = StoredLimits::of(&owner);
    let more = limits.conversations as u64 + PRUNE_EVERY;
    for number in 0..=more {
        store.create_conversation(&owner, &conversation(&number.to_string(), number)).expect("written");
    }
    let newest = more.to_string();
    assert_eq!(store.conversation(&owner, "0").expect("read"), None);
    assert!(store.conversation(&owner, &newest).expect("read").is_some());
    let later = limits.age.as_secs() + 10_000;
    for number in 0..PRUNE_EVERY {
        store.create_conversation(&owner, &conversation(&format!("new {number}"), later)).expect("written");
    }
    assert_eq!(store.conversation(&owner, &newest).expect("read"), None);
}

fn any_character_of_a_response_is_found_again(new: NewResponses) {
    let store = new();
    let owner = ResponseOwner::stranger("\0");
    let odd = "\0 \u{1a} \u{1a}0 ü";
    let response = StoredResponse {
        id: odd.into(),
        previous: Some(odd.into()),
        body: format!("{{\"text\":\"{odd}\\u0000\"}}"),
        input: odd.into(),
        lease: None,
    };
    store.save(&owner, &response, None, at(1)).expect("written");
    assert_eq!(store.find(&owner, odd).expect("read"), Some(response));
    let conversation =
        StoredConversation { id: odd.into(), created: Moment::of(at(1)), metadata: odd.into() };
    store.create_conversation(&owner, &conversation).expect("written");
    assert_eq!(store.conversation(&owner, odd).expect("read"), Some(conversation));
    let added = ConversationItem { id: odd.into(), item: odd.into() };
    store.append(&owner, &append(odd, vec![added.clone()]), at(1)).expect("written");
    assert_eq!(store.item(&owner, odd, odd).expect("read"), Some(added));
    assert!(store.delete_item(&owner, odd, odd).expect("written"));
    assert!(store.delete(&owner, odd).expect("written"));
    assert_eq!(store.find(&owner, "%00\0").expect("read"), None, "an id that cannot exist is not an error");
}
