//! Saved assistants.

use hob_db::postgres::{PostgresTransaction, QueryResult, Row, SqlText};

use super::read::{text, unreadable};
use super::write::ROOM;
use crate::chat::{AssistantChange, AssistantId, SavedAssistant, SavedSettings};
use crate::responses::ResponseOwner;
use crate::store::turn_row::{read_settings, write_settings};

fn assistant(row: &Row) -> QueryResult<SavedAssistant> {
    Ok(SavedAssistant {
        id: AssistantId(row.try_get(0)?),
        name: text(row, 1)?,
        settings: read_settings(&text(row, 2)?).map_err(unreadable)?,
    })
}

pub(super) fn list(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
) -> QueryResult<Vec<SavedAssistant>> {
    let rows = transaction.query(
        "SELECT id, name, settings FROM saved_assistant WHERE owner = $1 ORDER BY id",
        &[&owner.as_str()],
    )?;
    rows.iter().map(assistant).collect()
}

pub(super) fn find(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: AssistantId,
) -> QueryResult<Option<SavedAssistant>> {
    let row = transaction.query_opt(
        "SELECT id, name, settings FROM saved_assistant WHERE id = $1 AND owner = $2",
        &[&id.0, &owner.as_str()],
    )?;
    row.as_ref().map(assistant).transpose()
}

pub(super) fn create(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    name: &str,
    settings: &SavedSettings,
    most: i64,
) -> QueryResult<Option<SavedAssistant>> {
    transaction.lock(ROOM)?;
    let row =
        transaction.query_one("SELECT count(*) FROM saved_assistant WHERE owner = $1", &[&owner.as_str()])?;
    if row.try_get::<_, i64>(0)? >= most {
        return Ok(None);
    }
    let row = transaction.query_one(
        "INSERT INTO saved_assistant (owner, name, settings) VALUES ($1, $2, $3) RETURNING id",
        &[&owner.as_str(), &SqlText(name), &SqlText(write_settings(settings))],
    )?;
    let id = AssistantId(row.try_get(0)?);
    find(transaction, owner, id)
}

pub(super) fn change(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: AssistantId,
    change: &AssistantChange,
) -> QueryResult<Option<SavedAssistant>> {
    // Keeps other changes of it waiting.
    transaction.query_opt("SELECT 1 FROM saved_assistant WHERE id = $1 FOR UPDATE", &[&id.0])?;
    let Some(before) = find(transaction, owner, id)? else { return Ok(None) };
    let AssistantChange { name, settings } = change.clone();
    let after = SavedAssistant {
        id,
        name: name.unwrap_or(before.name),
        settings: match settings {
            Some(settings) => settings.applied_to(before.settings),
            None => before.settings,
        },
    };
    transaction.execute(
        "UPDATE saved_assistant SET name = $2, settings = $3 WHERE id = $1",
        &[&id.0, &SqlText(&after.name), &SqlText(write_settings(&after.settings))],
    )?;
    Ok(Some(after))
}

pub(super) fn delete(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: AssistantId,
) -> QueryResult<bool> {
    let deleted = transaction
        .execute("DELETE FROM saved_assistant WHERE id = $1 AND owner = $2", &[&id.0, &owner.as_str()])?;
    Ok(deleted > 0)
}
