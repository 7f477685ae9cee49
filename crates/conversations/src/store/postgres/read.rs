//! Reading conversations.

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryError, Row, SqlText};

use crate::types::{ChatId, ChatSummary, ChatTurn, Conversation, SavedTurn, TurnEnding, TurnNumber};

pub(super) fn list(
    transaction: &mut PostgresTransaction<'_>,
    most: usize,
) -> Result<Vec<ChatSummary>, QueryError> {
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = transaction.query(
        "SELECT id, title, (SELECT count(*) FROM chat_turn WHERE chat = chat.id), last_used
         FROM chat ORDER BY last_used DESC, id DESC LIMIT $1",
        &[&most],
    )?;
    rows.iter()
        .map(|row| {
            Ok(ChatSummary {
                id: ChatId::new(row.try_get(0)?),
                title: text(row, 1)?,
                turns: u64::try_from(row.try_get::<_, i64>(2)?).unwrap_or_default(),
                last_used: Moment::from_microseconds(row.try_get(3)?),
            })
        })
        .collect()
}

pub(super) fn get(
    transaction: &mut PostgresTransaction<'_>,
    chat: ChatId,
) -> Result<Option<Conversation>, QueryError> {
    let rows = transaction.query(
        "SELECT question, answer, ending, model, number FROM chat_turn WHERE chat = $1 ORDER BY number",
        &[&chat.get()],
    )?;
    let mut last = None;
    let mut turns = Vec::with_capacity(rows.len());
    for row in &rows {
        let ending: String = row.try_get(2)?;
        turns.push(ChatTurn {
            question: text(row, 0)?,
            answer: text(row, 1)?,
            ending: TurnEnding::parse(&ending).ok_or_else(|| QueryError::unreadable("ending", ending))?,
            model: text(row, 3)?,
        });
        last = Some(SavedTurn { chat, number: TurnNumber::new(row.try_get(4)?) });
    }
    Ok(last.map(|last| Conversation { turns, last }))
}

fn text(row: &Row, column: usize) -> Result<String, QueryError> {
    Ok(row.try_get::<_, SqlText<String>>(column)?.0)
}
