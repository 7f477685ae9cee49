//! Received messages.

use std::time::SystemTime;

use hob_core::Moment;
use rusqlite::{Connection, Transaction, params};

use crate::store::{MAX_REMEMBERED, UnsettledMessage};

pub(super) fn take(
    transaction: &Transaction<'_>,
    identity: Option<&str>,
    message: &str,
    now: SystemTime,
) -> rusqlite::Result<Option<i64>> {
    let received = Moment::of(now).microseconds();
    // An insert that conflicts uses up a number, and the numbers decide what is forgotten.
    let is_known = transaction
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM channel_inbox WHERE identity = ?1)")?
        .query_row([identity], |row| row.get(0))?;
    if is_known {
        return Ok(None);
    }
    let id: i64 = transaction
        .prepare_cached(
            "INSERT INTO channel_inbox (identity, message, received) VALUES (?1, ?2, ?3) RETURNING id",
        )?
        .query_row(params![identity, message, received], |row| row.get(0))?;
    transaction.prepare_cached("DELETE FROM channel_inbox WHERE id <= ?1")?.execute([id - MAX_REMEMBERED])?;
    Ok(Some(id))
}

pub(super) fn settle(transaction: &Transaction<'_>, id: i64) -> rusqlite::Result<bool> {
    let mut statement = transaction
        .prepare_cached("UPDATE channel_inbox SET message = NULL WHERE id = ?1 AND message IS NOT NULL")?;
    Ok(statement.execute([id])? > 0)
}

pub(super) fn reopen(transaction: &Transaction<'_>, id: i64, message: &str) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE channel_inbox SET message = ?2 WHERE id = ?1")?
        .execute(params![id, message])
        .map(drop)
}

pub(super) fn unsettled(connection: &Connection) -> rusqlite::Result<Vec<UnsettledMessage>> {
    let mut statement =
        connection.prepare("SELECT id, message FROM channel_inbox WHERE message IS NOT NULL ORDER BY id")?;
    let rows =
        statement.query_map([], |row| Ok(UnsettledMessage { id: row.get(0)?, message: row.get(1)? }))?;
    rows.collect()
}
