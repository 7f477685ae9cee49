//! Responses that wait to be written.

use super::*;

fn buffered() -> BufferedResponseStore {
    BufferedResponseStore::new(store())
}

#[test]
fn a_response_that_waits_is_found_continued_and_deleted() {
    let store = buffered();
    let owner = ResponseOwner::owner();
    store.save_soon(&owner, response("a", None), at(1)).expect("taken");
    assert_eq!(store.find(&owner, "a").expect("read"), Some(response("a", None)));
    assert_eq!(store.find(&stranger(), "a").expect("read"), None);
    store.save_soon(&owner, response("b", Some("a")), at(2)).expect("taken");
    let chain = ResponseChain::Whole(vec![response("a", None), response("b", Some("a"))]);
    assert_eq!(store.chain(&owner, "b", at(3)).expect("read"), chain);
    store.save_soon(&owner, response("c", None), at(4)).expect("taken");
    assert!(store.delete(&owner, "c").expect("written"));
    store.flush().expect("written");
    assert_eq!(store.find(&owner, "c").expect("read"), None);
}

#[test]
fn what_waits_is_written_when_the_store_is_closed_or_flushed() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    let open = || SqliteResponseStore::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
    let owner = ResponseOwner::owner();
    let closed = BufferedResponseStore::new(open());
    closed.save_soon(&owner, response("a", None), at(1)).expect("taken");
    drop(closed);
    assert_eq!(open().find(&owner, "a").expect("read"), Some(response("a", None)));
    let flushed = BufferedResponseStore::new(open());
    flushed.save_soon(&owner, response("b", None), at(1)).expect("taken");
    flushed.flush().expect("written");
    assert_eq!(open().find(&owner, "b").expect("read"), Some(response("b", None)));
}

#[test]
fn a_database_that_cannot_be_written_gets_what_waits_when_it_can() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    std::fs::create_dir(&path).expect("made");
    let store =
        BufferedResponseStore::new(SqliteResponseStore::new(hob_db::LazyDatabase::at(&path, &[MIGRATIONS])));
    let owner = ResponseOwner::owner();
    store.save_soon(&owner, response("a", None), at(1)).expect("taken");
    assert!(store.flush().is_err());
    assert_eq!(store.find(&owner, "a").expect("read"), Some(response("a", None)));
    std::fs::remove_dir(&path).expect("removed");
    store.flush().expect("written");
    drop(store);
    let reopened = SqliteResponseStore::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
    assert_eq!(reopened.find(&owner, "a").expect("read"), Some(response("a", None)));
}

#[test]
fn so_many_responses_wait_and_no_more() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    std::fs::create_dir(&path).expect("made");
    let store =
        BufferedResponseStore::new(SqliteResponseStore::new(hob_db::LazyDatabase::at(&path, &[MIGRATIONS])));
    let owner = ResponseOwner::owner();
    let large = StoredResponse { body: "x".repeat(17 << 20), ..response("large", None) };
    assert_eq!(store.save_soon(&owner, large.clone(), at(1)), Err(large));
    let taken = (0..2_000)
        .take_while(|number| store.save_soon(&owner, response(&number.to_string(), None), at(1)).is_ok());
    assert_eq!(taken.count(), 1_024);
}
