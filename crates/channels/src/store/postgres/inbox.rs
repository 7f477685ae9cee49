//! Received messages.

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryResult, SERVER_CLOCK, SqlText, TransactionEnd};

use crate::store::{MAX_REMEMBERED, UnsettledMessage};

pub(super) fn take(
    transaction: &mut PostgresTransaction<'_>,
    identity: &str,
    message: &str,
    now: SystemTime,
) -> QueryResult<Option<i64>> {
    // A conflict alone would use up a number each time, and numbers decide which messages are forgotten.
    let row = transaction.query_opt(
        "INSERT INTO channel_inbox (identity, message, received)
         SELECT $1::text, $2::text, $3::bigint WHERE NOT EXISTS (SELECT 1 FROM channel_inbox WHERE identity = $1)
         ON CONFLICT (identity) DO NOTHING RETURNING id",
        &[&SqlText(identity), &SqlText(message), &Moment::of(now).microseconds()],
    )?;
    let Some(row) = row else { return Ok(None) };
    let id: i64 = row.try_get(0)?;
    transaction.execute("DELETE FROM channel_inbox WHERE id <= $1", &[&(id - MAX_REMEMBERED)])?;
    Ok(Some(id))
}

/// Takes a message again whose commit was not confirmed. Waits until the earlier transaction has ended. Returns the number of the
/// message, unless another process has taken it.
pub(super) fn take_again(
    transaction: &mut PostgresTransaction<'_>,
    earlier: i64,
    identity: &str,
    message: &str,
    now: SystemTime,
) -> QueryResult<Option<i64>> {
    if let Some(id) = take(transaction, identity, message, now)? {
        return Ok(Some(id));
    }
    let sql = "SELECT id FROM channel_inbox WHERE id = $1 AND identity = $2";
    let row = transaction.query_opt(sql, &[&earlier, &SqlText(identity)])?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

/// Settles a message whose commit was not confirmed. One that is not there is added as settled, so that it stays known. Returns as
/// `settle` does, and `None` too if another process has taken the message.
pub(super) fn settle_unconfirmed(
    transaction: &mut PostgresTransaction<'_>,
    id: i64,
    identity: &str,
) -> QueryResult<Option<String>> {
    let sql = format!(
        "INSERT INTO channel_inbox AS inbox (id, identity, message, received)
         VALUES ($1, $2, NULL, {SERVER_CLOCK})
         ON CONFLICT (identity) DO UPDATE SET message = NULL
            WHERE inbox.id = excluded.id AND inbox.message IS NOT NULL
         RETURNING pg_current_xact_id()::text"
    );
    let settled = transaction.query_opt(&sql, &[&id, &SqlText(identity)])?;
    Ok(settled.map(|row| row.try_get(0)).transpose()?)
}

/// Returns the number of this transaction if it settles the message; `None` if that was done already.
pub(super) fn settle(transaction: &mut PostgresTransaction<'_>, id: i64) -> QueryResult<Option<String>> {
    let settled = transaction.query_opt(
        "UPDATE channel_inbox SET message = NULL WHERE id = $1 AND message IS NOT NULL
         RETURNING pg_current_xact_id()::text",
        &[&id],
    )?;
    Ok(settled.map(|row| row.try_get(0)).transpose()?)
}

/// Whether the transaction with this number has settled the message.
pub(super) fn was_settled_by(
    transaction: &mut PostgresTransaction<'_>,
    id: i64,
    number: &str,
) -> QueryResult<bool> {
    let row =
        "SELECT 1 FROM channel_inbox WHERE xmin = ($1::text::xid8)::xid AND id = $2 AND message IS NULL";
    Ok(transaction.end_of_writer(number, row, &[&id])? == TransactionEnd::Committed)
}

pub(super) fn reopen(transaction: &mut PostgresTransaction<'_>, id: i64, message: &str) -> QueryResult<()> {
    transaction
        .execute("UPDATE channel_inbox SET message = $2 WHERE id = $1", &[&id, &SqlText(message)])
        .map(drop)
}

pub(super) fn unsettled(transaction: &mut PostgresTransaction<'_>) -> QueryResult<Vec<UnsettledMessage>> {
    let rows = transaction
        .query("SELECT id, message FROM channel_inbox WHERE message IS NOT NULL ORDER BY id", &[])?;
    rows.iter()
        .map(|row| {
            let message: SqlText<String> = row.try_get(1)?;
            Ok(UnsettledMessage { id: row.try_get(0)?, message: message.0 })
        })
        .collect()
}
