//! Received messages.

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryError, SqlText};

use crate::store::{MAX_REMEMBERED, UnsettledMessage};

pub(super) fn take(
    transaction: &mut PostgresTransaction<'_>,
    identity: Option<&str>,
    message: &str,
    now: SystemTime,
) -> Result<Option<i64>, QueryError> {
    // A conflict alone would use up a number each time, and numbers decide which messages are forgotten.
    let row = transaction.query_opt(
        "INSERT INTO channel_inbox (identity, message, received)
         SELECT $1::text, $2::text, $3::bigint WHERE NOT EXISTS (SELECT 1 FROM channel_inbox WHERE identity = $1)
         ON CONFLICT (identity) DO NOTHING RETURNING id",
        &[&identity.map(SqlText), &SqlText(message), &Moment::of(now).microseconds()],
    )?;
    let Some(row) = row else { return Ok(None) };
    let id: i64 = row.try_get(0)?;
    transaction.execute("DELETE FROM channel_inbox WHERE id <= $1", &[&(id - MAX_REMEMBERED)])?;
    Ok(Some(id))
}

/// Returns the number of this transaction if it settles the message; `None` if that was done already.
pub(super) fn settle(
    transaction: &mut PostgresTransaction<'_>,
    id: i64,
) -> Result<Option<String>, QueryError> {
    let settled = transaction.query_opt(
        "UPDATE channel_inbox SET message = NULL WHERE id = $1 AND message IS NOT NULL
         RETURNING pg_current_xact_id()::text",
        &[&id],
    )?;
    Ok(settled.map(|row| row.try_get(0)).transpose()?)
}

pub(super) fn reopen(
    transaction: &mut PostgresTransaction<'_>,
    id: i64,
    message: &str,
) -> Result<(), QueryError> {
    transaction
        .execute("UPDATE channel_inbox SET message = $2 WHERE id = $1", &[&id, &SqlText(message)])
        .map(drop)
}

pub(super) fn unsettled(
    transaction: &mut PostgresTransaction<'_>,
) -> Result<Vec<UnsettledMessage>, QueryError> {
    let rows = transaction
        .query("SELECT id, message FROM channel_inbox WHERE message IS NOT NULL ORDER BY id", &[])?;
    rows.iter()
        .map(|row| {
            let message: SqlText<String> = row.try_get(1)?;
            Ok(UnsettledMessage { id: row.try_get(0)?, message: message.0 })
        })
        .collect()
}
