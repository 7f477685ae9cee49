//! Where keys, their shares and the audit log are saved.
//!
//! Every call blocks. A store gets times from its callers. A server takes a share of a limit before it spends it (`lease`), so that
//! servers with the same store never spend more together than the limit, and a crash loses at most the shares that were not spent.

mod columns;
mod copy;
mod postgres;
mod sqlite;

use std::sync::Arc;

use hob_db::{ChangeWatch, DbResult, Storage, peek};
use jiff::Timestamp;

use crate::audit::{AuditEntry, AuditEvent};
use crate::key::{ApiKey, KeyError, KeyName, KeyStatus};
use crate::limits::{Period, share_of};
use crate::secret::SecretHash;

pub use copy::COPY_TABLES;
pub use postgres::{POSTGRES_MIGRATIONS, PostgresKeyStore};
pub use sqlite::{MIGRATIONS, SqliteKeyStore};

/// The keys in a database. Creates nothing, and asks no server.
pub fn key_store(storage: impl Into<Storage>) -> Arc<dyn KeyStore> {
    match storage.into() {
        Storage::Sqlite(database) => Arc::new(SqliteKeyStore::new(database)),
        Storage::Postgres(database) => Arc::new(PostgresKeyStore::new(database)),
    }
}

/// Whether keys were ever created. Creates and migrates nothing. Blocks.
pub fn has_keys(storage: &Storage) -> DbResult<bool> {
    is_true(storage, "SELECT EXISTS (SELECT 1 FROM api_key)")
}

/// Whether a key is valid at `now`: not disabled, revoked or expired. Creates and migrates nothing. Blocks.
pub fn has_valid_keys(storage: &Storage, now: Timestamp) -> DbResult<bool> {
    let (active, now) = (KeyStatus::Active.as_str(), now.as_microsecond());
    let valid = format!("status = '{active}' AND (expires_at IS NULL OR expires_at > {now})");
    is_true(storage, &format!("SELECT EXISTS (SELECT 1 FROM api_key WHERE {valid})"))
}

/// The answer to a question about the table of keys, which is `false` where there is no such table yet.
fn is_true(storage: &Storage, sql: &str) -> DbResult<bool> {
    let found: Option<bool> = match storage {
        Storage::Sqlite(database) => {
            peek(database.path(), |connection| connection.query_row(sql, [], |row| row.get(0)))?
        }
        Storage::Postgres(database) => {
            database.peek("api_key", |transaction| Ok(transaction.query_one(sql, &[])?.try_get(0)?))?
        }
    };
    Ok(found.unwrap_or(false))
}

/// A key with the hashes of its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredKey {
    pub key: ApiKey,
    pub hash: SecretHash,
    /// Of the secret before the last rotation.
    pub previous_hash: Option<SecretHash>,
}

/// One limit of one key in one window of time.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct QuotaWindow {
    /// The id of the key.
    pub key: Arc<str>,
    pub quota: &'static str,
    /// When it begins, in seconds since 1970.
    pub window: i64,
}

/// The answer to a server that needs a share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease {
    /// Zero if there is not enough left.
    pub granted: u64,
    /// What all servers have taken in this window, this lease included.
    pub taken: u64,
}

impl Lease {
    /// The share of a server that needs `wanted` at least.
    pub fn of(wanted: u64, taken: u64, limit: u64) -> Self {
        let left = limit.saturating_sub(taken);
        if wanted == 0 || wanted > left {
            return Lease { granted: 0, taken };
        }
        let granted = wanted.max(share_of(left));
        Lease { granted, taken: taken + granted }
    }
}

/// Changes a key inside a transaction, or says why not. Runs again, on the key as it is then, if the transaction does.
pub type ChangeFn<'a> = &'a mut dyn FnMut(&mut StoredKey) -> Result<(), KeyError>;

pub trait KeyStore: Send + Sync {
    /// Whether there is anything to read. Creates nothing.
    fn exists(&self) -> bool;

    /// Whether other servers use the same store, so that limits per minute are leased too.
    fn is_shared(&self) -> bool;

    /// Adds a key, and the entry of the audit log in the same transaction. Returns `false` if the name is taken.
    fn insert(&self, key: &StoredKey, event: &AuditEvent) -> DbResult<bool>;

    /// All keys, by name.
    fn list(&self) -> DbResult<Vec<StoredKey>>;

    fn get(&self, name: &KeyName) -> DbResult<Option<StoredKey>>;

    /// Changes a key, and adds the entry of the audit log, in one transaction. Returns the changed key.
    fn change(&self, name: &KeyName, change: ChangeFn<'_>, event: &AuditEvent)
    -> Result<StoredKey, KeyError>;

    /// How often keys were changed.
    fn changes(&self) -> DbResult<i64>;

    /// Watches changes of other processes; `None` if there can be none.
    fn watch(&self) -> DbResult<Option<ChangeWatch>>;

    /// Takes a share of a limit: `wanted` or more, or nothing.
    fn lease(&self, window: &QuotaWindow, wanted: u64, limit: u64) -> DbResult<Lease>;

    /// Adds what was spent without a lease, even beyond the limit.
    fn charge(&self, window: &QuotaWindow, amount: u64) -> DbResult<()>;

    /// Gives a part of a lease back.
    fn give_back(&self, window: &QuotaWindow, amount: u64) -> DbResult<()>;

    /// What was taken in a window.
    fn taken(&self, window: &QuotaWindow) -> DbResult<u64>;

    /// Deletes the windows of this period that began before this moment, in seconds since 1970.
    fn forget_windows(&self, period: Period, before: i64) -> DbResult<()>;

    /// Adds an entry to the audit log.
    fn append_audit(&self, event: &AuditEvent) -> DbResult<AuditEntry>;

    /// The entries after the one of this number, the oldest first.
    fn audit_after(&self, number: i64, limit: usize) -> DbResult<Vec<AuditEntry>>;

    /// The newest entries, the newest first.
    fn latest_audit(&self, limit: usize) -> DbResult<Vec<AuditEntry>>;
}

#[cfg(test)]
mod tests;
