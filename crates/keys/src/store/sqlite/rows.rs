//! Rows of keys.

use hob_db::UnreadableColumn;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::store::StoredKey;
use crate::store::columns::{KEY_COLUMNS, KeyColumns};

pub(super) fn list(connection: &Connection) -> rusqlite::Result<Vec<StoredKey>> {
    let sql = format!("SELECT {KEY_COLUMNS} FROM api_key ORDER BY name");
    connection.prepare_cached(&sql)?.query_map([], read)?.collect()
}

pub(super) fn get(connection: &Connection, name: &str) -> rusqlite::Result<Option<StoredKey>> {
    let sql = format!("SELECT {KEY_COLUMNS} FROM api_key WHERE name = ?1");
    connection.prepare_cached(&sql)?.query_row([name], read).optional()
}

pub(super) fn insert(transaction: &Transaction<'_>, stored: &StoredKey) -> rusqlite::Result<()> {
    let sql = format!("INSERT INTO api_key ({KEY_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)");
    write(transaction, &sql, stored)
}

pub(super) fn update(transaction: &Transaction<'_>, stored: &StoredKey) -> rusqlite::Result<()> {
    let sql = "UPDATE api_key SET name = ?2, role = ?3, status = ?4, rules = ?5, hash = ?6, previous_hash = ?7, previous_until = ?8,
         created_at = ?9, expires_at = ?10 WHERE id = ?1";
    write(transaction, sql, stored)
}

fn write(transaction: &Transaction<'_>, sql: &str, stored: &StoredKey) -> rusqlite::Result<()> {
    let columns =
        KeyColumns::of(stored).map_err(|error| rusqlite::Error::ToSqlConversionFailure(Box::new(error)))?;
    transaction
        .prepare_cached(sql)?
        .execute(params![
            columns.id,
            columns.name,
            columns.role,
            columns.status,
            columns.rules,
            columns.hash,
            columns.previous_hash,
            columns.previous_until,
            columns.created_at,
            columns.expires_at,
        ])
        .map(drop)
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredKey> {
    let columns = KeyColumns {
        id: row.get(0)?,
        name: row.get(1)?,
        role: row.get(2)?,
        status: row.get(3)?,
        rules: row.get(4)?,
        hash: row.get(5)?,
        previous_hash: row.get(6)?,
        previous_until: row.get(7)?,
        created_at: row.get(8)?,
        expires_at: row.get(9)?,
    };
    columns.read().map_err(unreadable)
}

pub(super) fn unreadable(error: UnreadableColumn) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error))
}
