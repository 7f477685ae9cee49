//! How far a copy is: a table in its target, which changes in the transaction that writes the rows.

use rusqlite::{Transaction, params};

use crate::postgres::{PostgresTransaction, QueryResult};
use crate::{Database, DbResult};

/// Its columns have the same names in both databases.
const CREATE: &str = "
    CREATE TABLE IF NOT EXISTS database_copy (
        name TEXT PRIMARY KEY,
        source TEXT NOT NULL,
        copied BIGINT NOT NULL,
        is_complete BOOLEAN NOT NULL
    )";

/// Deletes what is known of a copy, so that the file is like any other.
pub fn forget_copy(target: &Database) -> DbResult<()> {
    target.write(|transaction| transaction.execute_batch("DROP TABLE IF EXISTS database_copy"))
}

/// How far one table is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct TableState {
    pub(super) name: String,
    pub(super) source: String,
    pub(super) copied: u64,
    pub(super) is_complete: bool,
}

/// A step of the copy of one table: the rows that were copied before and after it.
pub(super) struct CopiedRows<'a> {
    pub(super) name: &'a str,
    pub(super) source: &'a str,
    pub(super) from: u64,
    pub(super) to: u64,
}

pub(super) fn read_sqlite(transaction: &Transaction<'_>) -> rusqlite::Result<Vec<TableState>> {
    transaction.execute_batch(CREATE)?;
    let mut statement =
        transaction.prepare("SELECT name, source, copied, is_complete FROM database_copy ORDER BY name")?;
    let rows = statement.query_map([], |row| {
        Ok(TableState {
            name: row.get(0)?,
            source: row.get(1)?,
            copied: row.get::<_, i64>(2)?.unsigned_abs(),
            is_complete: row.get(3)?,
        })
    })?;
    rows.collect()
}

pub(super) fn begin_sqlite(transaction: &Transaction<'_>, name: &str, source: &str) -> rusqlite::Result<()> {
    transaction.execute("INSERT OR REPLACE INTO database_copy VALUES (?1, ?2, 0, FALSE)", [name, source])?;
    Ok(())
}

/// Returns `false` if another copy has changed the table meanwhile.
pub(super) fn advance_sqlite(transaction: &Transaction<'_>, step: &CopiedRows<'_>) -> rusqlite::Result<bool> {
    let sql = "
        UPDATE database_copy SET copied = ?4 WHERE name = ?1 AND source = ?2 AND copied = ?3 AND NOT is_complete";
    Ok(transaction.execute(sql, params![step.name, step.source, step.from as i64, step.to as i64])? == 1)
}

/// Whether this copy has copied so many rows of the table. Returns `false` if another copy has begun it meanwhile.
pub(super) fn has_copied_sqlite(
    transaction: &Transaction<'_>,
    name: &str,
    source: &str,
    copied: u64,
) -> rusqlite::Result<bool> {
    let sql = "SELECT EXISTS (SELECT 1 FROM database_copy WHERE name = ?1 AND source = ?2 AND copied = ?3)";
    transaction.query_row(sql, params![name, source, copied as i64], |row| row.get(0))
}

pub(super) fn complete_sqlite(transaction: &Transaction<'_>, name: &str) -> rusqlite::Result<()> {
    transaction.execute("UPDATE database_copy SET is_complete = TRUE WHERE name = ?1", [name])?;
    Ok(())
}

pub(super) fn read_postgres(transaction: &mut PostgresTransaction<'_>) -> QueryResult<Vec<TableState>> {
    // Two processes that create a table at once would fail.
    transaction.lock("hob.database_copy")?;
    transaction.run_script(CREATE)?;
    let rows = transaction
        .query("SELECT name, source, copied, is_complete FROM database_copy ORDER BY name", &[])?;
    let state = |row: &crate::postgres::Row| {
        Ok(TableState {
            name: row.try_get(0)?,
            source: row.try_get(1)?,
            copied: row.try_get::<_, i64>(2)?.unsigned_abs(),
            is_complete: row.try_get(3)?,
        })
    };
    rows.iter().map(state).collect()
}

pub(super) fn begin_postgres(
    transaction: &mut PostgresTransaction<'_>,
    name: &str,
    source: &str,
) -> QueryResult<()> {
    let sql = "
        INSERT INTO database_copy VALUES ($1, $2, 0, FALSE)
        ON CONFLICT (name) DO UPDATE SET source = excluded.source, copied = 0, is_complete = FALSE";
    transaction.execute(sql, &[&name, &source]).map(drop)
}

/// Returns `false` if another copy has changed the table meanwhile.
pub(super) fn advance_postgres(
    transaction: &mut PostgresTransaction<'_>,
    step: &CopiedRows<'_>,
) -> QueryResult<bool> {
    let sql = "
        UPDATE database_copy SET copied = $4 WHERE name = $1 AND source = $2 AND copied = $3 AND NOT is_complete";
    let (from, to) = (step.from as i64, step.to as i64);
    Ok(transaction.execute(sql, &[&step.name, &step.source, &from, &to])? == 1)
}

/// As [`has_copied_sqlite`]. No other copy changes the table until the transaction ends.
pub(super) fn has_copied_postgres(
    transaction: &mut PostgresTransaction<'_>,
    name: &str,
    source: &str,
    copied: u64,
) -> QueryResult<bool> {
    let sql = "SELECT 1 FROM database_copy WHERE name = $1 AND source = $2 AND copied = $3 FOR UPDATE";
    Ok(!transaction.query(sql, &[&name, &source, &(copied as i64)])?.is_empty())
}

pub(super) fn complete_postgres(transaction: &mut PostgresTransaction<'_>, name: &str) -> QueryResult<()> {
    transaction.execute("UPDATE database_copy SET is_complete = TRUE WHERE name = $1", &[&name])?;
    Ok(())
}
