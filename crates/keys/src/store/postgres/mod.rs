//! Keys in PostgreSQL, for several servers. Locks are always taken in the same order: a key, the number of changes, the audit log.

mod audit;
mod quotas;
mod rows;

use hob_db::postgres::{PostgresDatabase, PostgresMigrations, PostgresTransaction, QueryResult};
use hob_db::{ChangeWatch, DbResult};

use super::columns::signed;
use super::{ChangeFn, KeyStore, Lease, QuotaWindow, StoredKey};
use crate::audit::{AuditEntry, AuditEvent};
use crate::key::{KeyError, KeyName};
use crate::limits::Period;

/// The steps that make the tables of keys and of the audit log in PostgreSQL.
pub const POSTGRES_MIGRATIONS: PostgresMigrations = PostgresMigrations {
    capability: "keys",
    steps: &[include_str!("../../../migrations/postgres/1_keys.sql")],
    usable_from: 0,
};

/// Announced when a key is created or changed.
const TOPIC: &str = "keys";

/// The keys in a database. Cheap to clone.
#[derive(Clone)]
pub struct PostgresKeyStore {
    database: PostgresDatabase,
}

impl PostgresKeyStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresKeyStore { database }
    }
}

impl KeyStore for PostgresKeyStore {
    fn exists(&self) -> bool {
        true
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn insert(&self, key: &StoredKey, event: &AuditEvent) -> DbResult<bool> {
        self.database.write(|transaction| {
            if !rows::insert(transaction, key)? {
                return Ok(false);
            }
            note_change(transaction, event)?;
            Ok(true)
        })
    }

    fn list(&self) -> DbResult<Vec<StoredKey>> {
        self.database.read(rows::list)
    }

    fn get(&self, name: &KeyName) -> DbResult<Option<StoredKey>> {
        self.database.read(|transaction| rows::get(transaction, name.as_str()))
    }

    fn change(
        &self,
        name: &KeyName,
        change: ChangeFn<'_>,
        event: &AuditEvent,
    ) -> Result<StoredKey, KeyError> {
        self.database.write(|transaction| {
            let Some(mut key) = rows::get_to_change(transaction, name.as_str())? else {
                return Ok(Err(KeyError::NoSuchKey { name: name.to_string() }));
            };
            if let Err(error) = change(&mut key) {
                return Ok(Err(error));
            }
            rows::update(transaction, &key)?;
            note_change(transaction, event)?;
            Ok(Ok(key))
        })?
    }

    fn changes(&self) -> DbResult<i64> {
        self.database.read(|transaction| {
            let row = transaction.query_opt("SELECT count FROM api_key_changes", &[])?;
            Ok(row.map(|row| row.try_get::<_, i64>(0)).transpose()?.unwrap_or(0))
        })
    }

    fn watch(&self) -> DbResult<Option<ChangeWatch>> {
        self.database.watch(TOPIC).map(Some)
    }

    fn lease(&self, window: &QuotaWindow, wanted: u64, limit: u64) -> DbResult<Lease> {
        self.database.write(|transaction| quotas::lease(transaction, window, wanted, limit))
    }

    fn charge(&self, window: &QuotaWindow, amount: u64) -> DbResult<()> {
        self.database.write(|transaction| quotas::add(transaction, window, signed(amount)))
    }

    fn give_back(&self, window: &QuotaWindow, amount: u64) -> DbResult<()> {
        self.database.write(|transaction| quotas::add(transaction, window, -signed(amount)))
    }

    fn taken(&self, window: &QuotaWindow) -> DbResult<u64> {
        self.database.read(|transaction| quotas::taken(transaction, window))
    }

    fn forget_windows(&self, period: Period, before: i64) -> DbResult<()> {
        self.database.write(|transaction| quotas::forget(transaction, period, before))
    }

    fn append_audit(&self, event: &AuditEvent) -> DbResult<AuditEntry> {
        self.database.write(|transaction| audit::append(transaction, event))
    }

    fn audit_after(&self, number: i64, limit: usize) -> DbResult<Vec<AuditEntry>> {
        self.database.read(|transaction| audit::after(transaction, number, limit))
    }

    fn latest_audit(&self, limit: usize) -> DbResult<Vec<AuditEntry>> {
        self.database.read(|transaction| audit::latest(transaction, limit))
    }
}

/// Counts a change of a key, announces it, and adds it to the audit log.
fn note_change(transaction: &mut PostgresTransaction<'_>, event: &AuditEvent) -> QueryResult<()> {
    transaction.execute("UPDATE api_key_changes SET count = count + 1", &[])?;
    transaction.notify(TOPIC)?;
    audit::append(transaction, event).map(drop)
}
