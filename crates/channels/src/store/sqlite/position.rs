//! How far channels have read.

use rusqlite::{Connection, OptionalExtension, Transaction};

pub(super) fn position(connection: &Connection, channel: &str) -> rusqlite::Result<Option<String>> {
    connection
        .prepare_cached("SELECT position FROM channel_position WHERE channel = ?1")?
        .query_row([channel], |row| row.get(0))
        .optional()
}

pub(super) fn set(transaction: &Transaction<'_>, channel: &str, position: &str) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "INSERT INTO channel_position (channel, position) VALUES (?1, ?2)
             ON CONFLICT (channel) DO UPDATE SET position = excluded.position",
        )?
        .execute([channel, position])
        .map(drop)
}
