//! Reading conversations.

use hob_core::Moment;
use rusqlite::Connection;
use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};

use crate::types::{ChatId, ChatSummary, ChatTurn, Conversation, SavedTurn, TurnEnding, TurnNumber};

impl FromSql for TurnEnding {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        TurnEnding::parse(value.as_str()?).ok_or(FromSqlError::InvalidType)
    }
}

pub(super) fn list(connection: &Connection, most: usize) -> rusqlite::Result<Vec<ChatSummary>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let mut statement = connection.prepare(
        "SELECT id, title, (SELECT count(*) FROM chat_turn WHERE chat = chat.id), last_used
         FROM chat ORDER BY last_used DESC, id DESC LIMIT ?1",
    )?;
    let rows = statement.query_map([most], |row| {
        Ok(ChatSummary {
            id: ChatId::new(row.get(0)?),
            title: row.get(1)?,
            turns: u64::try_from(row.get::<_, i64>(2)?).unwrap_or_default(),
            last_used: Moment::from_microseconds(row.get(3)?),
        })
    })?;
    rows.collect()
}

pub(super) fn get(connection: &Connection, chat: ChatId) -> rusqlite::Result<Option<Conversation>> {
    let mut statement = connection.prepare(
        "SELECT question, answer, ending, model, number FROM chat_turn WHERE chat = ?1 ORDER BY number",
    )?;
    let mut rows = statement.query([chat.get()])?;
    let mut turns = Vec::new();
    let mut last = None;
    while let Some(row) = rows.next()? {
        turns.push(ChatTurn {
            question: row.get(0)?,
            answer: row.get(1)?,
            ending: row.get(2)?,
            model: row.get(3)?,
        });
        last = Some(SavedTurn { chat, number: TurnNumber::new(row.get(4)?) });
    }
    Ok(last.map(|last| Conversation { turns, last }))
}
