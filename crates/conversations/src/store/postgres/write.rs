//! Saving and deleting conversations, within the limits.
//!
//! A write reads no more than its own turn: the bytes of a conversation are counted with each turn, and its turns have no gaps. Only
//! a conversation that is over a limit is read as a whole.

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryError, SqlText};

use crate::store::limits::{MAX_BYTES, MAX_CHAT_BYTES, MAX_CHATS, MAX_TURNS, bounded, title};
use crate::types::{ChatId, ChatTurn, SavedTurn, TurnNumber};

/// The lock under which conversations begin and are deleted to make room. Without it, processes that begin one each would not see
/// those of the others, and there would be more than the limit.
const ROOM: &str = "hob.chats";

pub(super) fn add(
    transaction: &mut PostgresTransaction<'_>,
    chat: Option<ChatId>,
    turn: &ChatTurn,
    now: SystemTime,
) -> Result<SavedTurn, QueryError> {
    let known = match chat {
        Some(chat) if lock(transaction, chat)? => Some(chat),
        Some(_) | None => None,
    };
    let chat = match known {
        Some(chat) => chat,
        None => begin(transaction, &turn.question)?,
    };
    add_turn(transaction, chat, turn, now)
}

pub(super) fn replace(
    transaction: &mut PostgresTransaction<'_>,
    saved: SavedTurn,
    turn: &ChatTurn,
    now: SystemTime,
) -> Result<SavedTurn, QueryError> {
    let SavedTurn { chat, number } = saved;
    if !lock(transaction, chat)? {
        return add(transaction, None, turn, now);
    }
    let before = transaction.query_opt(
        "SELECT octet_length(question)::bigint + octet_length(answer) FROM chat_turn WHERE chat = $1 AND number = $2",
        &[&chat.get(), &number.get()],
    )?;
    let Some(before) = before else { return add_turn(transaction, chat, turn, now) };
    let before: i64 = before.try_get(0)?;
    let ChatTurn { question, answer, ending, model } = turn;
    let row = transaction.query_one(
        "UPDATE chat_turn SET question = $3, answer = $4, ending = $5, model = $6 WHERE chat = $1 AND number = $2
         RETURNING octet_length(question)::bigint + octet_length(answer)",
        &[
            &chat.get(),
            &number.get(),
            &SqlText(bounded(question)),
            &SqlText(bounded(answer)),
            &ending.as_str(),
            &SqlText(model),
        ],
    )?;
    let after: i64 = row.try_get(0)?;
    prune(transaction, chat, after - before, now)?;
    Ok(saved)
}

pub(super) fn forget(transaction: &mut PostgresTransaction<'_>, chat: ChatId) -> Result<bool, QueryError> {
    Ok(transaction.execute("DELETE FROM chat WHERE id = $1", &[&chat.get()])? > 0)
}

/// Keeps other writers of a conversation waiting until the end of the transaction; `false` when there is none of that number.
fn lock(transaction: &mut PostgresTransaction<'_>, chat: ChatId) -> Result<bool, QueryError> {
    let found = transaction.query_opt("SELECT 1 FROM chat WHERE id = $1 FOR UPDATE", &[&chat.get()])?;
    Ok(found.is_some())
}

fn begin(transaction: &mut PostgresTransaction<'_>, question: &str) -> Result<ChatId, QueryError> {
    transaction.lock(ROOM)?;
    let row = transaction.query_one(
        "INSERT INTO chat (title, bytes, last_used) VALUES ($1, 0, 0) RETURNING id",
        &[&SqlText(title(question))],
    )?;
    Ok(ChatId::new(row.try_get(0)?))
}

/// Adds a turn at the end of a conversation that is locked.
fn add_turn(
    transaction: &mut PostgresTransaction<'_>,
    chat: ChatId,
    turn: &ChatTurn,
    now: SystemTime,
) -> Result<SavedTurn, QueryError> {
    let ChatTurn { question, answer, ending, model } = turn;
    let row = transaction.query_one(
        "INSERT INTO chat_turn (chat, number, question, answer, ending, model)
         VALUES ($1, (SELECT coalesce(max(number), 0) + 1 FROM chat_turn WHERE chat = $1), $2, $3, $4, $5)
         RETURNING number, octet_length(question)::bigint + octet_length(answer)",
        &[
            &chat.get(),
            &SqlText(bounded(question)),
            &SqlText(bounded(answer)),
            &ending.as_str(),
            &SqlText(model),
        ],
    )?;
    let number: i64 = row.try_get(0)?;
    let added: i64 = row.try_get(1)?;
    let row = transaction.query_one(
        "WITH gone AS (
            DELETE FROM chat_turn WHERE chat = $1 AND number <= $2 RETURNING octet_length(question)::bigint + octet_length(answer) AS bytes)
         SELECT coalesce(sum(bytes), 0)::bigint FROM gone",
        &[&chat.get(), &(number - MAX_TURNS)],
    )?;
    let gone: i64 = row.try_get(0)?;
    prune(transaction, chat, added - gone, now)?;
    Ok(SavedTurn { chat, number: TurnNumber::new(number) })
}

/// Notes the use of a conversation and its growth in bytes, and deletes what is beyond the limits: its oldest turns, and the
/// conversations that were not used for the longest time.
fn prune(
    transaction: &mut PostgresTransaction<'_>,
    chat: ChatId,
    growth: i64,
    now: SystemTime,
) -> Result<(), QueryError> {
    let row = transaction.query_one(
        "UPDATE chat SET last_used = $2, bytes = bytes + $3 WHERE id = $1 RETURNING bytes",
        &[&chat.get(), &Moment::of(now).microseconds(), &growth],
    )?;
    if row.try_get::<_, i64>(0)? > MAX_CHAT_BYTES {
        prune_turns(transaction, chat)?;
    }
    let row = transaction.query_one("SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM chat", &[])?;
    let (chats, bytes): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    match chats > MAX_CHATS || bytes > MAX_BYTES {
        true => prune_chats(transaction, chat),
        false => Ok(()),
    }
}

/// Deletes the oldest turns of a conversation that has too many bytes.
fn prune_turns(transaction: &mut PostgresTransaction<'_>, chat: ChatId) -> Result<(), QueryError> {
    transaction.execute(
        "DELETE FROM chat_turn WHERE chat = $1 AND number IN (
            SELECT number FROM (
                SELECT number,
                    row_number() OVER newest AS place,
                    sum(octet_length(question)::bigint + octet_length(answer)) OVER newest AS total
                FROM chat_turn WHERE chat = $1 WINDOW newest AS (ORDER BY number DESC)) AS turns
            WHERE place > 1 AND total > $2::bigint)",
        &[&chat.get(), &MAX_CHAT_BYTES],
    )?;
    transaction.execute(
        "UPDATE chat SET bytes = (
            SELECT coalesce(sum(octet_length(question)::bigint + octet_length(answer)), 0) FROM chat_turn WHERE chat = $1)
         WHERE id = $1",
        &[&chat.get()],
    )?;
    Ok(())
}

/// Deletes the conversations that were not used for the longest time. One that another process changes now is in use, and stays.
fn prune_chats(transaction: &mut PostgresTransaction<'_>, chat: ChatId) -> Result<(), QueryError> {
    transaction.lock(ROOM)?;
    transaction.execute(
        "DELETE FROM chat WHERE id IN (
            SELECT id FROM chat WHERE id <> $1 AND id IN (
                SELECT id FROM (
                    SELECT id,
                        row_number() OVER newest AS place,
                        sum(bytes) OVER newest AS total
                    FROM chat WINDOW newest AS (ORDER BY last_used DESC, id DESC)) AS chats
                WHERE place > $2 OR total > $3::bigint)
            FOR UPDATE SKIP LOCKED)",
        &[&chat.get(), &MAX_CHATS, &MAX_BYTES],
    )?;
    Ok(())
}
