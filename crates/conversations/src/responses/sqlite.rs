//! Stored responses and conversations in SQLite. Opens the database when something is first stored or looked up.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use hob_core::Moment;
use hob_db::{Database, DatabaseError, Durability, LazyDatabase};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::limits::{
    MAX_CHAIN, MAX_CHAIN_BYTES, MAX_CONVERSATION_BYTES, MAX_CONVERSATION_ITEMS, StoredLimits,
};
use super::{
    Appended, ConversationAppend, ConversationItem, ResponseChain, ResponseOwner, ResponseStore,
    StoredConversation, StoredResponse,
};

/// Responses that are stored between two looks at the limits. Looking takes longer than storing a response.
pub(super) const PRUNE_EVERY: u64 = 32;

/// A response that waits to be written.
pub(super) struct WaitingResponse {
    pub(super) owner: ResponseOwner,
    pub(super) response: StoredResponse,
    pub(super) at: SystemTime,
}

/// The responses and conversations in a database.
pub struct SqliteResponseStore {
    database: LazyDatabase,
    /// Responses that each caller stored since the start.
    saved: Mutex<HashMap<ResponseOwner, u64>>,
}

impl SqliteResponseStore {
    pub fn new(database: impl Into<LazyDatabase>) -> Self {
        SqliteResponseStore { database: database.into(), saved: Mutex::default() }
    }

    /// Stores new responses in one transaction.
    pub(super) fn save_all(&self, responses: &[Arc<WaitingResponse>]) -> Result<(), DatabaseError> {
        self.write(|transaction| {
            for one in responses {
                write_response(transaction, &one.owner, &one.response, one.at)?;
                if self.is_prune_due(&one.owner) {
                    prune_responses(transaction, &one.owner, &one.response.id, one.at)?;
                }
            }
            Ok(())
        })
    }

    fn is_prune_due(&self, owner: &ResponseOwner) -> bool {
        let mut saved = self.saved.lock().unwrap_or_else(PoisonError::into_inner);
        let count = saved.entry(owner.clone()).or_default();
        *count += 1;
        *count % PRUNE_EVERY == 1
    }

    /// A response is written for every answer, so it need not survive a power cut.
    fn write<T>(
        &self,
        work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        self.database.open()?.write_with(Durability::ProcessEnd, work)
    }

    fn read<T: Default>(
        &self,
        work: impl FnOnce(&Connection) -> rusqlite::Result<T>,
    ) -> Result<T, DatabaseError> {
        let database: Option<Database> = self.database.find()?;
        database.map_or_else(|| Ok(T::default()), |database| database.read(work))
    }
}

impl ResponseStore for SqliteResponseStore {
    fn save(
        &self,
        owner: &ResponseOwner,
        response: &StoredResponse,
        append: Option<&ConversationAppend>,
        now: SystemTime,
    ) -> Result<(), DatabaseError> {
        let is_prune_due = self.is_prune_due(owner);
        self.write(|transaction| {
            write_response(transaction, owner, response, now)?;
            if is_prune_due {
                prune_responses(transaction, owner, &response.id, now)?;
            }
            append.map_or(Ok(()), |append| append_items(transaction, owner, append, now))
        })
    }

    fn update(
        &self,
        owner: &ResponseOwner,
        response: &StoredResponse,
        append: Option<&ConversationAppend>,
        now: SystemTime,
    ) -> Result<bool, DatabaseError> {
        self.write(|transaction| {
            if find(transaction, owner, &response.id)?.is_none() {
                return Ok(false);
            }
            write_response(transaction, owner, response, now)?;
            append.map_or(Ok(()), |append| append_items(transaction, owner, append, now))?;
            Ok(true)
        })
    }

    fn renew(&self, owner: &ResponseOwner, id: &str, lease: Moment) -> Result<(), DatabaseError> {
        self.write(|transaction| {
            transaction
                .prepare_cached(
                    "UPDATE stored_response SET lease = ?3 WHERE owner = ?1 AND id = ?2 AND lease IS NOT NULL",
                )?
                .execute(params![owner.as_str(), id, lease.microseconds()])
                .map(drop)
        })
    }

    fn find(&self, owner: &ResponseOwner, id: &str) -> Result<Option<StoredResponse>, DatabaseError> {
        self.read(|connection| find(connection, owner, id))
    }

    fn chain(
        &self,
        owner: &ResponseOwner,
        id: &str,
        now: SystemTime,
    ) -> Result<ResponseChain, DatabaseError> {
        self.write(|transaction| chain(transaction, owner, id, now))
    }

    fn delete(&self, owner: &ResponseOwner, id: &str) -> Result<bool, DatabaseError> {
        self.write(|transaction| {
            let mut statement =
                transaction.prepare_cached("DELETE FROM stored_response WHERE owner = ?1 AND id = ?2")?;
            Ok(statement.execute([owner.as_str(), id])? > 0)
        })
    }

    fn create_conversation(
        &self,
        owner: &ResponseOwner,
        conversation: &StoredConversation,
    ) -> Result<(), DatabaseError> {
        let StoredConversation { id, created, metadata } = conversation;
        self.write(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO stored_conversation (id, owner, created, metadata, bytes, last_used)
                     VALUES (?1, ?2, ?3, ?4, 0, ?3)",
                )?
                .execute(params![id, owner.as_str(), created.microseconds(), metadata])?;
            prune_conversations(transaction, owner, id, created.time())
        })
    }

    fn conversation(
        &self,
        owner: &ResponseOwner,
        id: &str,
    ) -> Result<Option<StoredConversation>, DatabaseError> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT id, created, metadata FROM stored_conversation WHERE owner = ?1 AND id = ?2",
                )?
                .query_row([owner.as_str(), id], |row| {
                    let created = Moment::from_microseconds(row.get(1)?);
                    Ok(StoredConversation { id: row.get(0)?, created, metadata: row.get(2)? })
                })
                .optional()
        })
    }

    fn set_metadata(&self, owner: &ResponseOwner, id: &str, metadata: &str) -> Result<bool, DatabaseError> {
        self.write(|transaction| {
            let mut statement = transaction.prepare_cached(
                "UPDATE stored_conversation SET metadata = ?3 WHERE owner = ?1 AND id = ?2",
            )?;
            Ok(statement.execute([owner.as_str(), id, metadata])? > 0)
        })
    }

    fn delete_conversation(&self, owner: &ResponseOwner, id: &str) -> Result<bool, DatabaseError> {
        self.write(|transaction| {
            let mut statement =
                transaction.prepare_cached("DELETE FROM stored_conversation WHERE owner = ?1 AND id = ?2")?;
            Ok(statement.execute([owner.as_str(), id])? > 0)
        })
    }

    fn items(
        &self,
        owner: &ResponseOwner,
        id: &str,
        now: SystemTime,
    ) -> Result<Option<Vec<ConversationItem>>, DatabaseError> {
        self.write(|transaction| {
            if !touch_conversation(transaction, owner, id, now)? {
                return Ok(None);
            }
            let mut statement = transaction.prepare_cached(
                "SELECT id, item FROM conversation_item WHERE conversation = ?1 ORDER BY number",
            )?;
            let rows = statement
                .query_map([id], |row| Ok(ConversationItem { id: row.get(0)?, item: row.get(1)? }))?;
            rows.collect::<rusqlite::Result<_>>().map(Some)
        })
    }

    fn append(
        &self,
        owner: &ResponseOwner,
        append: &ConversationAppend,
        now: SystemTime,
    ) -> Result<Appended, DatabaseError> {
        self.write(|transaction| {
            let ConversationAppend { conversation, items } = append;
            if !touch_conversation(transaction, owner, conversation, now)? {
                return Ok(Appended::NoSuchConversation);
            }
            let (count, bytes): (i64, i64) = transaction
                .prepare_cached(
                    "SELECT (SELECT count(*) FROM conversation_item WHERE conversation = ?1), bytes
                     FROM stored_conversation WHERE id = ?1",
                )?
                .query_row([conversation], |row| Ok((row.get(0)?, row.get(1)?)))?;
            let added: usize = items.iter().map(|item| item.item.len()).sum();
            let has_room = fits(count, items.len(), MAX_CONVERSATION_ITEMS)
                && fits(bytes, added, MAX_CONVERSATION_BYTES);
            if !has_room {
                return Ok(Appended::Full);
            }
            append_items(transaction, owner, append, now)?;
            Ok(Appended::Yes)
        })
    }

    fn delete_item(&self, owner: &ResponseOwner, id: &str, item: &str) -> Result<bool, DatabaseError> {
        self.write(|transaction| {
            let deleted = transaction
                .prepare_cached(
                    "DELETE FROM conversation_item WHERE conversation = ?2 AND id = ?3
                     AND EXISTS (SELECT 1 FROM stored_conversation WHERE owner = ?1 AND id = ?2)",
                )?
                .execute([owner.as_str(), id, item])?;
            count_bytes(transaction, id)?;
            Ok(deleted > 0)
        })
    }
}

fn fits(there: i64, added: usize, limit: usize) -> bool {
    usize::try_from(there).is_ok_and(|there| there.saturating_add(added) <= limit)
}

fn number(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}

const COLUMNS: &str = "id, previous, body, input, lease";

fn response(row: &Row<'_>) -> rusqlite::Result<StoredResponse> {
    Ok(StoredResponse {
        id: row.get(0)?,
        previous: row.get(1)?,
        body: row.get(2)?,
        input: row.get(3)?,
        lease: row.get::<_, Option<i64>>(4)?.map(Moment::from_microseconds),
    })
}

fn find(
    connection: &Connection,
    owner: &ResponseOwner,
    id: &str,
) -> rusqlite::Result<Option<StoredResponse>> {
    connection
        .prepare_cached(&format!("SELECT {COLUMNS} FROM stored_response WHERE owner = ?1 AND id = ?2"))?
        .query_row([owner.as_str(), id], response)
        .optional()
}

fn chain(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    id: &str,
    now: SystemTime,
) -> rusqlite::Result<ResponseChain> {
    let mut touch = transaction.prepare_cached("UPDATE stored_response SET last_used = ?2 WHERE id = ?1")?;
    let mut responses = Vec::new();
    let mut bytes = 0;
    let mut next = Some(id.to_owned());
    while let Some(id) = next.take() {
        if responses.len() == MAX_CHAIN || bytes > MAX_CHAIN_BYTES {
            return Ok(ResponseChain::TooLong);
        }
        let Some(response) = find(transaction, owner, &id)? else { return Ok(ResponseChain::Missing(id)) };
        touch.execute(params![id, Moment::of(now).microseconds()])?;
        bytes += response.body.len() + response.input.len();
        next.clone_from(&response.previous);
        responses.push(response);
    }
    responses.reverse();
    Ok(ResponseChain::Whole(responses))
}

fn write_response(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    response: &StoredResponse,
    now: SystemTime,
) -> rusqlite::Result<()> {
    let StoredResponse { id, previous, body, input, lease } = response;
    transaction
        .prepare_cached(
            "INSERT OR REPLACE INTO stored_response (id, owner, previous, body, input, lease, bytes, last_used)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
        )?
        .execute(params![
            id,
            owner.as_str(),
            previous,
            body,
            input,
            lease.map(Moment::microseconds),
            number(body.len() + input.len()),
            Moment::of(now).microseconds()
        ])
        .map(drop)
}

/// Notes the use of a conversation; `false` when there is none.
fn touch_conversation(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    id: &str,
    now: SystemTime,
) -> rusqlite::Result<bool> {
    let mut statement = transaction
        .prepare_cached("UPDATE stored_conversation SET last_used = ?3 WHERE owner = ?1 AND id = ?2")?;
    Ok(statement.execute(params![owner.as_str(), id, Moment::of(now).microseconds()])? > 0)
}

/// Adds items to a conversation. One that was deleted meanwhile gets none.
fn append_items(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    append: &ConversationAppend,
    now: SystemTime,
) -> rusqlite::Result<()> {
    let ConversationAppend { conversation, items } = append;
    if !touch_conversation(transaction, owner, conversation, now)? {
        return Ok(());
    }
    let mut statement = transaction.prepare_cached(
        "INSERT INTO conversation_item (conversation, number, id, item)
         VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM conversation_item WHERE conversation = ?1), ?2, ?3)",
    )?;
    for ConversationItem { id, item } in items {
        statement.execute([conversation, id, item])?;
    }
    count_bytes(transaction, conversation)?;
    prune_conversations(transaction, owner, conversation, now)
}

fn count_bytes(transaction: &Transaction<'_>, conversation: &str) -> rusqlite::Result<()> {
    transaction
        .prepare_cached(
            "UPDATE stored_conversation SET bytes = (
                SELECT coalesce(sum(octet_length(item)), 0) FROM conversation_item WHERE conversation = ?1)
             WHERE id = ?1",
        )?
        .execute([conversation])
        .map(drop)
}

fn prune_responses(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    newest: &str,
    now: SystemTime,
) -> rusqlite::Result<()> {
    let StoredLimits { responses, response_bytes, .. } = StoredLimits::of(owner);
    prune(transaction, "stored_response", owner, newest, now, (responses, response_bytes))
}

fn prune_conversations(
    transaction: &Transaction<'_>,
    owner: &ResponseOwner,
    newest: &str,
    now: SystemTime,
) -> rusqlite::Result<()> {
    let StoredLimits { conversations, conversation_bytes, .. } = StoredLimits::of(owner);
    prune(transaction, "stored_conversation", owner, newest, now, (conversations, conversation_bytes))
}

/// Deletes the rows of a caller beyond a number and a size, those first that were not used for the longest time, and old ones.
/// `newest` stays.
fn prune(
    transaction: &Transaction<'_>,
    table: &str,
    owner: &ResponseOwner,
    newest: &str,
    now: SystemTime,
    (count, bytes): (usize, usize),
) -> rusqlite::Result<()> {
    let oldest = now.checked_sub(StoredLimits::of(owner).age);
    let oldest = oldest.map_or(0, |oldest| Moment::of(oldest).microseconds());
    transaction
        .prepare_cached(&format!(
            "DELETE FROM {table} WHERE owner = ?1 AND id <> ?2 AND (last_used < ?3 OR rowid IN (
                SELECT rowid FROM (
                    SELECT rowid,
                        row_number() OVER newest AS place,
                        sum(bytes) OVER newest AS total
                    FROM {table} WHERE owner = ?1
                    WINDOW newest AS (ORDER BY last_used DESC, rowid DESC))
                WHERE place > ?4 OR total > ?5))"
        ))?
        .execute(params![owner.as_str(), newest, oldest, number(count), number(bytes)])
        .map(drop)
}
