//! Saving and deleting conversations, within the limits.

use std::time::SystemTime;

use hob_core::Moment;
use rusqlite::{Transaction, params};

use crate::store::limits::{MAX_BYTES, MAX_CHAT_BYTES, MAX_CHATS, MAX_TURNS, bounded, title};
use crate::types::{ChatId, ChatTurn, SavedTurn, TurnNumber};

pub(super) fn add(
    transaction: &Transaction<'_>,
    chat: Option<ChatId>,
    turn: &ChatTurn,
    now: SystemTime,
) -> rusqlite::Result<SavedTurn> {
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
    let saved = SavedTurn { chat, number: TurnNumber::new(number) };
    write_turn(transaction, saved, turn)?;
    prune(transaction, chat, now)?;
    Ok(saved)
}

pub(super) fn replace(
    transaction: &Transaction<'_>,
    saved: SavedTurn,
    turn: &ChatTurn,
    now: SystemTime,
) -> rusqlite::Result<SavedTurn> {
    if !is_saved(transaction, saved)? {
        return add(transaction, Some(saved.chat), turn, now);
    }
    write_turn(transaction, saved, turn)?;
    prune(transaction, saved.chat, now)?;
    Ok(saved)
}

pub(super) fn forget(transaction: &Transaction<'_>, chat: ChatId) -> rusqlite::Result<bool> {
    let deleted = transaction.execute("DELETE FROM chat WHERE id = ?1", [chat.get()])?;
    Ok(deleted > 0)
}

fn exists(transaction: &Transaction<'_>, chat: ChatId) -> rusqlite::Result<bool> {
    transaction.prepare_cached("SELECT 1 FROM chat WHERE id = ?1")?.exists([chat.get()])
}

fn is_saved(transaction: &Transaction<'_>, saved: SavedTurn) -> rusqlite::Result<bool> {
    transaction
        .prepare_cached("SELECT 1 FROM chat_turn WHERE chat = ?1 AND number = ?2")?
        .exists([saved.chat.get(), saved.number.get()])
}

fn begin(transaction: &Transaction<'_>, question: &str) -> rusqlite::Result<ChatId> {
    let id = transaction
        .prepare_cached("INSERT INTO chat (title, bytes, last_used) VALUES (?1, 0, 0)")?
        .insert([title(question)])?;
    Ok(ChatId::new(id))
}

fn write_turn(transaction: &Transaction<'_>, saved: SavedTurn, turn: &ChatTurn) -> rusqlite::Result<()> {
    let SavedTurn { chat, number } = saved;
    let ChatTurn { question, answer, ending, model } = turn;
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO chat_turn (chat, number, question, answer, ending, model)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
        )?
        .execute(params![
            chat.get(),
            number.get(),
            bounded(question),
            bounded(answer),
            ending.as_str(),
            model
        ])
        .map(drop)
}

/// Notes the use of a conversation, and deletes what is beyond the limits: its oldest turns, and the conversations that were not
/// used for the longest time.
fn prune(transaction: &Transaction<'_>, chat: ChatId, now: SystemTime) -> rusqlite::Result<()> {
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
        .execute([chat.get(), MAX_TURNS, MAX_CHAT_BYTES])?;
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
        .execute([chat.get(), MAX_CHATS, MAX_BYTES])
        .map(drop)
}
