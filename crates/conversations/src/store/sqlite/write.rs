//! Saving and deleting the conversations of the terminal, within the limits.

use rusqlite::{Transaction, params};

use crate::chat::ChatTurn;
use crate::responses::ResponseOwner;
use crate::store::limits::{ChatLimits, Room, bounded, title};
use crate::store::turn_row::{write_attachments, write_ending};
use crate::types::{ChatId, SavedTurn, TurnNumber};

/// The size of a turn.
pub(super) const TURN_BYTES: &str =
    "octet_length(question) + octet_length(answer) + octet_length(attachments) + octet_length(detail)";

pub(super) fn add(
    transaction: &Transaction<'_>,
    room: &Room<'_>,
    chat: Option<ChatId>,
    turn: &ChatTurn,
) -> rusqlite::Result<SavedTurn> {
    let known = match chat {
        Some(chat) if exists(transaction, room.owner, chat)? => Some(chat),
        Some(_) | None => None,
    };
    let chat = match known {
        Some(chat) => chat,
        None => begin(transaction, room, &title(&turn.question), "")?,
    };
    let saved = SavedTurn { chat, number: next_number(transaction, chat)? };
    let parent = current_turn(transaction, chat)?;
    write_turn(transaction, room, saved, parent, turn)?;
    name_untitled(transaction, chat, &turn.question)?;
    set_current(transaction, saved)?;
    prune(transaction, room, chat)?;
    Ok(saved)
}

pub(super) fn replace(
    transaction: &Transaction<'_>,
    room: &Room<'_>,
    saved: SavedTurn,
    turn: &ChatTurn,
) -> rusqlite::Result<SavedTurn> {
    let SavedTurn { chat, number } = saved;
    let is_saved = exists(transaction, room.owner, chat)?
        && transaction
            .prepare_cached("SELECT 1 FROM chat_turn WHERE chat = ?1 AND number = ?2")?
            .exists([chat.get(), number.get()])?;
    if !is_saved {
        return add(transaction, room, Some(chat), turn);
    }
    // The parent of a turn that is there does not change.
    write_turn(transaction, room, saved, 0, turn)?;
    prune(transaction, room, chat)?;
    Ok(saved)
}

pub(super) fn forget(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    chat: ChatId,
) -> rusqlite::Result<bool> {
    let deleted = transaction
        .execute("DELETE FROM chat WHERE id = ?1 AND owner = ?2", params![chat.get(), owner.as_str()])?;
    Ok(deleted > 0)
}

pub(super) fn exists(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    chat: ChatId,
) -> rusqlite::Result<bool> {
    transaction
        .prepare_cached("SELECT 1 FROM chat WHERE id = ?1 AND owner = ?2")?
        .exists(params![chat.get(), owner.as_str()])
}

pub(super) fn begin(
    transaction: &Transaction<'_>,
    room: &Room<'_>,
    title: &str,
    settings: &str,
) -> rusqlite::Result<ChatId> {
    let id = transaction
        .prepare_cached(
            "INSERT INTO chat (owner, title, bytes, created, last_used, settings)
             VALUES (?1, ?2, octet_length(?4), ?3, ?3, ?4)",
        )?
        .insert(params![room.owner.as_str(), title, room.microseconds(), settings])?;
    Ok(ChatId::new(id))
}

pub(super) fn next_number(transaction: &Transaction<'_>, chat: ChatId) -> rusqlite::Result<TurnNumber> {
    transaction
        .prepare_cached("SELECT coalesce(max(number), 0) + 1 FROM chat_turn WHERE chat = ?1")?
        .query_row([chat.get()], |row| Ok(TurnNumber::new(row.get(0)?)))
}

/// The end of the current branch; 0 without turns.
fn current_turn(transaction: &Transaction<'_>, chat: ChatId) -> rusqlite::Result<i64> {
    transaction
        .prepare_cached(
            "SELECT coalesce(
                (SELECT number FROM chat_turn WHERE chat = ?1 AND number = (SELECT current_turn FROM chat WHERE id = ?1)),
                (SELECT max(number) FROM chat_turn WHERE chat = ?1), 0)",
        )?
        .query_row([chat.get()], |row| row.get(0))
}

pub(super) fn set_current(transaction: &Transaction<'_>, turn: SavedTurn) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE chat SET current_turn = ?2 WHERE id = ?1")?
        .execute([turn.chat.get(), turn.number.get()])
        .map(drop)
}

/// The first question gives a chat its title.
pub(super) fn name_untitled(
    transaction: &Transaction<'_>,
    chat: ChatId,
    question: &str,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE chat SET title = ?2 WHERE id = ?1 AND title = ''")?
        .execute(params![chat.get(), title(question)])
        .map(drop)
}

fn write_turn(
    transaction: &Transaction<'_>,
    room: &Room<'_>,
    saved: SavedTurn,
    parent: i64,
    turn: &ChatTurn,
) -> rusqlite::Result<()> {
    let ChatTurn { question, attachments, answer, ending, model } = turn;
    let (ending, state) = write_ending(*ending);
    transaction
        .prepare_cached(
            "INSERT INTO chat_turn (chat, number, parent, question, attachments, answer, ending, state, model, created)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10)
             ON CONFLICT (chat, number) DO UPDATE SET question = excluded.question, attachments = excluded.attachments,
                answer = excluded.answer, ending = excluded.ending, state = excluded.state, model = excluded.model, detail = ''",
        )?
        .execute(params![
            saved.chat.get(),
            saved.number.get(),
            parent,
            bounded(question),
            write_attachments(attachments),
            bounded(answer),
            ending,
            state,
            model,
            room.microseconds(),
        ])
        .map(drop)
}

/// Notes the use of a chat, and its size.
pub(super) fn touch(transaction: &Transaction<'_>, room: &Room<'_>, chat: ChatId) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("UPDATE chat SET last_used = ?2 WHERE id = ?1")?
        .execute([chat.get(), room.microseconds()])?;
    count_bytes(transaction, chat)
}

/// Notes the size of a chat: its settings and its turns.
pub(super) fn count_bytes(transaction: &Transaction<'_>, chat: ChatId) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(&format!(
            "UPDATE chat SET bytes = octet_length(settings) + (
                SELECT coalesce(sum({TURN_BYTES}), 0) FROM chat_turn WHERE chat = ?1)
             WHERE id = ?1"
        ))?
        .execute([chat.get()])
        .map(drop)
}

/// The number of chats of a caller, and their bytes.
pub(super) fn totals(transaction: &Transaction<'_>, owner: &ResponseOwner) -> rusqlite::Result<(i64, i64)> {
    transaction
        .prepare_cached("SELECT count(*), coalesce(sum(bytes), 0) FROM chat WHERE owner = ?1")?
        .query_row([owner.as_str()], |row| Ok((row.get(0)?, row.get(1)?)))
}

/// Notes the use of a conversation, and deletes what is beyond the limits: its oldest turns, and the conversations that were not
/// used for the longest time, the pinned ones last.
fn prune(transaction: &Transaction<'_>, room: &Room<'_>, chat: ChatId) -> rusqlite::Result<()> {
    let ChatLimits { turns, chat_bytes, chats, bytes, .. } = room.limits;
    transaction
        .prepare_cached(&format!(
            "DELETE FROM chat_turn WHERE chat = ?1 AND number IN (
                SELECT number FROM (
                    SELECT number,
                        row_number() OVER newest AS place,
                        sum({TURN_BYTES}) OVER newest AS total
                    FROM chat_turn WHERE chat = ?1 WINDOW newest AS (ORDER BY number DESC))
                WHERE place > ?2 OR (place > 1 AND total > ?3))"
        ))?
        .execute([chat.get(), turns, chat_bytes])?;
    touch(transaction, room, chat)?;
    let (saved_chats, saved_bytes) = totals(transaction, room.owner)?;
    if saved_chats <= chats && saved_bytes <= bytes {
        return Ok(());
    }
    transaction
        .prepare_cached(
            "DELETE FROM chat WHERE id <> ?1 AND id IN (
                SELECT id FROM (
                    SELECT id,
                        row_number() OVER newest AS place,
                        sum(bytes) OVER newest AS total
                    FROM chat WHERE owner = ?4 WINDOW newest AS (ORDER BY pinned DESC, last_used DESC, id DESC))
                WHERE place > ?2 OR total > ?3)",
        )?
        .execute(params![chat.get(), chats, bytes, room.owner.as_str()])
        .map(drop)
}
