//! Keys in SQLite. Every change is one immediate transaction.

mod audit;
mod quotas;
mod rows;

use hob_db::{ChangeWatch, Database, DbResult, LazyDatabase, Migrations};
use rusqlite::{OptionalExtension, Transaction};

use super::{ChangeFn, KeyStore, Lease, QuotaWindow, StoredKey};
use crate::audit::{AuditEntry, AuditEvent};
use crate::key::{KeyError, KeyName};
use crate::limits::Period;

/// The steps that make the tables of keys and of the audit log.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "keys",
    steps: &[include_str!("../../../migrations/1_keys.sql"), include_str!("../../../migrations/2_audit.sql")],
    legacy_versions: &[],
};

/// The keys in a database. Cheap to clone.
#[derive(Clone)]
pub struct SqliteKeyStore {
    database: LazyDatabase,
}

impl SqliteKeyStore {
    pub fn new(database: impl Into<LazyDatabase>) -> Self {
        SqliteKeyStore { database: database.into() }
    }

    fn open(&self) -> DbResult<Database> {
        self.database.open()
    }
}

impl KeyStore for SqliteKeyStore {
    fn exists(&self) -> bool {
        self.database.exists()
    }

    /// One server has the file; limits per minute count in its memory.
    fn is_shared(&self) -> bool {
        false
    }

    fn insert(&self, key: &StoredKey, event: &AuditEvent) -> DbResult<bool> {
        self.open()?.write(|transaction| {
            if rows::get(transaction, key.key.name.as_str())?.is_some() {
                return Ok(false);
            }
            rows::insert(transaction, key)?;
            count_change(transaction)?;
            audit::append(transaction, event)?;
            Ok(true)
        })
    }

    fn list(&self) -> DbResult<Vec<StoredKey>> {
        match self.database.find()? {
            Some(database) => database.read(rows::list),
            None => Ok(Vec::new()),
        }
    }

    fn get(&self, name: &KeyName) -> DbResult<Option<StoredKey>> {
        match self.database.find()? {
            Some(database) => database.read(|connection| rows::get(connection, name.as_str())),
            None => Ok(None),
        }
    }

    fn change(
        &self,
        name: &KeyName,
        change: ChangeFn<'_>,
        event: &AuditEvent,
    ) -> Result<StoredKey, KeyError> {
        let mut refused = None;
        let changed = self.open()?.write(|transaction| {
            let Some(mut key) = rows::get(transaction, name.as_str())? else { return Ok(None) };
            if let Err(error) = change(&mut key) {
                refused = Some(error);
                return Ok(None);
            }
            rows::update(transaction, &key)?;
            count_change(transaction)?;
            audit::append(transaction, event)?;
            Ok(Some(key))
        })?;
        match (changed, refused) {
            (Some(key), _) => Ok(key),
            (None, Some(error)) => Err(error),
            (None, None) => Err(KeyError::NoSuchKey { name: name.to_string() }),
        }
    }

    fn changes(&self) -> DbResult<i64> {
        let Some(database) = self.database.find()? else { return Ok(0) };
        database.read(|connection| {
            let count = connection
                .prepare_cached("SELECT count FROM api_key_changes")?
                .query_row([], |row| row.get(0));
            Ok(count.optional()?.unwrap_or(0))
        })
    }

    fn watch(&self) -> DbResult<Option<ChangeWatch>> {
        match self.database.find()? {
            Some(database) => database.watch(),
            None => Ok(None),
        }
    }

    fn lease(&self, window: &QuotaWindow, wanted: u64, limit: u64) -> DbResult<Lease> {
        self.open()?.write(|transaction| quotas::lease(transaction, window, wanted, limit))
    }

    fn charge(&self, window: &QuotaWindow, amount: u64) -> DbResult<()> {
        self.open()?.write(|transaction| quotas::charge(transaction, window, amount))
    }

    fn give_back(&self, window: &QuotaWindow, amount: u64) -> DbResult<()> {
        self.open()?.write(|transaction| quotas::give_back(transaction, window, amount))
    }

    fn taken(&self, window: &QuotaWindow) -> DbResult<u64> {
        match self.database.find()? {
            Some(database) => database.read(|connection| quotas::taken(connection, window)),
            None => Ok(0),
        }
    }

    fn forget_windows(&self, period: Period, before: i64) -> DbResult<()> {
        let Some(database) = self.database.find()? else { return Ok(()) };
        database.write(|transaction| quotas::forget(transaction, period, before))
    }

    fn append_audit(&self, event: &AuditEvent) -> DbResult<AuditEntry> {
        self.open()?.write(|transaction| audit::append(transaction, event))
    }

    fn audit_after(&self, number: i64, limit: usize) -> DbResult<Vec<AuditEntry>> {
        match self.database.find()? {
            Some(database) => database.read(|connection| audit::after(connection, number, limit)),
            None => Ok(Vec::new()),
        }
    }

    fn latest_audit(&self, limit: usize) -> DbResult<Vec<AuditEntry>> {
        match self.database.find()? {
            Some(database) => database.read(|connection| audit::latest(connection, limit)),
            None => Ok(Vec::new()),
        }
    }
}

fn count_change(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    transaction.execute("UPDATE api_key_changes SET count = count + 1", []).map(drop)
}
