//! The history of conversations.

use std::time::SystemTime;

use hob_core::Moment;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Connection, Transaction, params};

use crate::store::{Exchange, HistoryLine, MAX_LINES, MAX_THREAD_LINES, RecentLine, Speaker, ThreadKey};

impl FromSql for Speaker {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        Speaker::parse(value.as_str()?).ok_or(FromSqlError::InvalidType)
    }
}

/// The last lines of a conversation, oldest first.
pub(super) fn last_lines(
    connection: &Connection,
    thread: ThreadKey<'_>,
    most: usize,
) -> rusqlite::Result<Vec<HistoryLine>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX).min(MAX_THREAD_LINES);
    let mut statement = connection.prepare_cached(
        "SELECT speaker, sender, content FROM conversation_line
         WHERE channel = ?1 AND conversation = ?2 ORDER BY id DESC LIMIT ?3",
    )?;
    let rows = statement.query_map(params![thread.channel, thread.conversation, most], |row| {
        Ok(HistoryLine { speaker: row.get(0)?, sender: row.get(1)?, content: row.get(2)? })
    })?;
    let mut lines = rows.collect::<Result<Vec<_>, _>>()?;
    lines.reverse();
    Ok(lines)
}

pub(super) fn add_exchange(
    transaction: &Transaction<'_>,
    thread: ThreadKey<'_>,
    exchange: Exchange<'_>,
    now: SystemTime,
) -> rusqlite::Result<()> {
    let said = Moment::of(now).microseconds();
    add(transaction, thread, Speaker::Person, exchange.sender, exchange.question, said)?;
    let last = add(transaction, thread, Speaker::Hob, exchange.sender, exchange.answer, said)?;
    trim(transaction, thread, last)
}

/// Adds a message that nothing asked for.
pub(super) fn add_sent(
    transaction: &Transaction<'_>,
    thread: ThreadKey<'_>,
    content: &str,
    now: SystemTime,
) -> rusqlite::Result<()> {
    let last = add(transaction, thread, Speaker::Hob, "", content, Moment::of(now).microseconds())?;
    trim(transaction, thread, last)
}

/// The last lines of all conversations, newest first.
pub(super) fn recent(connection: &Connection, most: usize) -> rusqlite::Result<Vec<RecentLine>> {
    let mut statement = connection.prepare_cached(
        "SELECT channel, conversation, speaker, sender, content, said FROM conversation_line ORDER BY id DESC LIMIT ?1",
    )?;
    let rows = statement.query_map([i64::try_from(most).unwrap_or(i64::MAX)], |row| {
        Ok(RecentLine {
            channel: row.get(0)?,
            conversation: row.get(1)?,
            speaker: row.get(2)?,
            sender: row.get(3)?,
            content: row.get(4)?,
            said: Moment::from_microseconds(row.get(5)?),
        })
    })?;
    rows.collect()
}

/// Deletes lines beyond the limits.
fn trim(transaction: &Transaction<'_>, thread: ThreadKey<'_>, last: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "DELETE FROM conversation_line WHERE channel = ?1 AND conversation = ?2 AND id <= (
                SELECT id FROM conversation_line WHERE channel = ?1 AND conversation = ?2
                ORDER BY id DESC LIMIT 1 OFFSET ?3)",
        )?
        .execute(params![thread.channel, thread.conversation, MAX_THREAD_LINES])?;
    transaction
        .prepare_cached("DELETE FROM conversation_line WHERE id <= ?1")?
        .execute([last - MAX_LINES])
        .map(drop)
}

fn add(
    transaction: &Transaction<'_>,
    thread: ThreadKey<'_>,
    speaker: Speaker,
    sender: &str,
    content: &str,
    said: i64,
) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached(
            "INSERT INTO conversation_line (channel, conversation, speaker, sender, content, said)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .insert(params![thread.channel, thread.conversation, speaker.as_str(), sender, content, said])
}
