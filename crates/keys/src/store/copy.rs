//! The tables, for a copy between databases. The number of changes is not copied: it is of use to running servers only.

use hob_db::copy::{CopyTable, CopyTexts, PostgresForm};

pub const COPY_TABLES: &[CopyTable] = &[
    CopyTable::new("api_key", &["id"]),
    CopyTable::new("api_key_quota", &["key", "quota", "begins_at"]),
    CopyTable {
        // The hashes are of the exact texts.
        texts: CopyTexts::Escaped,
        // Only a copy that begins again deletes entries: those that an unfinished one has written, or that a backup replaces.
        sqlite_clear: Some(
            "DROP TRIGGER audit_entry_no_delete;
             DELETE FROM audit_entry;
             CREATE TRIGGER audit_entry_no_delete BEFORE DELETE ON audit_entry BEGIN
                 SELECT RAISE(ABORT, 'entries of the audit log are never deleted');
             END",
        ),
        postgres: PostgresForm {
            clear: Some(
                "ALTER TABLE audit_entry DISABLE TRIGGER audit_entry_append_only;
                 DELETE FROM audit_entry;
                 ALTER TABLE audit_entry ENABLE TRIGGER audit_entry_append_only",
            ),
            ..AUDIT.postgres
        },
        ..AUDIT
    },
];

const AUDIT: CopyTable = CopyTable::new("audit_entry", &["number"]);

#[cfg(test)]
mod tests {
    use hob_db::Database;
    use hob_db::copy::{CopyRequest, ExistingRows, copy_to_postgres, copy_to_sqlite};
    use hob_db::postgres::PostgresDatabase;
    use hob_testkit::PostgresServer;

    use super::*;
    use crate::audit::{AuditChain, AuditEvent};
    use crate::audit_service::AuditService;
    use crate::store::tests::{event, key, window};
    use crate::store::{KeyStore, MIGRATIONS, POSTGRES_MIGRATIONS, StoredKey, key_store};

    fn request(existing: ExistingRows) -> CopyRequest<'static> {
        CopyRequest { tables: COPY_TABLES, source: "here", existing, listener: &|_| {} }
    }

    /// The account of an identity from outside, which is no stored key.
    const IDENTITY: &str = "identity:ana@example.org";

    /// The keys, what they and an identity have taken, and the log.
    fn contents(store: &dyn KeyStore) -> (Vec<StoredKey>, [u64; 2], Vec<AuditEvent>) {
        let entries = store.audit_after(0, 100).expect("read");
        let events = entries.into_iter().map(|entry| entry.event).collect();
        let taken = ["1", IDENTITY].map(|key| store.taken(&window(key, 0)).expect("read"));
        (store.list().expect("read"), taken, events)
    }

    fn verified(store: std::sync::Arc<dyn KeyStore>) -> AuditChain {
        AuditService::new(store).verify().expect("read").expect("unbroken")
    }

    #[test]
    fn keys_and_quotas_are_the_same_and_the_log_is_unbroken_after_a_copy_to_postgresql_and_back() {
        let source = Database::in_memory(&[MIGRATIONS]).expect("opened");
        let file = key_store(source.clone());
        let rotated = StoredKey { previous_hash: Some(key("9", "x").hash), ..key("1", "ana") };
        file.insert(&rotated, &event("key.create")).expect("created");
        file.insert(&key("2", "ben"), &event("key.create")).expect("created");
        file.charge(&window("1", 0), 70).expect("charged");
        file.charge(&window(IDENTITY, 0), 7).expect("charged");
        // Subjects are the names of models too, which callers choose.
        file.append_audit(&AuditEvent { subject: "a\0b\u{1a}ü".to_owned(), ..event("model.delete") })
            .expect("noted");
        let (expected, chain) = (contents(file.as_ref()), verified(file));
        assert_eq!(expected.1, [70, 7]);

        let created = PostgresServer::shared().create_database();
        let server = PostgresDatabase::new(created.url().parse().expect("a URL"), &[POSTGRES_MIGRATIONS])
            .expect("made");
        copy_to_postgres(&source, &server, &request(ExistingRows::Continue)).expect("copied");
        let shared = key_store(server.clone());
        assert_eq!((contents(shared.as_ref()), verified(shared.clone())), (expected.clone(), chain.clone()));

        let back = Database::in_memory(&[MIGRATIONS]).expect("opened");
        copy_to_sqlite(&server, &back, &request(ExistingRows::Continue)).expect("copied");
        let returned = key_store(back.clone());
        assert_eq!((contents(returned.as_ref()), verified(returned.clone())), (expected.clone(), chain));

        // Both logs continue.
        for store in [&shared, &returned] {
            let entry = store.append_audit(&event("key.revoke")).expect("noted");
            assert_eq!((entry.number, verified(store.clone()).last), (4, 4));
        }
        // A copy that replaces what is there deletes the log too, and entries are refused as before.
        copy_to_postgres(&source, &server, &request(ExistingRows::Delete)).expect("copied");
        copy_to_sqlite(&server, &back, &request(ExistingRows::Delete)).expect("copied");
        assert_eq!((contents(shared.as_ref()), contents(returned.as_ref())), (expected.clone(), expected));
        let delete = "DELETE FROM audit_entry";
        assert!(server.write(|transaction| transaction.run_script(delete)).is_err());
        assert!(back.write(|transaction| transaction.execute_batch(delete)).is_err());
    }
}
