//! Several processes that write at once.

use std::thread;

use super::*;

/// Runs `work` for each process at once, with its number and a store of its own.
fn at_once<T: Send>(
    store: &TestResponses,
    processes: usize,
    work: impl Fn(usize, &dyn ResponseStore) -> T + Sync,
) -> Vec<T> {
    let stores: Vec<_> = (0..processes).map(|_| (store.open)()).collect();
    thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(process, store)| scope.spawn(move || work(process, &**store)))
            .collect();
        running.into_iter().map(|one| one.join().expect("no panic")).collect()
    })
}

fn ids(store: &dyn ResponseStore, conversation: &str) -> Vec<String> {
    match store.items(&ResponseOwner::owner(), conversation, &ItemPage::ALL, at(9)).expect("read") {
        FoundItems::Items { items, .. } => items.into_iter().map(|item| item.id).collect(),
        other => panic!("{other:?}"),
    }
}

pub(super) fn several_processes_add_to_a_conversation_without_gaps_or_doubles(new: NewResponses) {
    let store = new();
    let owner = ResponseOwner::owner();
    store.create_conversation(&owner, &conversation("c", 1)).expect("written");
    let rounds = 20;
    at_once(&store, 4, |process, store| {
        for round in 0..rounds {
            let items = ["call", "output"].map(|kind| item(&format!("{process} {round} {kind}")));
            let added = store.append(&owner, &append("c", items.to_vec()), at(2)).expect("written");
            assert_eq!(added, Appended::Yes);
        }
    });
    let ids = ids(&*store, "c");
    assert_eq!(ids.len(), 4 * rounds * 2);
    for pair in ids.chunks(2) {
        assert_eq!(pair[0].strip_suffix("call"), pair[1].strip_suffix("output"), "nothing comes between");
    }
}

pub(super) fn an_id_is_taken_once_by_several_processes(new: NewResponses) {
    let store = new();
    let owner = ResponseOwner::owner();
    store.create_conversation(&owner, &conversation("c", 1)).expect("written");
    for round in 0..10 {
        let id = round.to_string();
        let mut outcomes = at_once(&store, 4, |process, store| {
            let items = vec![item(&format!("{id} of {process}")), item(&id)];
            store.append(&owner, &append("c", items), at(2)).expect("written")
        });
        outcomes.sort_by_key(|outcome| *outcome != Appended::Yes);
        let taken = Appended::IdTaken(id.clone());
        assert_eq!(outcomes, [Appended::Yes, taken.clone(), taken.clone(), taken]);
    }
    assert_eq!(ids(&*store, "c").len(), 20, "of those that came too late, nothing was added");
}

pub(super) fn a_full_conversation_is_full_for_all_processes(new: NewResponses) {
    let store = new();
    let owner = ResponseOwner::owner();
    store.create_conversation(&owner, &conversation("c", 1)).expect("written");
    let most: Vec<_> = (0..MAX_CONVERSATION_ITEMS - 2).map(|number| item(&number.to_string())).collect();
    assert_eq!(store.append(&owner, &append("c", most), at(1)).expect("written"), Appended::Yes);
    let mut outcomes = at_once(&store, 4, |process, store| {
        store.append(&owner, &append("c", vec![item(&format!("x{process}"))]), at(2)).expect("written")
    });
    outcomes.sort_by_key(|outcome| *outcome != Appended::Yes);
    assert_eq!(outcomes, [Appended::Yes, Appended::Yes, Appended::Full, Appended::Full]);
}

pub(super) fn a_background_response_is_renewed_cancelled_and_ended_by_any_process(new: NewResponses) {
    let store = new();
    let owner = ResponseOwner::owner();
    let other = (store.open)();
    let running = StoredResponse { lease: Some(ResponseLease::Held), ..response("a", None) };
    store.save(&owner, &running, None, at(1)).expect("written");
    assert_eq!(other.find(&owner, "a").expect("read"), Some(running.clone()), "found at once");
    assert!(other.renew(&owner, "a").expect("written"));
    let cancelled = StoredResponse { body: "cancelled".into(), ..response("a", None) };
    assert_eq!(other.update(&owner, &cancelled, None, at(2)).expect("written"), Some(Appended::Yes));
    assert!(!store.renew(&owner, "a").expect("written"), "it ended elsewhere");
    assert_eq!(store.update(&owner, &response("a", None), None, at(3)).expect("written"), None);
    assert_eq!(store.find(&owner, "a").expect("read"), Some(cancelled));

    store.save(&owner, &StoredResponse { id: "b".into(), ..running }, None, at(4)).expect("written");
    let ended = at_once(&store, 4, |process, store| {
        let body = process.to_string();
        store.update(&owner, &StoredResponse { body, ..response("b", None) }, None, at(5)).expect("written")
    });
    assert_eq!(ended.iter().filter(|ended| ended.is_some()).count(), 1, "it ends once");
}

pub(super) fn chains_and_limits_of_several_processes_do_not_block_each_other(new: NewResponses) {
    let store = new();
    let stranger = stranger();
    let most = StoredLimits::of(&stranger).responses;
    store.save(&stranger, &response("first", None), None, at(1)).expect("written");
    at_once(&store, 4, |process, store| {
        let mut previous = "first".to_owned();
        for round in 0..most / 2 {
            let id = format!("{process} {round}");
            store
                .save(&stranger, &response(&id, Some(&previous)), None, at(2 + round as u64))
                .expect("written");
            let chain = store.chain(&stranger, &id, at(2 + round as u64)).expect("read");
            assert_ne!(chain, ResponseChain::TooLong);
            previous = id;
        }
    });
    let stored = (0..4).flat_map(|process| (0..most / 2).map(move |round| format!("{process} {round}")));
    let stored = stored.filter(|id| store.find(&stranger, id).expect("read").is_some()).count();
    assert!(stored <= most + 4 * PRUNE_EVERY as usize, "{stored}");
}
