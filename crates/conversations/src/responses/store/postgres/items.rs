//! The items of conversations. Every change holds the lock of the row of its conversation.

use std::collections::HashSet;
use std::time::SystemTime;

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryResult, Row, SqlText};

use super::text;
use crate::responses::limits::{MAX_CONVERSATION_BYTES, MAX_CONVERSATION_ITEMS};
use crate::responses::prune::number;
use crate::responses::{
    Appended, ConversationAppend, ConversationItem, FoundItems, ItemOrder, ItemPage, ResponseOwner,
};

/// Adds items at the end: all of them or none. Returns also how many bytes they have.
pub(super) fn append(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    append: &ConversationAppend,
    now: SystemTime,
) -> QueryResult<(Appended, usize)> {
    let ConversationAppend { conversation, items } = append;
    let added: usize = items.iter().map(|item| item.item.len()).sum();
    let Some(bytes) = touch(transaction, owner, conversation, now)? else {
        return Ok((Appended::NoSuchConversation, added));
    };
    let row = transaction.query_one(
        "SELECT coalesce(max(number), 0)::bigint FROM conversation_item WHERE conversation = $1",
        &[&SqlText(conversation)],
    )?;
    let last: i64 = row.try_get(0)?;
    if !has_room(transaction, conversation, last, items.len())?
        || bytes.saturating_add(number(added)) > number(MAX_CONVERSATION_BYTES)
    {
        return Ok((Appended::Full, added));
    }
    let ids: Vec<_> = items.iter().map(|item| SqlText(item.id.as_str())).collect();
    let taken = transaction.query(
        "SELECT id FROM conversation_item WHERE conversation = $1 AND id = ANY($2)",
        &[&SqlText(conversation), &ids],
    )?;
    let mut taken = taken.iter().map(|row| text(row, 0)).collect::<Result<HashSet<_>, _>>()?;
    if let Some(item) = items.iter().find(|item| !taken.insert(item.id.clone())) {
        return Ok((Appended::IdTaken(item.id.clone()), added));
    }
    let contents: Vec<_> = items.iter().map(|item| SqlText(item.item.as_str())).collect();
    transaction.execute(
        "INSERT INTO conversation_item (conversation, number, id, item)
         SELECT $1, $2 + place, id, item FROM unnest($3::text[], $4::text[]) WITH ORDINALITY AS new (id, item, place)",
        &[&SqlText(conversation), &last, &ids, &contents],
    )?;
    transaction.execute(
        "UPDATE stored_conversation SET bytes = bytes + $2 WHERE id = $1",
        &[&SqlText(conversation), &number(added)],
    )?;
    Ok((Appended::Yes, added))
}

/// Whether a conversation takes so many more items. Numbers only grow, so the items are counted only once the last number is high.
fn has_room(
    transaction: &mut PostgresTransaction<'_>,
    conversation: &str,
    last: i64,
    added: usize,
) -> QueryResult<bool> {
    let most = number(MAX_CONVERSATION_ITEMS);
    if last.saturating_add(number(added)) <= most {
        return Ok(true);
    }
    let row = transaction.query_one(
        "SELECT count(*) FROM conversation_item WHERE conversation = $1",
        &[&SqlText(conversation)],
    )?;
    Ok(row.try_get::<_, i64>(0)?.saturating_add(number(added)) <= most)
}

/// Notes the use of a conversation, and locks its row until the end of the transaction. Returns its bytes; `None` when there is none.
fn touch(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: &str,
    now: SystemTime,
) -> QueryResult<Option<i64>> {
    let row = transaction.query_opt(
        "UPDATE stored_conversation SET last_used = $3 WHERE owner = $1 AND id = $2 RETURNING bytes",
        &[&SqlText(owner.as_str()), &SqlText(id), &Moment::of(now).microseconds()],
    )?;
    Ok(row.map(|row| row.try_get(0)).transpose()?)
}

pub(super) fn page(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: &str,
    page: &ItemPage,
    now: SystemTime,
) -> QueryResult<FoundItems> {
    if touch(transaction, owner, id, now)?.is_none() {
        return Ok(FoundItems::NoSuchConversation);
    }
    let start = match &page.after {
        None => None,
        Some(after) => {
            let row = transaction.query_opt(
                "SELECT number FROM conversation_item WHERE conversation = $1 AND id = $2",
                &[&SqlText(id), &SqlText(after)],
            )?;
            let Some(row) = row else { return Ok(FoundItems::NothingAfter) };
            Some(row.try_get::<_, i64>(0)?)
        }
    };
    let (query, start) = match page.order {
        ItemOrder::OldestFirst => (
            "SELECT id, item FROM conversation_item WHERE conversation = $1 AND number > $2 ORDER BY number LIMIT $3",
            start.unwrap_or(0),
        ),
        ItemOrder::NewestFirst => (
            "SELECT id, item FROM conversation_item WHERE conversation = $1 AND number < $2
             ORDER BY number DESC LIMIT $3",
            start.unwrap_or(i64::MAX),
        ),
    };
    // One more shows whether further ones follow.
    let limit = number(page.limit.saturating_add(1));
    let rows = transaction.query(query, &[&SqlText(id), &start, &limit])?;
    let mut items = rows.iter().map(conversation_item).collect::<Result<Vec<_>, _>>()?;
    let has_more = items.len() > page.limit;
    items.truncate(page.limit);
    Ok(FoundItems::Items { items, has_more })
}

pub(super) fn find(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: &str,
    item: &str,
) -> QueryResult<Option<ConversationItem>> {
    let row = transaction.query_opt(
        "SELECT id, item FROM conversation_item WHERE conversation = $2 AND id = $3
         AND EXISTS (SELECT 1 FROM stored_conversation WHERE owner = $1 AND id = $2)",
        &[&SqlText(owner.as_str()), &SqlText(id), &SqlText(item)],
    )?;
    row.as_ref().map(conversation_item).transpose()
}

pub(super) fn delete(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: &str,
    item: &str,
) -> QueryResult<bool> {
    let locked = transaction.query_opt(
        "SELECT 1 FROM stored_conversation WHERE owner = $1 AND id = $2 FOR UPDATE",
        &[&SqlText(owner.as_str()), &SqlText(id)],
    )?;
    if locked.is_none() {
        return Ok(false);
    }
    let deleted = transaction.query(
        "DELETE FROM conversation_item WHERE conversation = $1 AND id = $2 RETURNING item",
        &[&SqlText(id), &SqlText(item)],
    )?;
    let bytes = deleted.iter().map(|row| text(row, 0).map(|item| item.len())).sum::<Result<usize, _>>()?;
    transaction.execute(
        "UPDATE stored_conversation SET bytes = bytes - $2 WHERE id = $1",
        &[&SqlText(id), &number(bytes)],
    )?;
    Ok(!deleted.is_empty())
}

fn conversation_item(row: &Row) -> QueryResult<ConversationItem> {
    Ok(ConversationItem { id: text(row, 0)?, item: text(row, 1)? })
}
