//! Chats of the pages: lists, changes, questions and answers.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::read;
use super::write::{begin, count_bytes, exists, name_untitled, next_number, set_current, totals, touch};
use crate::chat::{
    ChatChange, ChatChanged, ChatCursor, ChatPage, ChatPageQuery, ChatSummary, NewChat, NewQuestion,
    SavedAnswer, SavedQuestion, TurnSaved,
};
use crate::responses::ResponseOwner;
use crate::store::limits::{MAX_ANSWER_DETAIL_BYTES, MAX_TEXT_BYTES, Room};
use crate::store::turn_row::{UNANSWERED, write_attachments, write_detail, write_ending, write_settings};
use crate::store::words::match_query;
use crate::types::{ChatId, SavedTurn, TurnNumber};

pub(super) fn page(
    connection: &Connection,
    owner: &ResponseOwner,
    query: &ChatPageQuery,
) -> rusqlite::Result<ChatPage> {
    let words = query.words.as_deref().map(match_query);
    // A search for no word finds nothing.
    if matches!(words, Some(None)) {
        return Ok(ChatPage { chats: Vec::new(), next: None });
    }
    let after = query.after.unwrap_or(ChatCursor::START);
    let most = query.limit.saturating_add(1);
    let mut chats = read::page(connection, owner, words.flatten().as_deref(), after, most)?;
    let has_more = chats.len() > query.limit;
    chats.truncate(query.limit);
    let next = chats.last().filter(|_| has_more).map(ChatCursor::after);
    Ok(ChatPage { chats, next })
}

pub(super) fn create(
    transaction: &Transaction<'_>,
    room: &Room<'_>,
    chat: &NewChat,
) -> rusqlite::Result<Option<ChatSummary>> {
    let settings = write_settings(&chat.settings);
    let added = i64::try_from(settings.len()).unwrap_or(i64::MAX);
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
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    chat: ChatId,
    change: &ChatChange,
    most: i64,
) -> rusqlite::Result<ChatChanged> {
    let Some(before) = read::summary(transaction, owner, chat)? else { return Ok(ChatChanged::NoSuchChat) };
    let ChatChange { title, pinned, settings, current } = change;
    if let Some(number) = current
        && !has_turn(transaction, chat, *number)?
    {
        return Ok(ChatChanged::NoSuchTurn);
    }
    let settings = settings.clone().map(|settings| write_settings(&settings.applied_to(before.settings)));
    if let Some(settings) = &settings {
        let replaced: i64 = transaction
            .prepare_cached("SELECT octet_length(settings) FROM chat WHERE id = ?1")?
            .query_row([chat.get()], |row| row.get(0))?;
        let growth = i64::try_from(settings.len()).unwrap_or(i64::MAX).saturating_sub(replaced);
        if growth > 0 && totals(transaction, owner)?.1.saturating_add(growth) > most {
            return Ok(ChatChanged::StorageFull);
        }
    }
    if let Some(number) = current {
        set_current(transaction, SavedTurn { chat, number: *number })?;
    }
    transaction
        .prepare_cached(
            "UPDATE chat SET title = coalesce(?2, title), pinned = coalesce(?3, pinned), settings = coalesce(?4, settings)
             WHERE id = ?1",
        )?
        .execute(params![chat.get(), title, pinned.map(i64::from), settings])?;
    if settings.is_some() {
        count_bytes(transaction, chat)?;
    }
    Ok(match read::summary(transaction, owner, chat)? {
        Some(changed) => ChatChanged::Changed(Box::new(changed)),
        None => ChatChanged::NoSuchChat,
    })
}

fn has_turn(transaction: &Transaction<'_>, chat: ChatId, number: TurnNumber) -> rusqlite::Result<bool> {
    transaction
        .prepare_cached("SELECT 1 FROM chat_turn WHERE chat = ?1 AND number = ?2")?
        .exists([chat.get(), number.get()])
}

pub(super) fn add_question(
    transaction: &Transaction<'_>,
    room: &Room<'_>,
    chat: ChatId,
    new: &NewQuestion,
) -> rusqlite::Result<TurnSaved> {
    if !exists(transaction, room.owner, chat)? {
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
    let (turns, bytes): (i64, i64) = transaction
        .prepare_cached(
            "SELECT (SELECT count(*) FROM chat_turn WHERE chat = chat.id), bytes FROM chat WHERE id = ?1",
        )?
        .query_row([chat.get()], |row| Ok((row.get(0)?, row.get(1)?)))?;
    if turns >= room.limits.turns || bytes.saturating_add(added) > room.limits.chat_bytes {
        return Ok(TurnSaved::ChatFull);
    }
    if totals(transaction, room.owner)?.1.saturating_add(added) > room.limits.bytes {
        return Ok(TurnSaved::StorageFull);
    }
    let saved = SavedTurn { chat, number: next_number(transaction, chat)? };
    transaction
        .prepare_cached(
            "INSERT INTO chat_turn (chat, number, parent, question, attachments, answer, ending, state, model, created)
             VALUES (?1, ?2, ?3, ?4, ?5, '', 'stopped', ?6, '', ?7)",
        )?
        .execute(params![
            chat.get(),
            saved.number.get(),
            parent.map_or(0, TurnNumber::get),
            text,
            attachments,
            UNANSWERED,
            room.microseconds(),
        ])?;
    name_untitled(transaction, chat, text)?;
    set_current(transaction, saved)?;
    touch(transaction, room, chat)?;
    turn(transaction, saved)
}

pub(super) fn save_answer(
    transaction: &Transaction<'_>,
    room: &Room<'_>,
    saved: SavedTurn,
    answer: &SavedAnswer,
) -> rusqlite::Result<TurnSaved> {
    let SavedTurn { chat, number } = saved;
    if !exists(transaction, room.owner, chat)? {
        return Ok(TurnSaved::NoSuchChat);
    }
    let detail = write_detail(answer);
    let added = i64::try_from(answer.text.len() + detail.len()).unwrap_or(i64::MAX);
    // An answer may exceed the limits of its chat and of its caller once, because its question was admitted.
    let slack = i64::try_from(MAX_TEXT_BYTES + MAX_ANSWER_DETAIL_BYTES).unwrap_or(i64::MAX);
    let before: Option<(i64, i64)> = transaction
        .prepare_cached(
            "SELECT octet_length(answer) + octet_length(detail), chat.bytes
             FROM chat JOIN chat_turn ON chat_turn.chat = chat.id WHERE chat.id = ?1 AND number = ?2",
        )?
        .query_row([chat.get(), number.get()], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((replaced, bytes)) = before else { return Ok(TurnSaved::NoSuchTurn) };
    let growth = added.saturating_sub(replaced);
    if bytes.saturating_add(growth) > room.limits.chat_bytes.saturating_add(slack) {
        return Ok(TurnSaved::ChatFull);
    }
    let most = room.limits.bytes.saturating_add(slack);
    if growth > 0 && totals(transaction, room.owner)?.1.saturating_add(growth) > most {
        return Ok(TurnSaved::StorageFull);
    }
    let (ending, state) = write_ending(answer.ending);
    transaction
        .prepare_cached(
            "UPDATE chat_turn SET answer = ?3, detail = ?4, ending = ?5, state = ?6, model = ?7
             WHERE chat = ?1 AND number = ?2",
        )?
        .execute(params![chat.get(), number.get(), answer.text, detail, ending, state, answer.model])?;
    touch(transaction, room, chat)?;
    turn(transaction, saved)
}

fn turn(transaction: &Transaction<'_>, saved: SavedTurn) -> rusqlite::Result<TurnSaved> {
    let found = read::turn(transaction, saved)?;
    Ok(found.map_or(TurnSaved::NoSuchTurn, |turn| TurnSaved::Saved(Box::new(turn))))
}
