//! Reading chats.

use hob_core::Moment;
use hob_db::UnreadableColumn;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::chat::{ChatCursor, ChatSummary, Conversation, SavedChat, TurnNode};
use crate::responses::ResponseOwner;
use crate::store::turn_row::{PARENT, TurnRow, branch, current, node, nodes, read_settings};
use crate::types::{ChatId, SavedTurn};

const SUMMARY: &str = "id, title, pinned, (SELECT count(*) FROM chat_turn WHERE chat = chat.id), created, \
                       last_used, settings";

pub(super) fn unreadable(error: UnreadableColumn) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(0, Type::Text, Box::new(error))
}

fn summary_of(row: &Row<'_>) -> rusqlite::Result<ChatSummary> {
    Ok(ChatSummary {
        id: ChatId::new(row.get(0)?),
        title: row.get(1)?,
        pinned: row.get::<_, i64>(2)? != 0,
        turns: u64::try_from(row.get::<_, i64>(3)?).unwrap_or_default(),
        created: Moment::from_microseconds(row.get(4)?),
        last_used: Moment::from_microseconds(row.get(5)?),
        settings: read_settings(&row.get::<_, String>(6)?).map_err(unreadable)?,
    })
}

/// Chats after a place in the list. `words` is a query of FTS5.
pub(super) fn page(
    connection: &Connection,
    owner: &ResponseOwner,
    words: Option<&str>,
    after: ChatCursor,
    most: usize,
) -> rusqlite::Result<Vec<ChatSummary>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let found = match words {
        Some(_) => "AND id IN (SELECT rowid >> 20 FROM chat_words WHERE chat_words MATCH ?6)",
        None => "AND ?6 IS NULL",
    };
    let mut statement = connection.prepare_cached(&format!(
        "SELECT {SUMMARY} FROM chat
         WHERE owner = ?1 AND (pinned, last_used, id) < (?2, ?3, ?4) {found}
         ORDER BY pinned DESC, last_used DESC, id DESC LIMIT ?5"
    ))?;
    let ChatCursor { pinned, last_used, id } = after;
    let rows =
        statement.query_map(params![owner.as_str(), pinned, last_used, id, most, words], summary_of)?;
    rows.collect()
}

pub(super) fn latest(connection: &Connection, owner: &ResponseOwner) -> rusqlite::Result<Option<ChatId>> {
    connection
        .prepare_cached("SELECT id FROM chat WHERE owner = ?1 ORDER BY last_used DESC, id DESC LIMIT 1")?
        .query_row([owner.as_str()], |row| Ok(ChatId::new(row.get(0)?)))
        .optional()
}

pub(super) fn summary(
    connection: &Connection,
    owner: &ResponseOwner,
    chat: ChatId,
) -> rusqlite::Result<Option<ChatSummary>> {
    connection
        .prepare_cached(&format!("SELECT {SUMMARY} FROM chat WHERE id = ?1 AND owner = ?2"))?
        .query_row(params![chat.get(), owner.as_str()], summary_of)
        .optional()
}

fn turn_of(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    Ok(TurnRow {
        number: row.get(0)?,
        parent: row.get(1)?,
        question: row.get(2)?,
        attachments: row.get(3)?,
        answer: row.get(4)?,
        detail: row.get(5)?,
        ending: row.get(6)?,
        state: row.get(7)?,
        model: row.get(8)?,
        created: row.get(9)?,
    })
}

fn turns(connection: &Connection, chat: ChatId) -> rusqlite::Result<Vec<TurnNode>> {
    let mut statement = connection.prepare_cached(
        "SELECT number, parent, question, attachments, answer, detail, ending, state, model, created
         FROM chat_turn WHERE chat = ?1 ORDER BY number",
    )?;
    let rows = statement.query_map([chat.get()], turn_of)?;
    nodes(rows.collect::<rusqlite::Result<_>>()?).map_err(unreadable)
}

/// One turn, without reading the others.
pub(super) fn turn(connection: &Connection, saved: SavedTurn) -> rusqlite::Result<Option<TurnNode>> {
    let row = connection
        .prepare_cached(&format!(
            "SELECT number, {PARENT}, question, attachments, answer, detail, ending, state, model, created
             FROM chat_turn AS turn WHERE chat = ?1 AND number = ?2"
        ))?
        .query_row([saved.chat.get(), saved.number.get()], turn_of)
        .optional()?;
    row.map(node).transpose().map_err(unreadable)
}

pub(super) fn chat(
    connection: &Connection,
    owner: &ResponseOwner,
    chat: ChatId,
) -> rusqlite::Result<Option<SavedChat>> {
    let Some(summary) = summary(connection, owner, chat)? else { return Ok(None) };
    let stored: i64 = connection
        .prepare_cached("SELECT current_turn FROM chat WHERE id = ?1")?
        .query_row([chat.get()], |row| row.get(0))?;
    let turns = turns(connection, chat)?;
    Ok(Some(SavedChat { current: current(stored, &turns), summary, turns }))
}

pub(super) fn conversation(
    connection: &Connection,
    owner: &ResponseOwner,
    id: ChatId,
) -> rusqlite::Result<Option<Conversation>> {
    let Some(found) = chat(connection, owner, id)? else { return Ok(None) };
    let (numbers, turns): (Vec<_>, Vec<_>) = branch(&found.turns, found.current).into_iter().unzip();
    let last = numbers.last().map(|number| SavedTurn { chat: id, number: *number });
    Ok(Some(Conversation { chat: id, turns, last }))
}
