//! Chats of the pages: lists, changes, questions and answers.

use hob_db::postgres::{PostgresTransaction, QueryResult, SqlText};

use super::read;
use super::write::{ROOM, TURN_BYTES, begin, count_bytes, lock, name_untitled, set_current, totals, touch};
use crate::chat::{
    ChatChange, ChatChanged, ChatCursor, ChatPage, ChatPageQuery, ChatSummary, NewChat, NewQuestion,
    SavedAnswer, SavedQuestion, TurnSaved,
};
use crate::responses::ResponseOwner;
use crate::store::limits::{MAX_ANSWER_DETAIL_BYTES, MAX_TEXT_BYTES, Room};
use crate::store::turn_row::{UNANSWERED, write_attachments, write_detail, write_ending, write_settings};
use crate::store::words::tsquery;
use crate::types::{ChatId, SavedTurn, TurnNumber};

pub(super) fn page(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    query: &ChatPageQuery,
) -> QueryResult<ChatPage> {
    let words = query.words.as_deref().map(tsquery);
    // A search for no word finds nothing.
    if matches!(words, Some(None)) {
        return Ok(ChatPage { chats: Vec::new(), next: None });
    }
    let after = query.after.unwrap_or(ChatCursor::START);
    let most = query.limit.saturating_add(1);
    let mut chats = read::page(transaction, owner, words.flatten().as_deref(), after, most)?;
    let has_more = chats.len() > query.limit;
    chats.truncate(query.limit);
    let next = chats.last().filter(|_| has_more).map(ChatCursor::after);
    Ok(ChatPage { chats, next })
}

pub(super) fn create(
    transaction: &mut PostgresTransaction<'_>,
    room: &Room<'_>,
    chat: &NewChat,
) -> QueryResult<Option<ChatSummary>> {
    let settings = write_settings(&chat.settings);
    let added = i64::try_from(settings.len()).unwrap_or(i64::MAX);
    transaction.lock(ROOM)?;
    let (chats, bytes) = totals(transaction, room.owner)?;
    if chats >= room.limits.chats || bytes.saturating_add(added) > room.limits.bytes {
        return Ok(None);
    }
    let title = chat.title.as_deref().unwrap_or_default();
    let id = begin(transaction, room, title, &settings)?;
    read::summary(transaction, room.owner, id)
}

/// `most` is how many bytes all chats of the caller may have.
pub(super) fn change(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    chat: ChatId,
    change: &ChatChange,
    most: i64,
) -> QueryResult<ChatChanged> {
    if !lock(transaction, owner, chat)? {
        return Ok(ChatChanged::NoSuchChat);
    }
    let Some(before) = read::summary(transaction, owner, chat)? else { return Ok(ChatChanged::NoSuchChat) };
    let ChatChange { title, pinned, settings, current } = change;
    if let Some(number) = current
        && !has_turn(transaction, chat, *number)?
    {
        return Ok(ChatChanged::NoSuchTurn);
    }
    let settings = settings.clone().map(|settings| write_settings(&settings.applied_to(before.settings)));
    if let Some(settings) = &settings {
        let row = transaction
            .query_one("SELECT octet_length(settings)::bigint FROM chat WHERE id = $1", &[&chat.get()])?;
        let replaced: i64 = row.try_get(0)?;
        let growth = i64::try_from(settings.len()).unwrap_or(i64::MAX).saturating_sub(replaced);
        if growth > 0 && !has_room(transaction, owner, growth, most)? {
            return Ok(ChatChanged::StorageFull);
        }
    }
    if let Some(number) = current {
        set_current(transaction, SavedTurn { chat, number: *number })?;
    }
    transaction.execute(
        "UPDATE chat SET title = coalesce($2, title), pinned = coalesce($3, pinned), settings = coalesce($4, settings)
         WHERE id = $1",
        &[
            &chat.get(),
            &title.as_ref().map(SqlText),
            &pinned.map(i64::from),
            &settings.as_ref().map(SqlText),
        ],
    )?;
    if settings.is_some() {
        count_bytes(transaction, chat)?;
    }
    Ok(match read::summary(transaction, owner, chat)? {
        Some(changed) => ChatChanged::Changed(Box::new(changed)),
        None => ChatChanged::NoSuchChat,
    })
}

/// Whether the caller's chats may grow by so many bytes. Other writers wait until the end of the transaction, so that each sees what the
/// others add.
fn has_room(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    growth: i64,
    most: i64,
) -> QueryResult<bool> {
    transaction.lock(ROOM)?;
    let (_, bytes) = totals(transaction, owner)?;
    Ok(bytes.saturating_add(growth) <= most)
}

fn has_turn(
    transaction: &mut PostgresTransaction<'_>,
    chat: ChatId,
    number: TurnNumber,
) -> QueryResult<bool> {
    let row = transaction.query_opt(
        "SELECT 1 FROM chat_turn WHERE chat = $1 AND number = $2",
        &[&chat.get(), &number.get()],
    )?;
    Ok(row.is_some())
}

pub(super) fn add_question(
    transaction: &mut PostgresTransaction<'_>,
    room: &Room<'_>,
    chat: ChatId,
    new: &NewQuestion,
) -> QueryResult<TurnSaved> {
    if !lock(transaction, room.owner, chat)? {
        return Ok(TurnSaved::NoSuchChat);
    }
    let NewQuestion { parent, question: SavedQuestion { text, attachments } } = new;
    if let Some(parent) = parent
        && !has_turn(transaction, chat, *parent)?
    {
        return Ok(TurnSaved::NoSuchTurn);
    }
    let attachments = write_attachments(attachments);
    let added = i64::try_from(text.len() + attachments.len()).unwrap_or(i64::MAX);
    let row = transaction.query_one(
        "SELECT (SELECT count(*) FROM chat_turn WHERE chat = chat.id), bytes FROM chat WHERE id = $1",
        &[&chat.get()],
    )?;
    let (turns, bytes): (i64, i64) = (row.try_get(0)?, row.try_get(1)?);
    if turns >= room.limits.turns || bytes.saturating_add(added) > room.limits.chat_bytes {
        return Ok(TurnSaved::ChatFull);
    }
    if !has_room(transaction, room.owner, added, room.limits.bytes)? {
        return Ok(TurnSaved::StorageFull);
    }
    let row = transaction.query_one(
        &format!(
            "INSERT INTO chat_turn (chat, number, parent, question, attachments, answer, ending, state, model, created)
             VALUES ($1, (SELECT coalesce(max(number), 0) + 1 FROM chat_turn WHERE chat = $1), $2, $3, $4, '', 'stopped', $5, '', $6)
             RETURNING number, {TURN_BYTES}"
        ),
        &[
            &chat.get(),
            &parent.map_or(0, TurnNumber::get),
            &SqlText(text),
            &SqlText(attachments),
            &UNANSWERED,
            &room.microseconds(),
        ],
    )?;
    let saved = SavedTurn { chat, number: TurnNumber::new(row.try_get(0)?) };
    let growth: i64 = row.try_get(1)?;
    name_untitled(transaction, chat, text)?;
    set_current(transaction, saved)?;
    touch(transaction, room, chat, growth)?;
    turn(transaction, saved)
}

pub(super) fn save_answer(
    transaction: &mut PostgresTransaction<'_>,
    room: &Room<'_>,
    saved: SavedTurn,
    answer: &SavedAnswer,
) -> QueryResult<TurnSaved> {
    let SavedTurn { chat, number } = saved;
    if !lock(transaction, room.owner, chat)? {
        return Ok(TurnSaved::NoSuchChat);
    }
    let detail = write_detail(answer);
    let added = i64::try_from(answer.text.len() + detail.len()).unwrap_or(i64::MAX);
    // An answer may exceed the limits of its chat and of its caller once, because its question was admitted.
    let slack = i64::try_from(MAX_TEXT_BYTES + MAX_ANSWER_DETAIL_BYTES).unwrap_or(i64::MAX);
    let before = transaction.query_opt(
        "SELECT octet_length(answer)::bigint + octet_length(detail), chat.bytes
         FROM chat JOIN chat_turn ON chat_turn.chat = chat.id WHERE chat.id = $1 AND number = $2",
        &[&chat.get(), &number.get()],
    )?;
    let Some(before) = before else { return Ok(TurnSaved::NoSuchTurn) };
    let (replaced, bytes): (i64, i64) = (before.try_get(0)?, before.try_get(1)?);
    let growth = added.saturating_sub(replaced);
    if bytes.saturating_add(growth) > room.limits.chat_bytes.saturating_add(slack) {
        return Ok(TurnSaved::ChatFull);
    }
    if growth > 0 && !has_room(transaction, room.owner, growth, room.limits.bytes.saturating_add(slack))? {
        return Ok(TurnSaved::StorageFull);
    }
    let (ending, state) = write_ending(answer.ending);
    let row = transaction.query_one(
        "UPDATE chat_turn SET answer = $3, detail = $4, ending = $5, state = $6, model = $7
         WHERE chat = $1 AND number = $2 RETURNING octet_length(answer)::bigint + octet_length(detail)",
        &[
            &chat.get(),
            &number.get(),
            &SqlText(&answer.text),
            &SqlText(detail),
            &ending,
            &state,
            &SqlText(&answer.model),
        ],
    )?;
    let written: i64 = row.try_get(0)?;
    touch(transaction, room, chat, written - replaced)?;
    turn(transaction, saved)
}

fn turn(transaction: &mut PostgresTransaction<'_>, saved: SavedTurn) -> QueryResult<TurnSaved> {
    let found = read::turn(transaction, saved)?;
    Ok(found.map_or(TurnSaved::NoSuchTurn, |turn| TurnSaved::Saved(Box::new(turn))))
}
