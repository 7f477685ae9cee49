//! The history of conversations.

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryError, SqlText};

use crate::store::{Exchange, HistoryLine, MAX_LINES, MAX_THREAD_LINES, Speaker, ThreadKey};

/// The last lines of a conversation, oldest first.
pub(super) fn last_lines(
    transaction: &mut PostgresTransaction<'_>,
    thread: ThreadKey<'_>,
    most: usize,
) -> Result<Vec<HistoryLine>, QueryError> {
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
) -> Result<(), QueryError> {
    let (channel, conversation) = (SqlText(thread.channel), SqlText(thread.conversation));
    // Two processes that answer in one conversation take turns, so that the limit of its lines holds.
    transaction
        .lock(&format!("hob.channel.{}.{}", thread.channel, thread.conversation).replace('\0', "\u{1f}"))?;
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
    transaction.execute(
        "DELETE FROM conversation_line WHERE channel = $1 AND conversation = $2 AND id <= (
            SELECT id FROM conversation_line WHERE channel = $1 AND conversation = $2
            ORDER BY id DESC LIMIT 1 OFFSET $3)",
        &[&channel, &conversation, &MAX_THREAD_LINES],
    )?;
    if let Some(last) = rows.last() {
        let last: i64 = last.try_get(0)?;
        transaction.execute("DELETE FROM conversation_line WHERE id <= $1", &[&(last - MAX_LINES)])?;
    }
    Ok(())
}
