//! Approved senders, and those who wait.

use std::time::SystemTime;

use hob_core::Moment;
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::store::pairing::{
    ApprovedSender, MAX_LISTED, MAX_PENDING, NewPairing, PairingOutcome, PendingSender, SenderKey,
};

pub(super) fn is_approved(connection: &Connection, sender: SenderKey<'_>) -> rusqlite::Result<bool> {
    connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM channel_sender WHERE channel = ?1 AND sender = ?2)")?
        .query_row(params![sender.channel, sender.sender], |row| row.get(0))
}

pub(super) fn begin(
    transaction: &Transaction<'_>,
    pairing: NewPairing<'_>,
    now: SystemTime,
) -> rusqlite::Result<PairingOutcome> {
    let NewPairing { sender: SenderKey { channel, sender }, name, code, ends } = pairing;
    let now = Moment::of(now).microseconds();
    transaction.execute("DELETE FROM channel_pairing WHERE ends <= ?1", [now])?;
    let is_waiting: bool = transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM channel_pairing WHERE channel = ?1 AND sender = ?2)",
        params![channel, sender],
        |row| row.get(0),
    )?;
    if is_waiting {
        return Ok(PairingOutcome::Waiting);
    }
    let waiting: i64 = transaction.query_row(
        "SELECT count(*) FROM channel_pairing WHERE channel = ?1",
        [channel],
        |row| row.get(0),
    )?;
    if waiting >= MAX_PENDING {
        return Ok(PairingOutcome::Full);
    }
    transaction.execute(
        "INSERT INTO channel_pairing (channel, sender, name, code, ends) VALUES (?1, ?2, ?3, ?4, ?5)",
        params![channel, sender, name, code, Moment::of(ends).microseconds()],
    )?;
    Ok(PairingOutcome::Begun)
}

pub(super) fn pending(connection: &Connection, now: SystemTime) -> rusqlite::Result<Vec<PendingSender>> {
    let mut statement = connection.prepare_cached(
        "SELECT channel, sender, name, code, ends FROM channel_pairing WHERE ends > ?1 ORDER BY ends, code",
    )?;
    let rows = statement.query_map([Moment::of(now).microseconds()], |row| {
        Ok(PendingSender {
            channel: row.get(0)?,
            sender: row.get(1)?,
            name: row.get(2)?,
            code: row.get(3)?,
            ends: Moment::from_microseconds(row.get(4)?),
        })
    })?;
    rows.collect()
}

pub(super) fn approve_code(
    transaction: &Transaction<'_>,
    code: &str,
    now: SystemTime,
) -> rusqlite::Result<Option<ApprovedSender>> {
    let approved = Moment::of(now);
    let found = transaction
        .query_row(
            "DELETE FROM channel_pairing WHERE code = ?1 AND ends > ?2 RETURNING channel, sender, name",
            params![code, approved.microseconds()],
            |row| {
                Ok(ApprovedSender { channel: row.get(0)?, sender: row.get(1)?, name: row.get(2)?, approved })
            },
        )
        .optional()?;
    if let Some(ApprovedSender { channel, sender, name, .. }) = &found {
        approve(transaction, SenderKey { channel, sender }, name, now)?;
    }
    Ok(found)
}

pub(super) fn approve(
    transaction: &Transaction<'_>,
    sender: SenderKey<'_>,
    name: &str,
    now: SystemTime,
) -> rusqlite::Result<()> {
    transaction
        .execute(
            "INSERT INTO channel_sender (channel, sender, name, approved) VALUES (?1, ?2, ?3, ?4)
             ON CONFLICT (channel, sender) DO UPDATE SET name = excluded.name",
            params![sender.channel, sender.sender, name, Moment::of(now).microseconds()],
        )
        .map(drop)
}

pub(super) fn approved(connection: &Connection) -> rusqlite::Result<Vec<ApprovedSender>> {
    let mut statement = connection.prepare_cached(
        "SELECT channel, sender, name, approved FROM channel_sender ORDER BY channel, sender LIMIT ?1",
    )?;
    let rows = statement.query_map([MAX_LISTED], approved_row)?;
    rows.collect()
}

fn approved_row(row: &Row<'_>) -> rusqlite::Result<ApprovedSender> {
    Ok(ApprovedSender {
        channel: row.get(0)?,
        sender: row.get(1)?,
        name: row.get(2)?,
        approved: Moment::from_microseconds(row.get(3)?),
    })
}

pub(super) fn remove(transaction: &Transaction<'_>, sender: SenderKey<'_>) -> rusqlite::Result<bool> {
    let deleted = transaction.execute(
        "DELETE FROM channel_sender WHERE channel = ?1 AND sender = ?2",
        params![sender.channel, sender.sender],
    )?;
    Ok(deleted > 0)
}
