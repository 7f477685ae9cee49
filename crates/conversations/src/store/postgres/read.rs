//! Reading chats.

use hob_core::Moment;
use hob_db::UnreadableColumn;
use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult, Row, SqlText};

use crate::chat::{ChatCursor, ChatSummary, Conversation, SavedChat, TurnNode};
use crate::responses::ResponseOwner;
use crate::store::turn_row::{PARENT, TurnRow, branch, current, node, nodes, read_settings};
use crate::types::{ChatId, SavedTurn};

const SUMMARY: &str = "id, title, pinned, (SELECT count(*) FROM chat_turn WHERE chat = chat.id), created, \
                       last_used, settings";

pub(super) fn unreadable(error: UnreadableColumn) -> QueryError {
    QueryError::unreadable(error.column, error)
}

pub(super) fn text(row: &Row, column: usize) -> QueryResult<String> {
    Ok(row.try_get::<_, SqlText<String>>(column)?.0)
}

fn summary_of(row: &Row) -> QueryResult<ChatSummary> {
    Ok(ChatSummary {
        id: ChatId::new(row.try_get(0)?),
        title: text(row, 1)?,
        pinned: row.try_get::<_, i64>(2)? != 0,
        turns: u64::try_from(row.try_get::<_, i64>(3)?).unwrap_or_default(),
        created: Moment::from_microseconds(row.try_get(4)?),
        last_used: Moment::from_microseconds(row.try_get(5)?),
        settings: read_settings(&text(row, 6)?).map_err(unreadable)?,
    })
}

/// Chats after a place in the list. `words` is a `tsquery`.
pub(super) fn page(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    words: Option<&str>,
    after: ChatCursor,
    most: usize,
) -> QueryResult<Vec<ChatSummary>> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let found = match words {
        Some(_) => {
            "AND id IN (
                SELECT id FROM chat WHERE owner = $1 AND words @@ $6::text::tsquery
                UNION SELECT chat FROM chat_turn WHERE words @@ $6::text::tsquery)"
        }
        None => "AND $6::text IS NULL",
    };
    let ChatCursor { pinned, last_used, id } = after;
    let rows = transaction.query(
        &format!(
            "SELECT {SUMMARY} FROM chat
             WHERE owner = $1 AND (pinned, last_used, id) < ($2, $3, $4) {found}
             ORDER BY pinned DESC, last_used DESC, id DESC LIMIT $5"
        ),
        &[&owner.as_str(), &pinned, &last_used, &id, &most, &words],
    )?;
    rows.iter().map(summary_of).collect()
}

pub(super) fn latest(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
) -> QueryResult<Option<ChatId>> {
    let row = transaction.query_opt(
        "SELECT id FROM chat WHERE owner = $1 ORDER BY last_used DESC, id DESC LIMIT 1",
        &[&owner.as_str()],
    )?;
    row.map(|row| Ok(ChatId::new(row.try_get(0)?))).transpose()
}

pub(super) fn summary(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    chat: ChatId,
) -> QueryResult<Option<ChatSummary>> {
    let row = transaction.query_opt(
        &format!("SELECT {SUMMARY} FROM chat WHERE id = $1 AND owner = $2"),
        &[&chat.get(), &owner.as_str()],
    )?;
    row.as_ref().map(summary_of).transpose()
}

fn turn_of(row: &Row) -> QueryResult<TurnRow> {
    Ok(TurnRow {
        number: row.try_get(0)?,
        parent: row.try_get(1)?,
        question: text(row, 2)?,
        attachments: text(row, 3)?,
        answer: text(row, 4)?,
        detail: text(row, 5)?,
        ending: text(row, 6)?,
        state: text(row, 7)?,
        model: text(row, 8)?,
        created: row.try_get(9)?,
    })
}

fn turns(transaction: &mut PostgresTransaction<'_>, chat: ChatId) -> QueryResult<Vec<TurnNode>> {
    let rows = transaction.query(
        "SELECT number, parent, question, attachments, answer, detail, ending, state, model, created
         FROM chat_turn WHERE chat = $1 ORDER BY number",
        &[&chat.get()],
    )?;
    let rows = rows.iter().map(turn_of).collect::<Result<Vec<_>, _>>()?;
    nodes(rows).map_err(unreadable)
}

/// One turn, without reading the others.
pub(super) fn turn(
    transaction: &mut PostgresTransaction<'_>,
    saved: SavedTurn,
) -> QueryResult<Option<TurnNode>> {
    let row = transaction.query_opt(
        &format!(
            "SELECT number, {PARENT}, question, attachments, answer, detail, ending, state, model, created
             FROM chat_turn AS turn WHERE chat = $1 AND number = $2"
        ),
        &[&saved.chat.get(), &saved.number.get()],
    )?;
    let row = row.as_ref().map(turn_of).transpose()?;
    row.map(node).transpose().map_err(unreadable)
}

pub(super) fn chat(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    chat: ChatId,
) -> QueryResult<Option<SavedChat>> {
    let Some(summary) = summary(transaction, owner, chat)? else { return Ok(None) };
    let stored: i64 =
        transaction.query_one("SELECT current_turn FROM chat WHERE id = $1", &[&chat.get()])?.try_get(0)?;
    let turns = turns(transaction, chat)?;
    Ok(Some(SavedChat { current: current(stored, &turns), summary, turns }))
}

pub(super) fn conversation(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: ChatId,
) -> QueryResult<Option<Conversation>> {
    let Some(found) = chat(transaction, owner, id)? else { return Ok(None) };
    let (numbers, turns): (Vec<_>, Vec<_>) = branch(&found.turns, found.current).into_iter().unzip();
    let last = numbers.last().map(|number| SavedTurn { chat: id, number: *number });
    Ok(Some(Conversation { chat: id, turns, last }))
}
