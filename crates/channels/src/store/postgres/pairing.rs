//! Approved senders, and those who wait.

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryResult, Row, SqlText};

use crate::store::pairing::{
    ApprovedSender, MAX_LISTED, MAX_PENDING, NewPairing, PairingOutcome, PendingSender, SenderKey,
};

pub(super) fn is_approved(
    transaction: &mut PostgresTransaction<'_>,
    sender: SenderKey<'_>,
) -> QueryResult<bool> {
    let row = transaction.query_one(
        "SELECT EXISTS (SELECT 1 FROM channel_sender WHERE channel = $1 AND sender = $2)",
        &[&SqlText(sender.channel), &SqlText(sender.sender)],
    )?;
    Ok(row.try_get(0)?)
}

pub(super) fn begin(
    transaction: &mut PostgresTransaction<'_>,
    pairing: NewPairing<'_>,
    now: SystemTime,
) -> QueryResult<PairingOutcome> {
    let NewPairing { sender: SenderKey { channel, sender }, name, code, ends } = pairing;
    let now = Moment::of(now).microseconds();
    transaction.execute("DELETE FROM channel_pairing WHERE ends <= $1", &[&now])?;
    let row = transaction.query_one(
        "SELECT EXISTS (SELECT 1 FROM channel_pairing WHERE channel = $1 AND sender = $2)",
        &[&SqlText(channel), &SqlText(sender)],
    )?;
    if row.try_get(0)? {
        return Ok(PairingOutcome::Waiting);
    }
    let row = transaction
        .query_one("SELECT count(*) FROM channel_pairing WHERE channel = $1", &[&SqlText(channel)])?;
    if row.try_get::<_, i64>(0)? >= MAX_PENDING {
        return Ok(PairingOutcome::Full);
    }
    // Another process may have begun it since.
    let begun = transaction.execute(
        "INSERT INTO channel_pairing (channel, sender, name, code, ends) VALUES ($1, $2, $3, $4, $5)
         ON CONFLICT (channel, sender) DO NOTHING",
        &[
            &SqlText(channel),
            &SqlText(sender),
            &SqlText(name),
            &SqlText(code),
            &Moment::of(ends).microseconds(),
        ],
    )?;
    Ok(if begun > 0 { PairingOutcome::Begun } else { PairingOutcome::Waiting })
}

pub(super) fn pending(
    transaction: &mut PostgresTransaction<'_>,
    now: SystemTime,
) -> QueryResult<Vec<PendingSender>> {
    let rows = transaction.query(
        "SELECT channel, sender, name, code, ends FROM channel_pairing WHERE ends > $1 ORDER BY ends, code",
        &[&Moment::of(now).microseconds()],
    )?;
    rows.iter()
        .map(|row| {
            Ok(PendingSender {
                channel: text(row, 0)?,
                sender: text(row, 1)?,
                name: text(row, 2)?,
                code: text(row, 3)?,
                ends: Moment::from_microseconds(row.try_get(4)?),
            })
        })
        .collect()
}

pub(super) fn approve_code(
    transaction: &mut PostgresTransaction<'_>,
    code: &str,
    now: SystemTime,
) -> QueryResult<Option<ApprovedSender>> {
    let approved = Moment::of(now);
    let row = transaction.query_opt(
        "DELETE FROM channel_pairing WHERE code = $1 AND ends > $2 RETURNING channel, sender, name",
        &[&SqlText(code), &approved.microseconds()],
    )?;
    let Some(row) = row else { return Ok(None) };
    let found =
        ApprovedSender { channel: text(&row, 0)?, sender: text(&row, 1)?, name: text(&row, 2)?, approved };
    let sender = SenderKey { channel: &found.channel, sender: &found.sender };
    approve(transaction, sender, &found.name, now)?;
    Ok(Some(found))
}

pub(super) fn approve(
    transaction: &mut PostgresTransaction<'_>,
    sender: SenderKey<'_>,
    name: &str,
    now: SystemTime,
) -> QueryResult<()> {
    transaction
        .execute(
            "INSERT INTO channel_sender (channel, sender, name, approved) VALUES ($1, $2, $3, $4)
             ON CONFLICT (channel, sender) DO UPDATE SET name = excluded.name",
            &[
                &SqlText(sender.channel),
                &SqlText(sender.sender),
                &SqlText(name),
                &Moment::of(now).microseconds(),
            ],
        )
        .map(drop)
}

pub(super) fn approved(transaction: &mut PostgresTransaction<'_>) -> QueryResult<Vec<ApprovedSender>> {
    let rows = transaction.query(
        "SELECT channel, sender, name, approved FROM channel_sender ORDER BY channel, sender LIMIT $1",
        &[&MAX_LISTED],
    )?;
    rows.iter()
        .map(|row| {
            Ok(ApprovedSender {
                channel: text(row, 0)?,
                sender: text(row, 1)?,
                name: text(row, 2)?,
                approved: Moment::from_microseconds(row.try_get(3)?),
            })
        })
        .collect()
}

pub(super) fn remove(transaction: &mut PostgresTransaction<'_>, sender: SenderKey<'_>) -> QueryResult<bool> {
    let deleted = transaction.execute(
        "DELETE FROM channel_sender WHERE channel = $1 AND sender = $2",
        &[&SqlText(sender.channel), &SqlText(sender.sender)],
    )?;
    Ok(deleted > 0)
}

fn text(row: &Row, column: usize) -> QueryResult<String> {
    Ok(row.try_get::<_, SqlText<String>>(column)?.0)
}
