//! Writing conversations down, within bounds.

use std::borrow::Cow;
use std::fmt;
use std::time::SystemTime;

use hob_core::Moment;
use hob_db::DatabaseError;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use rusqlite::{Transaction, params};

use super::Chats;

/// Conversations that are kept.
pub(crate) const KEPT_CHATS: i64 = 500;

/// Bytes of all conversations that are kept.
pub(crate) const KEPT_BYTES: i64 = 64 << 20;

/// Turns of one conversation that are kept, and bytes of them.
pub(crate) const KEPT_TURNS: i64 = 2_000;
pub(crate) const KEPT_BYTES_OF_ONE: i64 = 16 << 20;

/// Bytes that are kept of one text.
pub(crate) const LONGEST_TEXT: usize = 1 << 20;

/// Stands where the rest of a text was left out.
pub(crate) const CUT: &str = "\n[the rest was too long to keep]";

/// Characters of a title.
const TITLE: usize = 200;

/// The number of a conversation, as people type it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ChatId(i64);

impl ChatId {
    /// As it was typed; `None` when it cannot be one.
    pub fn parse(text: &str) -> Option<Self> {
        text.trim().parse().ok().filter(|id| *id > 0).map(ChatId)
    }

    pub(super) fn new(id: i64) -> Self {
        ChatId(id)
    }

    pub(super) fn get(self) -> i64 {
        self.0
    }
}

impl fmt::Display for ChatId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}

/// The number of a turn in its conversation. It is the turn's for good: what comes later has a higher one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct TurnNumber(i64);

impl TurnNumber {
    pub fn new(number: i64) -> Self {
        TurnNumber(number)
    }
}

/// Where a turn is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub chat: ChatId,
    pub number: TurnNumber,
}

/// Whether an answer is whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TurnEnding {
    Complete,
    /// The person who asked stopped it.
    Stopped,
}

impl TurnEnding {
    fn as_str(self) -> &'static str {
        match self {
            TurnEnding::Complete => "complete",
            TurnEnding::Stopped => "stopped",
        }
    }
}

impl FromSql for TurnEnding {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        match value.as_str()? {
            "complete" => Ok(TurnEnding::Complete),
            "stopped" => Ok(TurnEnding::Stopped),
            _ => Err(FromSqlError::InvalidType),
        }
    }
}

/// A question and its answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Turn {
    pub question: String,
    pub answer: String,
    pub ending: TurnEnding,
    /// Who answered.
    pub model: String,
}

impl Chats {
    /// Adds a turn to a conversation, or begins one with it. Returns where it is, which is a new conversation too when the
    /// given one is gone.
    pub fn add(&self, chat: Option<ChatId>, turn: &Turn, now: SystemTime) -> Result<Kept, DatabaseError> {
        self.database.write(|transaction| add(transaction, chat, turn, now))
    }

    /// Puts a turn in the place of another. Where that is gone, adds it: what others have kept since then is not touched.
    pub fn replace(&self, kept: Kept, turn: &Turn, now: SystemTime) -> Result<Kept, DatabaseError> {
        self.database.write(|transaction| {
            if !is_kept(transaction, kept)? {
                return add(transaction, Some(kept.chat), turn, now);
            }
            write_turn(transaction, kept, turn)?;
            settle(transaction, kept.chat, now)?;
            Ok(kept)
        })
    }

    /// Forgets a conversation; `false` when there is none of that number.
    pub fn forget(&self, chat: ChatId) -> Result<bool, DatabaseError> {
        self.database.write(|transaction| {
            let gone = transaction.execute("DELETE FROM chat WHERE id = ?1", [chat.get()])?;
            Ok(gone > 0)
        })
    }
}

fn add(
    transaction: &Transaction<'_>,
    chat: Option<ChatId>,
    turn: &Turn,
    now: SystemTime,
) -> rusqlite::Result<Kept> {
    let known = match chat {
        Some(chat) if exists(transaction, chat)? => Some(chat),
        Some(_) | None => None,
    };
    let chat = match known {
        Some(chat) => chat,
        None => begin(transaction, &turn.question)?,
    };
    let number: i64 = transaction
        .prepare_cached("SELECT coalesce(max(number), 0) + 1 FROM chat_turn WHERE chat = ?1")?
        .query_row([chat.get()], |row| row.get(0))?;
    let kept = Kept { chat, number: TurnNumber(number) };
    write_turn(transaction, kept, turn)?;
    settle(transaction, chat, now)?;
    Ok(kept)
}

fn exists(transaction: &Transaction<'_>, chat: ChatId) -> rusqlite::Result<bool> {
    transaction.prepare_cached("SELECT 1 FROM chat WHERE id = ?1")?.exists([chat.get()])
}

fn is_kept(transaction: &Transaction<'_>, kept: Kept) -> rusqlite::Result<bool> {
    transaction
        .prepare_cached("SELECT 1 FROM chat_turn WHERE chat = ?1 AND number = ?2")?
        .exists([kept.chat.get(), kept.number.0])
}

fn begin(transaction: &Transaction<'_>, question: &str) -> rusqlite::Result<ChatId> {
    let words = question.split_whitespace().collect::<Vec<_>>().join(" ");
    let title: String = words.chars().take(TITLE).collect();
    let id = transaction
        .prepare_cached("INSERT INTO chat (title, bytes, last_used) VALUES (?1, 0, 0)")?
        .insert([title])?;
    Ok(ChatId::new(id))
}

fn write_turn(transaction: &Transaction<'_>, kept: Kept, turn: &Turn) -> rusqlite::Result<()> {
    let Kept { chat, number } = kept;
    let Turn { question, answer, ending, model } = turn;
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO chat_turn (chat, number, question, answer, ending, model)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![chat.get(), number.0, bounded(question), bounded(answer), ending.as_str(), model])
        .map(drop)
}

/// The text, or as much of it as is kept.
fn bounded(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST_TEXT {
        return Cow::Borrowed(text);
    }
    let end = text.floor_char_boundary(LONGEST_TEXT);
    Cow::Owned(format!("{}{CUT}", &text[..end]))
}

/// Forgets what is too much: the oldest turns of the conversation, and other conversations that were not used for longest.
fn settle(transaction: &Transaction<'_>, chat: ChatId, now: SystemTime) -> rusqlite::Result<()> {
    let used = Moment::of(now).microseconds();
    transaction
        .prepare_cached(
            "DELETE FROM chat_turn WHERE chat = ?1 AND number IN (
                SELECT number FROM (
                    SELECT number,
                        row_number() OVER newest AS place,
                        sum(octet_length(question) + octet_length(answer)) OVER newest AS total
                    FROM chat_turn WHERE chat = ?1 WINDOW newest AS (ORDER BY number DESC))
                WHERE place > ?2 OR (place > 1 AND total > ?3))",
        )?
        .execute([chat.get(), KEPT_TURNS, KEPT_BYTES_OF_ONE])?;
    transaction
        .prepare_cached(
            "UPDATE chat SET last_used = ?2, bytes = (
                SELECT coalesce(sum(octet_length(question) + octet_length(answer)), 0) FROM chat_turn WHERE chat = ?1)
             WHERE id = ?1",
        )?
        .execute([chat.get(), used])?;
    transaction
        .prepare_cached(
            "DELETE FROM chat WHERE id <> ?1 AND id IN (
                SELECT id FROM (
                    SELECT id,
                        row_number() OVER newest AS place,
                        sum(bytes) OVER newest AS total
                    FROM chat WINDOW newest AS (ORDER BY last_used DESC, id DESC))
                WHERE place > ?2 OR total > ?3)",
        )?
        .execute([chat.get(), KEPT_CHATS, KEPT_BYTES])
        .map(drop)
}
