//! How far channels have read.

use hob_db::postgres::{PostgresTransaction, QueryResult, SqlText};

pub(super) fn position(
    transaction: &mut PostgresTransaction<'_>,
    channel: &str,
) -> QueryResult<Option<String>> {
    let sql = "SELECT position FROM channel_position WHERE channel = $1";
    let Some(row) = transaction.query_opt(sql, &[&SqlText(channel)])? else { return Ok(None) };
    let position: SqlText<String> = row.try_get(0)?;
    Ok(Some(position.0))
}

pub(super) fn set(
    transaction: &mut PostgresTransaction<'_>,
    channel: &str,
    position: &str,
) -> QueryResult<()> {
    transaction
        .execute(
            "INSERT INTO channel_position (channel, position) VALUES ($1, $2)
             ON CONFLICT (channel) DO UPDATE SET position = excluded.position",
            &[&SqlText(channel), &SqlText(position)],
        )
        .map(drop)
}
