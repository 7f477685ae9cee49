//! Rows of keys.

use hob_db::UnreadableColumn;
use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult, Row};

use crate::store::StoredKey;
use crate::store::columns::{KEY_COLUMNS, KeyColumns};

pub(super) fn list(transaction: &mut PostgresTransaction<'_>) -> QueryResult<Vec<StoredKey>> {
    // In the order of SQLite, whatever the locale of the server.
    let sql = format!("SELECT {KEY_COLUMNS} FROM api_key ORDER BY name COLLATE \"C\"");
    transaction.query(&sql, &[])?.iter().map(read).collect()
}

pub(super) fn get(transaction: &mut PostgresTransaction<'_>, name: &str) -> QueryResult<Option<StoredKey>> {
    let sql = format!("SELECT {KEY_COLUMNS} FROM api_key WHERE name = $1");
    transaction.query_opt(&sql, &[&name])?.as_ref().map(read).transpose()
}

/// The same, and no other transaction changes the key until this one ends. Leases do not wait.
pub(super) fn get_to_change(
    transaction: &mut PostgresTransaction<'_>,
    name: &str,
) -> QueryResult<Option<StoredKey>> {
    let sql = format!("SELECT {KEY_COLUMNS} FROM api_key WHERE name = $1 FOR NO KEY UPDATE");
    transaction.query_opt(&sql, &[&name])?.as_ref().map(read).transpose()
}

/// Returns `false` if the name is taken, also by a transaction that has just ended.
pub(super) fn insert(transaction: &mut PostgresTransaction<'_>, stored: &StoredKey) -> QueryResult<bool> {
    let sql = format!(
        "INSERT INTO api_key ({KEY_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
         ON CONFLICT (name) DO NOTHING"
    );
    write(transaction, &sql, stored).map(|rows| rows > 0)
}

pub(super) fn update(transaction: &mut PostgresTransaction<'_>, stored: &StoredKey) -> QueryResult<()> {
    let sql = "
        UPDATE api_key SET name = $2, role = $3, status = $4, rules = $5, hash = $6, previous_hash = $7, previous_until = $8,
            created_at = $9, expires_at = $10 WHERE id = $1";
    write(transaction, sql, stored).map(drop)
}

fn write(transaction: &mut PostgresTransaction<'_>, sql: &str, stored: &StoredKey) -> QueryResult<u64> {
    let columns = KeyColumns::of(stored).map_err(unreadable)?;
    transaction.execute(
        sql,
        &[
            &columns.id,
            &columns.name,
            &columns.role,
            &columns.status,
            &columns.rules,
            &columns.hash,
            &columns.previous_hash,
            &columns.previous_until,
            &columns.created_at,
            &columns.expires_at,
        ],
    )
}

fn read(row: &Row) -> QueryResult<StoredKey> {
    let columns = KeyColumns {
        id: row.try_get(0)?,
        name: row.try_get(1)?,
        role: row.try_get(2)?,
        status: row.try_get(3)?,
        rules: row.try_get(4)?,
        hash: row.try_get(5)?,
        previous_hash: row.try_get(6)?,
        previous_until: row.try_get(7)?,
        created_at: row.try_get(8)?,
        expires_at: row.try_get(9)?,
    };
    columns.read().map_err(unreadable)
}

pub(super) fn unreadable(error: UnreadableColumn) -> QueryError {
    QueryError::unreadable(error.column, error)
}
