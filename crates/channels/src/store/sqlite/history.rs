//! What was said in a conversation, as far back as is of use.

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::DatabaseError;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Transaction, params};

use super::Conversations;

/// Lines of one conversation that are kept.
pub(crate) const KEPT_OF_ONE: i64 = 200;

/// Lines of all conversations that are kept.
pub(crate) const KEPT_OF_ALL: i64 = 100_000;

/// Which conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Thread<'a> {
    pub channel: &'a str,
    pub conversation: &'a str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Speaker {
    /// Somebody on the channel.
    Person,
    /// The house.
    Hob,
}

impl Speaker {
    fn as_str(self) -> &'static str {
        match self {
            Speaker::Person => "person",
            Speaker::Hob => "hob",
        }
    }
}

impl FromSql for Speaker {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "person" => Ok(Speaker::Person),
            "hob" => Ok(Speaker::Hob),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

/// One thing that was said.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    pub speaker: Speaker,
    /// Who asked. An answer belongs to the one it was given to.
    pub sender: String,
    pub content: String,
}

/// A question and its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exchange<'a> {
    pub sender: &'a str,
    pub question: &'a str,
    pub answer: &'a str,
}

impl Conversations {
    /// The last lines of a conversation, oldest first.
    pub fn history(&self, thread: Thread<'_>, most: usize) -> Result<Vec<Line>, DatabaseError> {
        let most = i64::try_from(most).unwrap_or(i64::MAX).min(KEPT_OF_ONE);
        let mut lines = self.database.read(|connection| {
            let mut statement = connection.prepare_cached(
                "SELECT speaker, sender, content FROM conversation_line
                 WHERE channel = ?1 AND conversation = ?2 ORDER BY id DESC LIMIT ?3",
            )?;
            let rows = statement.query_map(params![thread.channel, thread.conversation, most], |row| {
                Ok(Line { speaker: row.get(0)?, sender: row.get(1)?, content: row.get(2)? })
            })?;
            rows.collect::<Result<Vec<_>, _>>()
        })?;
        lines.reverse();
        Ok(lines)
    }

    /// Adds a question and its answer, and forgets what is too long ago.
    pub fn remember(
        &self,
        thread: Thread<'_>,
        exchange: Exchange<'_>,
        now: SystemTime,
    ) -> Result<(), DatabaseError> {
        let said = Moment::of(now).microseconds();
        self.database.write(|transaction| {
            add(transaction, thread, Speaker::Person, exchange.sender, exchange.question, said)?;
            let last = add(transaction, thread, Speaker::Hob, exchange.sender, exchange.answer, said)?;
            transaction
                .prepare_cached(
                    "DELETE FROM conversation_line WHERE channel = ?1 AND conversation = ?2 AND id <= (
                        SELECT id FROM conversation_line WHERE channel = ?1 AND conversation = ?2
                        ORDER BY id DESC LIMIT 1 OFFSET ?3)",
                )?
                .execute(params![thread.channel, thread.conversation, KEPT_OF_ONE])?;
            transaction
                .prepare_cached("DELETE FROM conversation_line WHERE id <= ?1")?
                .execute([last - KEPT_OF_ALL])?;
            Ok(())
        })
    }
}

fn add(
    transaction: &Transaction<'_>,
    thread: Thread<'_>,
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
