//! Every store of keys passes these tests.

use std::sync::{Arc, Barrier};
use std::thread;

use hob_db::postgres::PostgresDatabase;
use hob_db::{Database, DatabaseError, Storage};
use hob_testkit::{PostgresServer, TestDatabase};
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::audit::{AuditActor, AuditFault};
use crate::audit_service::AuditService;
use crate::key::{KeyRole, KeyRules, KeyStatus};
use crate::limits::Budget;
use crate::secret::KeySecret;

/// A store of its own for one test.
struct TestStore {
    storage: Storage,
    store: Arc<dyn KeyStore>,
    /// Dropped after the store.
    database: Option<TestDatabase>,
}

impl TestStore {
    /// The store as another server has it: with its own connections, where there are any.
    fn of_another_server(&self) -> Arc<dyn KeyStore> {
        match &self.database {
            Some(database) => key_store(open_postgres(&database.url())),
            None => Arc::clone(&self.store),
        }
    }

    /// Runs SQL, as a person with access to the database can.
    fn run(&self, sql: &str) -> Result<(), DatabaseError> {
        match &self.storage {
            Storage::Sqlite(database) => database.open()?.write(|transaction| transaction.execute_batch(sql)),
            Storage::Postgres(database) => database.write(|transaction| transaction.run_script(sql)),
        }
    }
}

impl std::ops::Deref for TestStore {
    type Target = dyn KeyStore;

    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

type NewStore = fn() -> TestStore;

fn sqlite() -> TestStore {
    let storage = Storage::from(Database::in_memory(&[MIGRATIONS]).expect("opened"));
    TestStore { store: key_store(storage.clone()), storage, database: None }
}

fn postgres() -> TestStore {
    let database = PostgresServer::shared().create_database();
    let storage = Storage::from(open_postgres(&database.url()));
    TestStore { store: key_store(storage.clone()), storage, database: Some(database) }
}

pub(crate) fn open_postgres(url: &str) -> PostgresDatabase {
    PostgresDatabase::new(url.parse().expect("a URL"), &[POSTGRES_MIGRATIONS]).expect("made")
}

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_key_is_read_as_it_was_written,
    a_change_is_made_whole_or_not_at_all_and_is_counted,
    a_change_of_another_server_is_noticed,
    leases_never_add_up_to_more_than_the_limit,
    leases_of_several_servers_at_once_never_add_up_to_more_than_the_limit,
    amounts_beyond_every_limit_are_counted,
    windows_that_are_over_are_forgotten_by_their_period,
    an_unbroken_log_is_verified_and_read_in_order,
    changes_of_several_servers_at_once_are_one_unbroken_log,
    every_text_of_an_entry_is_kept,
    a_changed_removed_or_inserted_entry_breaks_the_chain,
    entries_of_the_log_are_never_changed_or_deleted,
);

fn noon() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().expect("a moment")
}

fn name(text: &str) -> KeyName {
    KeyName::parse(text).expect("a name")
}

pub(crate) fn key(id: &str, text: &str) -> StoredKey {
    let rules = KeyRules {
        models: Some(vec!["qwen*".into(), "auto".into()]),
        budgets: vec![Budget::parse("5 USD/month").expect("a budget")],
        parallel: Some(4),
        ..KeyRules::of(KeyRole::Member)
    };
    StoredKey {
        key: ApiKey {
            id: id.into(),
            name: name(text),
            role: KeyRole::Member,
            status: KeyStatus::Active,
            rules,
            created_at: noon(),
            expires_at: Some(noon()),
            previous_until: None,
        },
        hash: KeySecret::new(id).hash(),
        previous_hash: None,
    }
}

pub(crate) fn event(action: &str) -> AuditEvent {
    let actor = AuditActor { name: "owner".into(), origin: "127.0.0.1".into() };
    AuditEvent::new(noon(), actor, action, "ana", &json!({ "role": "member" }))
}

pub(crate) fn window(key: &str, start: i64) -> QuotaWindow {
    QuotaWindow { key: key.into(), quota: "tokens/day", window: start }
}

fn a_key_is_read_as_it_was_written(new: NewStore) {
    let store = new();
    let (ana, ben) = (key("1", "ana"), key("2", "Ben"));
    assert!(store.insert(&ana, &event("key.create")).expect("created"));
    assert!(store.insert(&ben, &event("key.create")).expect("created"));
    assert!(!store.insert(&key("3", "ana"), &event("key.create")).expect("looked"), "the name is taken");
    assert_eq!(store.list().expect("read"), [ben, ana.clone()], "by name");
    assert_eq!(store.get(&name("ana")).expect("read"), Some(ana));
    assert_eq!(store.get(&name("unknown")).expect("read"), None);
    assert_eq!(
        store.audit_after(0, 10).expect("read").len(),
        2,
        "a key that was not created is not in the log"
    );
}

fn a_change_is_made_whole_or_not_at_all_and_is_counted(new: NewStore) {
    let store = new();
    store.insert(&key("1", "ana"), &event("key.create")).expect("created");
    let before = store.changes().expect("read");
    let rotated = KeySecret::new("1").hash();
    let mut rotate = |stored: &mut StoredKey| {
        stored.previous_hash = Some(std::mem::replace(&mut stored.hash, rotated));
        stored.key.status = KeyStatus::Disabled;
        stored.key.previous_until = Some(noon());
        Ok(())
    };
    let changed = store.change(&name("ana"), &mut rotate, &event("key.rotate")).expect("changed");
    assert_eq!((changed.key.status, changed.hash), (KeyStatus::Disabled, rotated));
    assert_eq!(store.get(&name("ana")).expect("read"), Some(changed.clone()));
    let counted = store.changes().expect("read");
    assert!(counted > before);
    let mut refuse = |stored: &mut StoredKey| {
        stored.key.status = KeyStatus::Active;
        Err(KeyError::Revoked { name: "ana".into() })
    };
    let refused = store.change(&name("ana"), &mut refuse, &event("key.enable"));
    assert!(matches!(refused, Err(KeyError::Revoked { .. })));
    let missing = store.change(&name("unknown"), &mut |_| Ok(()), &event("key.enable"));
    assert!(matches!(missing, Err(KeyError::NoSuchKey { .. })));
    assert_eq!(store.get(&name("ana")).expect("read"), Some(changed));
    assert_eq!(store.changes().expect("read"), counted);
    let entries = store.audit_after(0, 10).expect("read");
    let actions: Vec<String> = entries.into_iter().map(|entry| entry.event.action).collect();
    assert_eq!(actions, ["key.create", "key.rotate"]);
}

/// Private databases have no other server, and so no watch.
fn a_change_of_another_server_is_noticed(new: NewStore) {
    let store = new();
    let before = store.changes().expect("read");
    let watch = store.watch().expect("watched");
    assert_eq!(watch.is_some(), store.is_shared());
    if let Some(mut watch) = watch {
        while watch.has_changed().expect("looked") {
            thread::yield_now();
        }
        store.of_another_server().insert(&key("1", "ana"), &event("key.create")).expect("created");
        while !watch.has_changed().expect("looked") {
            thread::yield_now();
        }
        assert!(store.changes().expect("read") > before);
    }
}

fn leases_never_add_up_to_more_than_the_limit(new: NewStore) {
    let store = new();
    store.insert(&key("1", "ana"), &event("key.create")).expect("created");
    let day = window("1", 0);
    let lease = |wanted| store.lease(&day, wanted, 1_600).expect("asked");
    assert_eq!(lease(10), Lease { granted: 100, taken: 100 }, "a share");
    assert_eq!(lease(500), Lease { granted: 500, taken: 600 });
    assert_eq!(lease(1_001), Lease { granted: 0, taken: 600 });
    assert_eq!(lease(1_000), Lease { granted: 1_000, taken: 1_600 });
    assert_eq!(lease(1), Lease { granted: 0, taken: 1_600 });
    store.give_back(&day, 50).expect("given back");
    assert_eq!(lease(1), Lease { granted: 3, taken: 1_553 });
    store.charge(&day, 100).expect("charged");
    assert_eq!(store.taken(&day).expect("read"), 1_653, "an overdraft counts");
    assert_eq!(store.taken(&window("1", 86_400)).expect("read"), 0, "another window");
    store.give_back(&day, 9_999).expect("given back");
    assert_eq!(store.taken(&day).expect("read"), 0, "never less than nothing");
    // An identity from outside is no stored key.
    let identity = window("identity:ana@example.org", 0);
    assert_eq!(store.lease(&identity, 5, 100).expect("asked"), Lease { granted: 6, taken: 6 });
    store.charge(&identity, 1).expect("charged");
    assert_eq!(store.taken(&identity).expect("read"), 7);
}

fn leases_of_several_servers_at_once_never_add_up_to_more_than_the_limit(new: NewStore) {
    let store = new();
    store.insert(&key("1", "ana"), &event("key.create")).expect("created");
    let servers = [store.of_another_server(), store.of_another_server(), store.of_another_server()];
    // Each server asks with two threads, all from the first lease on.
    let ready = Arc::new(Barrier::new(2 * servers.len()));
    let asking = servers.iter().chain(&servers).map(|server| {
        let (server, ready) = (Arc::clone(server), Arc::clone(&ready));
        thread::spawn(move || {
            ready.wait();
            let mut granted = 0;
            loop {
                match server.lease(&window("1", 0), 7, 1_000).expect("asked") {
                    Lease { granted: 0, taken } => return (granted, taken),
                    lease => granted += lease.granted,
                }
            }
        })
    });
    let asking: Vec<_> = asking.collect();
    let ended: Vec<(u64, u64)> = asking.into_iter().map(|thread| thread.join().expect("ended")).collect();
    let granted: u64 = ended.iter().map(|(granted, _)| granted).sum();
    assert_eq!(store.taken(&window("1", 0)).expect("read"), granted);
    assert!((994..=1_000).contains(&granted), "less than one request needs is left: {granted}");
    assert!(ended.iter().all(|(_, taken)| *taken == granted), "{ended:?}");
}

fn amounts_beyond_every_limit_are_counted(new: NewStore) {
    let store = new();
    store.insert(&key("1", "ana"), &event("key.create")).expect("created");
    for _ in 0..2 {
        store.charge(&window("1", 0), u64::MAX).expect("charged");
    }
    assert_eq!(store.taken(&window("1", 0)).expect("read"), i64::MAX.unsigned_abs());
    assert_eq!(store.lease(&window("1", 0), 1, 100).expect("asked").granted, 0);
}

fn windows_that_are_over_are_forgotten_by_their_period(new: NewStore) {
    let store = new();
    store.insert(&key("1", "ana"), &event("key.create")).expect("created");
    let minute = |start| QuotaWindow { quota: "requests/minute", ..window("1", start) };
    for window in [window("1", 0), minute(0), minute(60)] {
        store.charge(&window, 7).expect("charged");
    }
    store.forget_windows(Period::Minute, 60).expect("forgotten");
    let left = [window("1", 0), minute(0), minute(60)].map(|window| store.taken(&window).expect("read"));
    assert_eq!(left, [7, 0, 7]);
    store.forget_windows(Period::Day, 1).expect("forgotten");
    assert_eq!(store.taken(&window("1", 0)).expect("read"), 0);
}

fn an_unbroken_log_is_verified_and_read_in_order(new: NewStore) {
    let store = new();
    for action in ["task.create", "task.delete", "model.pull"] {
        store.append_audit(&event(action)).expect("noted");
    }
    let log = AuditService::new(Arc::clone(&store.store));
    let chain = log.verify().expect("read").expect("unbroken");
    let newest = log.latest(2).expect("read");
    assert_eq!((chain.last, &chain.hash), (3, &newest[0].hash));
    let numbers: Vec<i64> = newest.iter().map(|entry| entry.number).collect();
    assert_eq!(numbers, [3, 2]);
    let mut exported = Vec::new();
    log.export::<DatabaseError>(|entry| {
        exported.push(entry.event.clone());
        Ok(())
    })
    .expect("read");
    assert_eq!(exported, [event("task.create"), event("task.delete"), event("model.pull")]);
}

fn changes_of_several_servers_at_once_are_one_unbroken_log(new: NewStore) {
    let store = new();
    store.insert(&key("0", "shared"), &event("key.create")).expect("created");
    let servers: Vec<_> = (1..=4).map(|server| (server, store.of_another_server())).collect();
    let ready = Arc::new(Barrier::new(servers.len()));
    let working = servers.into_iter().map(|(server, store)| {
        let ready = Arc::clone(&ready);
        thread::spawn(move || {
            ready.wait();
            for round in 0..5 {
                let id = format!("{server}-{round}");
                store.insert(&key(&id, &id), &event("key.create")).expect("created");
                let mut disable = |stored: &mut StoredKey| {
                    stored.key.status = KeyStatus::Disabled;
                    Ok(())
                };
                store.change(&name("shared"), &mut disable, &event("key.disable")).expect("changed");
                store.lease(&window("0", 0), 1, 1_000).expect("asked");
                store.append_audit(&event("task.create")).expect("noted");
            }
        })
    });
    let working: Vec<_> = working.collect();
    for thread in working {
        thread.join().expect("ended");
    }
    let chain = AuditService::new(Arc::clone(&store.store)).verify().expect("read").expect("unbroken");
    assert_eq!(chain.last, 1 + 4 * 5 * 3);
    assert_eq!(store.changes().expect("read"), 1 + 4 * 5 * 2);
    assert_eq!(store.list().expect("read").len(), 1 + 4 * 5);
}

fn every_text_of_an_entry_is_kept(new: NewStore) {
    let store = new();
    let odd = AuditEvent { subject: "a\0b \u{1a}0 ü 🦀".to_owned(), ..event("model.delete") };
    let noted = store.append_audit(&odd).expect("noted");
    assert_eq!(noted.event, odd);
    assert_eq!(store.latest_audit(1).expect("read"), [noted]);
    let log = AuditService::new(Arc::clone(&store.store));
    assert_eq!(log.verify().expect("read").expect("unbroken").last, 1);
}

fn a_changed_removed_or_inserted_entry_breaks_the_chain(new: NewStore) {
    let broken = |sql: &str| {
        let store = new();
        for action in ["a", "b", "c", "d"] {
            store.append_audit(&event(action)).expect("noted");
        }
        let unprotected = match &store.storage {
            Storage::Sqlite(_) => "DROP TRIGGER audit_entry_no_update; DROP TRIGGER audit_entry_no_delete",
            Storage::Postgres(_) => "DROP TRIGGER audit_entry_append_only ON audit_entry",
        };
        store.run(unprotected).expect("unprotected");
        store.run(sql).expect("tampered");
        AuditService::new(Arc::clone(&store.store)).verify().expect("read").expect_err("broken")
    };
    assert_eq!(
        broken("UPDATE audit_entry SET actor = 'eve' WHERE number = 2"),
        AuditFault::Changed { number: 2 }
    );
    assert_eq!(broken("DELETE FROM audit_entry WHERE number = 2"), AuditFault::Gap { number: 3 });
    let renumbered = "DELETE FROM audit_entry WHERE number = 2; UPDATE audit_entry SET number = number - 1 WHERE number > 2";
    assert_eq!(broken(renumbered), AuditFault::Unlinked { number: 2 });
    assert_eq!(
        broken("UPDATE audit_entry SET hash = '00' WHERE number = 1"),
        AuditFault::Changed { number: 1 }
    );
}

fn entries_of_the_log_are_never_changed_or_deleted(new: NewStore) {
    let store = new();
    store.append_audit(&event("key.create")).expect("noted");
    for sql in ["UPDATE audit_entry SET actor = 'eve'", "DELETE FROM audit_entry"] {
        assert!(store.run(sql).is_err(), "{sql}");
    }
    assert_eq!(store.audit_after(0, 10).expect("read").len(), 1);
}
