//! Saving and deleting the conversations of the terminal, within the limits.
//!
//! A write reads no more than its own turn: the bytes of a chat are counted with each turn. Only a chat that is over a limit is read as a
//! whole.

use hob_db::postgres::{PostgresTransaction, QueryResult, SqlText};

use crate::chat::ChatTurn;
use crate::responses::ResponseOwner;
use crate::store::limits::{Room, bounded, title};
use crate::store::turn_row::{write_attachments, write_ending};
use crate::types::{ChatId, SavedTurn, TurnNumber};

/// The lock under which chats and assistants begin, chats of the pages grow, and chats are deleted to make room. Without it, writers would not
/// see what the others add, and there would be more than the limit. A writer that has the row of a chat takes it after that row.
pub(super) const ROOM: &str = "hob.chats";

/// The size of a turn.
pub(super) const TURN_BYTES: &str = "(octet_length(question)::bigint + octet_length(answer) + octet_length(attachments) + octet_length(detail))";

pub(super) fn add(
    transaction: &mut PostgresTransaction<'_>,
    room: &Room<'_>,
    chat: Option<ChatId>,
    turn: &ChatTurn,
) -> QueryResult<SavedTurn> {
    let known = match chat {
        Some(chat) if lock(transaction, room.owner, chat)? => Some(chat),
        Some(_) | None => None,
    };
    let chat = match known {
        Some(chat) => chat,
        None => begin(transaction, room, &title(&turn.question), "")?,
    };
    add_turn(transaction, room, chat, turn)
}

pub(super) fn replace(
    transaction: &mut PostgresTransaction<'_>,
    room: &Room<'_>,
    saved: SavedTurn,
    turn: &ChatTurn,
) -> QueryResult<SavedTurn> {
    let SavedTurn { chat, number } = saved;
    if !lock(transaction, room.owner, chat)? {
        return add(transaction, room, None, turn);
    }
    let before = transaction.query_opt(
        &format!("SELECT {TURN_BYTES} FROM chat_turn WHERE chat = $1 AND number = $2"),
        &[&chat.get(), &number.get()],
    )?;
    let Some(before) = before else { return add_turn(transaction, room, chat, turn) };
    let before: i64 = before.try_get(0)?;
    let ChatTurn { question, attachments, answer, ending, model } = turn;
    let (ending, state) = write_ending(*ending);
    let row = transaction.query_one(
        &format!(
            "UPDATE chat_turn SET question = $3, attachments = $4, answer = $5, ending = $6, state = $7, model = $8, detail = ''
             WHERE chat = $1 AND number = $2 RETURNING {TURN_BYTES}"
        ),
        &[
            &chat.get(),
            &number.get(),
            &SqlText(bounded(question)),
            &SqlText(write_attachments(attachments)),
            &SqlText(bounded(answer)),
            &ending,
            &state,
            &SqlText(model),
        ],
    )?;
    let after: i64 = row.try_get(0)?;
    prune(transaction, room, chat, after - before)?;
    Ok(saved)
}

pub(super) fn forget(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    chat: ChatId,
) -> QueryResult<bool> {
    let deleted = transaction
        .execute("DELETE FROM chat WHERE id = $1 AND owner = $2", &[&chat.get(), &owner.as_str()])?;
    Ok(deleted > 0)
}

/// Keeps other writers of a chat waiting until the end of the transaction; `false` when there is none of that number.
pub(super) fn lock(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    chat: ChatId,
) -> QueryResult<bool> {
    let row = transaction.query_opt(
        "SELECT 1 FROM chat WHERE id = $1 AND owner = $2 FOR UPDATE",
        &[&chat.get(), &owner.as_str()],
    )?;
    Ok(row.is_some())
}

/// Begins a chat, under the lock of the room.
pub(super) fn begin(
    transaction: &mut PostgresTransaction<'_>,
    room: &Room<'_>,
    title: &str,
    settings: &str,
) -> QueryResult<ChatId> {
    transaction.lock(ROOM)?;
    let row = transaction.query_one(
        "INSERT INTO chat (owner, title, bytes, created, last_used, settings) VALUES ($1, $2, octet_length($4::text), $3, $3, $4) RETURNING id",
        &[&room.owner.as_str(), &SqlText(title), &room.microseconds(), &SqlText(settings)],
    )?;
    Ok(ChatId::new(row.try_get(0)?))
}

/// Adds a turn at the end of the current branch of a chat that is locked.
fn add_turn(
    transaction: &mut PostgresTransaction<'_>,
    room: &Room<'_>,
    chat: ChatId,
    turn: &ChatTurn,
) -> QueryResult<SavedTurn> {
    let ChatTurn { question, attachments, answer, ending, model } = turn;
    let (ending, state) = write_ending(*ending);
    let row = transaction.query_one(
        &format!(
            "INSERT INTO chat_turn (chat, number, parent, question, attachments, answer, ending, state, model, created)
             VALUES ($1, (SELECT coalesce(max(number), 0) + 1 FROM chat_turn WHERE chat = $1),
                coalesce(
                    (SELECT number FROM chat_turn WHERE chat = $1 AND number = (SELECT current_turn FROM chat WHERE id = $1)),
                    (SELECT max(number) FROM chat_turn WHERE chat = $1), 0),
                $2, $3, $4, $5, $6, $7, $8)
             RETURNING number, {TURN_BYTES}"
        ),
        &[
            &chat.get(),
            &SqlText(bounded(question)),
            &SqlText(write_attachments(attachments)),
            &SqlText(bounded(answer)),
            &ending,
            &state,
            &SqlText(model),
            &room.microseconds(),
        ],
    )?;
    let number: i64 = row.try_get(0)?;
    let added: i64 = row.try_get(1)?;
    let saved = SavedTurn { chat, number: TurnNumber::new(number) };
    name_untitled(transaction, chat, question)?;
    set_current(transaction, saved)?;
    let row = transaction.query_one(
        &format!(
            "WITH gone AS (
                DELETE FROM chat_turn WHERE chat = $1 AND number <= $2 RETURNING {TURN_BYTES} AS bytes)
             SELECT coalesce(sum(bytes), 0)::bigint FROM gone"
        ),
        &[&chat.get(), &(number - room.limits.turns)],
    )?;
    let gone: i64 = row.try_get(0)?;
    prune(transaction, room, chat, added - gone)?;
    Ok(saved)
}

/// The first question gives a chat its title.
pub(super) fn name_untitled(
    transaction: &mut PostgresTransaction<'_>,
    chat: ChatId,
    question: &str,
) -> QueryResult<()> {
    transaction.execute(
        "UPDATE chat SET title = $2 WHERE id = $1 AND title = ''",
        &[&chat.get(), &SqlText(title(question))],
    )?;
    Ok(())
}

pub(super) fn set_current(transaction: &mut PostgresTransaction<'_>, turn: SavedTurn) -> QueryResult<()> {
    transaction.execute(
        "UPDATE chat SET current_turn = $2 WHERE id = $1",
        &[&turn.chat.get(), &turn.number.get()],
    )?;
    Ok(())
}

/// Notes the use of a chat and its growth in bytes. Returns its bytes.
pub(super) fn touch(
    transaction: &mut PostgresTransaction<'_>,
    room: &Room<'_>,
    chat: ChatId,
    growth: i64,
) -> QueryResult<i64> {
    let row = transaction.query_one(
        "UPDATE chat SET last_used = $2, bytes = bytes + $3 WHERE id = $1 RETURNING bytes",
        &[&chat.get(), &room.microseconds(), &growth],
    )?;
    Ok(row.try_get(0)?)
}

/// The number of chats of a caller, and their bytes.
pub(super) fn totals(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
) -> QueryResult<(i64, i64)> {
    let row = transaction.query_one(
        "SELECT count(*), coalesce(sum(bytes), 0)::bigint FROM chat WHERE owner = $1",
        &[&owner.as_str()],
    )?;
    Ok((row.try_get(0)?, row.try_get(1)?))
}

/// Notes the use of a conversation and its growth in bytes, and deletes what is beyond the limits: its oldest turns, and the
/// conversations that were not used for the longest time, the pinned ones last.
fn prune(
    transaction: &mut PostgresTransaction<'_>,
    room: &Room<'_>,
    chat: ChatId,
    growth: i64,
) -> QueryResult<()> {
    if touch(transaction, room, chat, growth)? > room.limits.chat_bytes {
        prune_turns(transaction, room, chat)?;
    }
    let (chats, bytes) = totals(transaction, room.owner)?;
    match chats > room.limits.chats || bytes > room.limits.bytes {
        true => prune_chats(transaction, room, chat),
        false => Ok(()),
    }
}

/// Deletes the oldest turns of a conversation that has too many bytes.
fn prune_turns(transaction: &mut PostgresTransaction<'_>, room: &Room<'_>, chat: ChatId) -> QueryResult<()> {
    transaction.execute(
        &format!(
            "DELETE FROM chat_turn WHERE chat = $1 AND number IN (
                SELECT number FROM (
                    SELECT number,
                        row_number() OVER newest AS place,
                        sum({TURN_BYTES}) OVER newest AS total
                    FROM chat_turn WHERE chat = $1 WINDOW newest AS (ORDER BY number DESC)) AS turns
                WHERE place > 1 AND total > $2::bigint)"
        ),
        &[&chat.get(), &room.limits.chat_bytes],
    )?;
    count_bytes(transaction, chat)
}

/// Notes the size of a chat: its settings and its turns.
pub(super) fn count_bytes(transaction: &mut PostgresTransaction<'_>, chat: ChatId) -> QueryResult<()> {
    transaction.execute(
        &format!(
            "UPDATE chat SET bytes = octet_length(settings) + (
                SELECT coalesce(sum({TURN_BYTES}), 0) FROM chat_turn WHERE chat = $1)
             WHERE id = $1"
        ),
        &[&chat.get()],
    )?;
    Ok(())
}

/// Deletes the conversations that were not used for the longest time. One that another process changes now is in use, and stays.
fn prune_chats(transaction: &mut PostgresTransaction<'_>, room: &Room<'_>, chat: ChatId) -> QueryResult<()> {
    transaction.lock(ROOM)?;
    transaction.execute(
        "DELETE FROM chat WHERE id IN (
            SELECT id FROM chat WHERE id <> $1 AND id IN (
                SELECT id FROM (
                    SELECT id,
                        row_number() OVER newest AS place,
                        sum(bytes) OVER newest AS total
                    FROM chat WHERE owner = $4 WINDOW newest AS (ORDER BY pinned DESC, last_used DESC, id DESC)) AS chats
                WHERE place > $2 OR total > $3::bigint)
            FOR UPDATE SKIP LOCKED)",
        &[&chat.get(), &room.limits.chats, &room.limits.bytes, &room.owner.as_str()],
    )?;
    Ok(())
}
