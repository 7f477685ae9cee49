//! Every store of keys passes these tests. `stores` lists them.

use std::sync::Arc;

use hob_db::Database;
use jiff::Timestamp;
use serde_json::json;

use super::*;
use crate::audit::{AuditActor, AuditFault};
use crate::audit_service::AuditService;
use crate::key::{KeyRole, KeyRules, KeyStatus};
use crate::limits::Budget;
use crate::secret::KeySecret;

/// A fresh store of each kind.
fn stores() -> Vec<(&'static str, Arc<dyn KeyStore>)> {
    let sqlite = SqliteKeyStore::new(Database::in_memory(&[MIGRATIONS]).expect("opened"));
    vec![("sqlite", Arc::new(sqlite))]
}

fn noon() -> Timestamp {
    "2026-11-16T12:00:00Z".parse().expect("a moment")
}

fn name(text: &str) -> KeyName {
    KeyName::parse(text).expect("a name")
}

fn key(id: &str, text: &str) -> StoredKey {
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

fn event(action: &str) -> AuditEvent {
    let actor = AuditActor { name: "owner".into(), origin: "127.0.0.1".into() };
    AuditEvent::new(noon(), actor, action, "ana", &json!({ "role": "member" }))
}

fn window(key: &str, start: i64) -> QuotaWindow {
    QuotaWindow { key: key.into(), quota: "tokens/day", window: start }
}

#[test]
fn a_key_is_read_as_it_was_written() {
    for (kind, store) in stores() {
        let (ana, ben) = (key("1", "ana"), key("2", "ben"));
        assert!(store.insert(&ben, &event("key.create")).expect(kind));
        assert!(store.insert(&ana, &event("key.create")).expect(kind));
        assert!(
            !store.insert(&key("3", "ana"), &event("key.create")).expect(kind),
            "{kind}: the name is taken"
        );
        assert_eq!(store.list().expect(kind), [ana.clone(), ben], "{kind}: by name");
        assert_eq!(store.get(&name("ana")).expect(kind), Some(ana), "{kind}");
        assert_eq!(store.get(&name("nobody")).expect(kind), None, "{kind}");
    }
}

#[test]
fn a_change_is_made_whole_or_not_at_all_and_is_counted() {
    for (kind, store) in stores() {
        store.insert(&key("1", "ana"), &event("key.create")).expect(kind);
        let before = store.changes().expect(kind);
        let rotated = KeySecret::new("1").hash();
        let mut rotate = |stored: &mut StoredKey| {
            stored.previous_hash = Some(std::mem::replace(&mut stored.hash, rotated));
            stored.key.status = KeyStatus::Disabled;
            stored.key.previous_until = Some(noon());
            Ok(())
        };
        let changed = store.change(&name("ana"), &mut rotate, &event("key.rotate")).expect(kind);
        assert_eq!((changed.key.status, changed.hash), (KeyStatus::Disabled, rotated), "{kind}");
        assert_eq!(store.get(&name("ana")).expect(kind), Some(changed.clone()), "{kind}");
        assert!(store.changes().expect(kind) > before, "{kind}");
        let counted = store.changes().expect(kind);
        let mut refuse = |stored: &mut StoredKey| {
            stored.key.status = KeyStatus::Active;
            Err(KeyError::Revoked { name: "ana".into() })
        };
        let refused = store.change(&name("ana"), &mut refuse, &event("key.enable"));
        assert!(matches!(refused, Err(KeyError::Revoked { .. })), "{kind}");
        let missing = store.change(&name("nobody"), &mut |_| Ok(()), &event("key.enable"));
        assert!(matches!(missing, Err(KeyError::NoSuchKey { .. })), "{kind}");
        assert_eq!(store.get(&name("ana")).expect(kind), Some(changed), "{kind}");
        assert_eq!(store.changes().expect(kind), counted, "{kind}");
        let actions: Vec<String> =
            store.audit_after(0, 10).expect(kind).into_iter().map(|entry| entry.event.action).collect();
        assert_eq!(actions, ["key.create", "key.rotate"], "{kind}");
    }
}

#[test]
fn leases_never_add_up_to_more_than_the_limit() {
    for (kind, store) in stores() {
        store.insert(&key("1", "ana"), &event("key.create")).expect(kind);
        let day = window("1", 0);
        assert_eq!(
            store.lease(&day, 10, 1_600).expect(kind),
            Lease { granted: 100, taken: 100 },
            "{kind}: a share"
        );
        assert_eq!(store.lease(&day, 500, 1_600).expect(kind), Lease { granted: 500, taken: 600 }, "{kind}");
        assert_eq!(store.lease(&day, 1_001, 1_600).expect(kind), Lease { granted: 0, taken: 600 }, "{kind}");
        assert_eq!(
            store.lease(&day, 1_000, 1_600).expect(kind),
            Lease { granted: 1_000, taken: 1_600 },
            "{kind}"
        );
        assert_eq!(store.lease(&day, 1, 1_600).expect(kind), Lease { granted: 0, taken: 1_600 }, "{kind}");
        store.give_back(&day, 50).expect(kind);
        assert_eq!(store.lease(&day, 1, 1_600).expect(kind), Lease { granted: 3, taken: 1_553 }, "{kind}");
        store.charge(&day, 100).expect(kind);
        assert_eq!(store.taken(&day).expect(kind), 1_653, "{kind}: an overdraft counts");
        assert_eq!(store.taken(&window("1", 86_400)).expect(kind), 0, "{kind}: another window");
        store.give_back(&day, 9_999).expect(kind);
        assert_eq!(store.taken(&day).expect(kind), 0, "{kind}: never less than nothing");
        store.charge(&day, 7).expect(kind);
        store.forget_windows(1).expect(kind);
        assert_eq!(store.taken(&day).expect(kind), 0, "{kind}");
        // An identity from outside is no stored key.
        let identity = window("identity:ana@example.org", 0);
        assert_eq!(store.lease(&identity, 5, 100).expect(kind), Lease { granted: 6, taken: 6 }, "{kind}");
        assert_eq!(store.taken(&identity).expect(kind), 6, "{kind}");
    }
}

#[test]
fn an_unbroken_log_is_verified_and_read_in_order() {
    for (kind, store) in stores() {
        for action in ["task.create", "task.delete", "model.pull"] {
            store.append_audit(&event(action)).expect(kind);
        }
        let log = AuditService::new(Arc::clone(&store));
        let chain = log.verify().expect(kind).expect("unbroken");
        let newest = log.latest(2).expect(kind);
        assert_eq!((chain.last, &chain.hash), (3, &newest[0].hash), "{kind}");
        let numbers: Vec<i64> = newest.iter().map(|entry| entry.number).collect();
        assert_eq!(numbers, [3, 2], "{kind}");
        let mut exported = Vec::new();
        log.export::<DatabaseError>(|entry| {
            exported.push(entry.event.clone());
            Ok(())
        })
        .expect(kind);
        assert_eq!(exported, [event("task.create"), event("task.delete"), event("model.pull")], "{kind}");
    }
}

#[test]
fn a_changed_removed_or_inserted_entry_breaks_the_chain() {
    let broken = |sql: &str| {
        let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
        let store: Arc<dyn KeyStore> = Arc::new(SqliteKeyStore::new(database.clone()));
        for action in ["a", "b", "c", "d"] {
            store.append_audit(&event(action)).expect("noted");
        }
        database
            .write(|transaction| {
                transaction.execute_batch(
                    "DROP TRIGGER audit_entry_no_update; DROP TRIGGER audit_entry_no_delete;",
                )?;
                transaction.execute_batch(sql)
            })
            .expect("tampered");
        AuditService::new(store).verify().expect("read").expect_err("broken")
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

#[test]
fn entries_of_the_log_are_never_changed_or_deleted() {
    let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
    let store = SqliteKeyStore::new(database.clone());
    store.append_audit(&event("key.create")).expect("noted");
    for sql in ["UPDATE audit_entry SET actor = 'eve'", "DELETE FROM audit_entry"] {
        assert!(database.write(|transaction| transaction.execute(sql, [])).is_err(), "{sql}");
    }
}
