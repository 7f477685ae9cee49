//! The history of conversations.

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult, Row, SqlText};

use crate::store::{Exchange, HistoryLine, MAX_LINES, MAX_THREAD_LINES, RecentLine, Speaker, ThreadKey};

/// The last lines of a conversation, oldest first.
pub(super) fn last_lines(
    transaction: &mut PostgresTransaction<'_>,
    thread: ThreadKey<'_>,
    most: usize,
) -> QueryResult<Vec<HistoryLine>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX).min(MAX_THREAD_LINES);
    let rows = transaction.query(
        "SELECT speaker, sender, content FROM conversation_line
         WHERE channel = $1 AND conversation = $2 ORDER BY id DESC LIMIT $3",
        &[&SqlText(thread.channel), &SqlText(thread.conversation), &most],
    )?;
    rows.iter()
        .rev()
        .map(|row| {
            let speaker: String = row.try_get(0)?;
            let (sender, content): (SqlText<String>, SqlText<String>) = (row.try_get(1)?, row.try_get(2)?);
            Ok(HistoryLine {
                speaker: Speaker::parse(&speaker)
                    .ok_or_else(|| QueryError::unreadable("speaker", speaker))?,
                sender: sender.0,
                content: content.0,
            })
        })
        .collect()
}

/// A question and its answer are one statement, so that no line of another process gets a number between them.
pub(super) fn add_exchange(
    transaction: &mut PostgresTransaction<'_>,
    thread: ThreadKey<'_>,
    exchange: Exchange<'_>,
    now: SystemTime,
) -> QueryResult<()> {
    lock(transaction, thread)?;
    let (channel, conversation) = (SqlText(thread.channel), SqlText(thread.conversation));
    let rows = transaction.query(
        "INSERT INTO conversation_line (channel, conversation, speaker, sender, content, said)
         VALUES ($1, $2, $3, $4, $5, $6), ($1, $2, $7, $4, $8, $6) RETURNING id",
        &[
            &channel,
            &conversation,
            &Speaker::Person.as_str(),
            &SqlText(exchange.sender),
            &SqlText(exchange.question),
            &Moment::of(now).microseconds(),
            &Speaker::Hob.as_str(),
            &SqlText(exchange.answer),
        ],
    )?;
    let last = rows.last().map(|row| row.try_get(0)).transpose()?;
    trim(transaction, thread, last)
}

/// Adds a message that nothing asked for.
pub(super) fn add_sent(
    transaction: &mut PostgresTransaction<'_>,
    thread: ThreadKey<'_>,
    content: &str,
    now: SystemTime,
) -> QueryResult<()> {
    lock(transaction, thread)?;
    let row = transaction.query_one(
        "INSERT INTO conversation_line (channel, conversation, speaker, sender, content, said)
         VALUES ($1, $2, $3, '', $4, $5) RETURNING id",
        &[
            &SqlText(thread.channel),
            &SqlText(thread.conversation),
            &Speaker::Hob.as_str(),
            &SqlText(content),
            &Moment::of(now).microseconds(),
        ],
    )?;
    trim(transaction, thread, Some(row.try_get(0)?))
}

/// The last lines of all conversations, newest first.
pub(super) fn recent(transaction: &mut PostgresTransaction<'_>, most: usize) -> QueryResult<Vec<RecentLine>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = transaction.query(
        "SELECT channel, conversation, speaker, sender, content, said FROM conversation_line ORDER BY id DESC LIMIT $1",
        &[&most],
    )?;
    let text = |row: &Row, column: usize| row.try_get(column).map(|SqlText(text): SqlText<String>| text);
    rows.iter()
        .map(|row| {
            let speaker: String = row.try_get(2)?;
            Ok(RecentLine {
                channel: text(row, 0)?,
                conversation: text(row, 1)?,
                speaker: Speaker::parse(&speaker)
                    .ok_or_else(|| QueryError::unreadable("speaker", speaker))?,
                sender: text(row, 3)?,
                content: text(row, 4)?,
                said: Moment::from_microseconds(row.try_get(5)?),
            })
        })
        .collect()
}

/// Two processes that write to one conversation take turns, so that the limit of its lines holds.
fn lock(transaction: &mut PostgresTransaction<'_>, thread: ThreadKey<'_>) -> QueryResult<()> {
    transaction
        .lock(&format!("hob.channel.{}.{}", thread.channel, thread.conversation).replace('\0', "\u{1f}"))
}

/// Deletes lines beyond the limits.
fn trim(
    transaction: &mut PostgresTransaction<'_>,
    thread: ThreadKey<'_>,
    last: Option<i64>,
) -> QueryResult<()> {
    let (channel, conversation) = (SqlText(thread.channel), SqlText(thread.conversation));
    transaction.execute(
        "DELETE FROM conversation_line WHERE channel = $1 AND conversation = $2 AND id <= (
            SELECT id FROM conversation_line WHERE channel = $1 AND conversation = $2
            ORDER BY id DESC LIMIT 1 OFFSET $3)",
        &[&channel, &conversation, &MAX_THREAD_LINES],
    )?;
    if let Some(last) = last {
        transaction.execute("DELETE FROM conversation_line WHERE id <= $1", &[&(last - MAX_LINES)])?;
    }
    Ok(())
}
