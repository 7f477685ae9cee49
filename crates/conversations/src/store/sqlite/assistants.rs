//! Saved assistants.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::read::unreadable;
use crate::chat::{AssistantChange, AssistantId, SavedAssistant, SavedSettings};
use crate::responses::ResponseOwner;
use crate::store::turn_row::{read_settings, write_settings};

fn assistant(row: &Row<'_>) -> rusqlite::Result<SavedAssistant> {
    Ok(SavedAssistant {
        id: AssistantId(row.get(0)?),
        name: row.get(1)?,
        settings: read_settings(&row.get::<_, String>(2)?).map_err(unreadable)?,
    })
}

pub(super) fn list(connection: &Connection, owner: &ResponseOwner) -> rusqlite::Result<Vec<SavedAssistant>> {
    let mut statement = connection
        .prepare_cached("SELECT id, name, settings FROM saved_assistant WHERE owner = ?1 ORDER BY id")?;
    let rows = statement.query_map([owner.as_str()], assistant)?;
    rows.collect()
}

pub(super) fn find(
    connection: &Connection,
    owner: &ResponseOwner,
    id: AssistantId,
) -> rusqlite::Result<Option<SavedAssistant>> {
    connection
        .prepare_cached("SELECT id, name, settings FROM saved_assistant WHERE id = ?1 AND owner = ?2")?
        .query_row(params![id.0, owner.as_str()], assistant)
        .optional()
}

pub(super) fn create(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    name: &str,
    settings: &SavedSettings,
    most: i64,
) -> rusqlite::Result<Option<SavedAssistant>> {
    let saved: i64 = transaction
        .prepare_cached("SELECT count(*) FROM saved_assistant WHERE owner = ?1")?
        .query_row([owner.as_str()], |row| row.get(0))?;
    if saved >= most {
        return Ok(None);
    }
    let id = transaction
        .prepare_cached("INSERT INTO saved_assistant (owner, name, settings) VALUES (?1, ?2, ?3)")?
        .insert(params![owner.as_str(), name, write_settings(settings)])?;
    find(transaction, owner, AssistantId(id))
}

pub(super) fn change(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    id: AssistantId,
    change: &AssistantChange,
) -> rusqlite::Result<Option<SavedAssistant>> {
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
    transaction
        .prepare_cached("UPDATE saved_assistant SET name = ?2, settings = ?3 WHERE id = ?1")?
        .execute(params![id.0, after.name, write_settings(&after.settings)])?;
    Ok(Some(after))
}

pub(super) fn delete(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    id: AssistantId,
) -> rusqlite::Result<bool> {
    let deleted = transaction
        .execute("DELETE FROM saved_assistant WHERE id = ?1 AND owner = ?2", params![id.0, owner.as_str()])?;
    Ok(deleted > 0)
}
