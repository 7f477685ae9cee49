//! Stored responses and conversations in SQLite. Opens the database when something is first stored or looked up.

mod prune;

use std::collections::HashSet;
use std::sync::Arc;
use std::time::SystemTime;

use hob_core::Moment;
use hob_db::{Database, DbResult, Durability, LazyDatabase};
use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use crate::responses::limits::{MAX_CHAIN, MAX_CHAIN_BYTES, MAX_CONVERSATION_BYTES, MAX_CONVERSATION_ITEMS};
use crate::responses::prune::{PruneSchedule, Stored, number};
use crate::responses::{
    Appended, ConversationAppend, ConversationItem, FoundItems, ItemOrder, ItemPage, ResponseChain,
    ResponseLease, ResponseOwner, ResponseStore, StoredConversation, StoredResponse,
};

use prune::prune;

/// A response that waits to be written.
pub(in crate::responses) struct WaitingResponse {
    pub(in crate::responses) owner: ResponseOwner,
    pub(in crate::responses) response: StoredResponse,
    pub(in crate::responses) at: SystemTime,
}

/// The responses and conversations in a database.
pub struct SqliteResponseStore {
    database: LazyDatabase,
    responses: PruneSchedule,
    conversations: PruneSchedule,
}

impl SqliteResponseStore {
    pub fn new(database: impl Into<LazyDatabase>) -> Self {
        SqliteResponseStore {
            database: database.into(),
            responses: PruneSchedule::of(Stored::Responses),
            conversations: PruneSchedule::of(Stored::Conversations),
        }
    }

    /// Stores new responses in one transaction.
    pub(in crate::responses) fn save_all(&self, responses: &[Arc<WaitingResponse>]) -> DbResult<()> {
        self.write(|transaction| {
            responses.iter().try_for_each(|one| self.save_one(transaction, &one.owner, &one.response, one.at))
        })
    }

    fn save_one(
        &self,
        transaction: &Transaction<'_>,
        owner: &ResponseOwner,
        response: &StoredResponse,
        now: SystemTime,
    ) -> rusqlite::Result<()> {
        write_response(transaction, owner, response, now)?;
        match self.responses.is_due(owner, response.body.len() + response.input.len()) {
            true => prune(transaction, Stored::Responses, owner, &response.id, now),
            false => Ok(()),
        }
    }

    /// Adds items to a conversation: all of them or none.
    fn append_items(
        &self,
        transaction: &Transaction<'_>,
        owner: &ResponseOwner,
        append: &ConversationAppend,
        now: SystemTime,
    ) -> rusqlite::Result<Appended> {
        let ConversationAppend { conversation, items } = append;
        if !touch_conversation(transaction, owner, conversation, now)? {
            return Ok(Appended::NoSuchConversation);
        }
        let mut ids: HashSet<String> = transaction
            .prepare_cached("SELECT id FROM conversation_item WHERE conversation = ?1")?
            .query_map([conversation], |row| row.get(0))?
            .collect::<rusqlite::Result<_>>()?;
        let bytes: i64 = transaction
            .prepare_cached("SELECT bytes FROM stored_conversation WHERE id = ?1")?
            .query_row([conversation], |row| row.get(0))?;
        let added: usize = items.iter().map(|item| item.item.len()).sum();
        if ids.len() + items.len() > MAX_CONVERSATION_ITEMS
            || bytes.saturating_add(number(added)) > number(MAX_CONVERSATION_BYTES)
        {
            return Ok(Appended::Full);
        }
        if let Some(taken) = items.iter().find(|item| !ids.insert(item.id.clone())) {
            return Ok(Appended::IdTaken(taken.id.clone()));
        }
        let mut statement = transaction.prepare_cached(
            "INSERT INTO conversation_item (conversation, number, id, item)
             VALUES (?1, (SELECT coalesce(max(number), 0) + 1 FROM conversation_item WHERE conversation = ?1), ?2, ?3)",
        )?;
        for ConversationItem { id, item } in items {
            statement.execute([conversation, id, item])?;
        }
        transaction
            .prepare_cached("UPDATE stored_conversation SET bytes = ?2 WHERE id = ?1")?
            .execute(rusqlite::params![conversation, bytes.saturating_add(number(added))])?;
        if self.conversations.is_due(owner, added) {
            prune(transaction, Stored::Conversations, owner, conversation, now)?;
        }
        Ok(Appended::Yes)
    }

    /// A response is written for every answer, so it need not survive a power cut.
    fn write<T>(&self, work: impl FnOnce(&Transaction<'_>) -> rusqlite::Result<T>) -> DbResult<T> {
        self.database.open()?.write_with(Durability::ProcessEnd, work)
    }

    fn read<T: Default>(&self, work: impl FnOnce(&Connection) -> rusqlite::Result<T>) -> DbResult<T> {
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
    ) -> DbResult<Appended> {
        self.write(|transaction| {
            self.save_one(transaction, owner, response, now)?;
            append.map_or(Ok(Appended::Yes), |append| self.append_items(transaction, owner, append, now))
        })
    }

    fn update(
        &self,
        owner: &ResponseOwner,
        response: &StoredResponse,
        append: Option<&ConversationAppend>,
        now: SystemTime,
    ) -> DbResult<Option<Appended>> {
        self.write(|transaction| {
            let is_being_written = transaction
                .prepare_cached(
                    "SELECT 1 FROM stored_response WHERE owner = ?1 AND id = ?2 AND lease IS NOT NULL",
                )?
                .exists([owner.as_str(), &response.id])?;
            if !is_being_written {
                return Ok(None);
            }
            // A response in the background gets its output here.
            self.save_one(transaction, owner, response, now)?;
            append
                .map_or(Ok(Appended::Yes), |append| self.append_items(transaction, owner, append, now))
                .map(Some)
        })
    }

    fn renew(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool> {
        self.write(|transaction| {
            let mut statement = transaction.prepare_cached(
                "UPDATE stored_response SET lease = ?3 WHERE owner = ?1 AND id = ?2 AND lease IS NOT NULL",
            )?;
            Ok(statement.execute(params![owner.as_str(), id, lease_until(ResponseLease::Held)])? > 0)
        })
    }

    fn find(&self, owner: &ResponseOwner, id: &str) -> DbResult<Option<StoredResponse>> {
        self.read(|connection| find(connection, owner, id))
    }

    fn chain(&self, owner: &ResponseOwner, id: &str, now: SystemTime) -> DbResult<ResponseChain> {
        self.write(|transaction| chain(transaction, owner, id, now))
    }

    fn delete(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool> {
        self.write(|transaction| {
            let mut statement =
                transaction.prepare_cached("DELETE FROM stored_response WHERE owner = ?1 AND id = ?2")?;
            Ok(statement.execute([owner.as_str(), id])? > 0)
        })
    }

    fn create_conversation(&self, owner: &ResponseOwner, conversation: &StoredConversation) -> DbResult<()> {
        let StoredConversation { id, created, metadata } = conversation;
        self.write(|transaction| {
            transaction
                .prepare_cached(
                    "INSERT INTO stored_conversation (id, owner, created, metadata, bytes, last_used)
                     VALUES (?1, ?2, ?3, ?4, 0, ?3)",
                )?
                .execute(params![id, owner.as_str(), created.microseconds(), metadata])?;
            match self.conversations.is_due(owner, metadata.len()) {
                true => prune(transaction, Stored::Conversations, owner, id, created.time()),
                false => Ok(()),
            }
        })
    }

    fn conversation(&self, owner: &ResponseOwner, id: &str) -> DbResult<Option<StoredConversation>> {
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

    fn set_metadata(&self, owner: &ResponseOwner, id: &str, metadata: &str) -> DbResult<bool> {
        self.write(|transaction| {
            let mut statement = transaction.prepare_cached(
                "UPDATE stored_conversation SET metadata = ?3 WHERE owner = ?1 AND id = ?2",
            )?;
            Ok(statement.execute([owner.as_str(), id, metadata])? > 0)
        })
    }

    fn delete_conversation(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool> {
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
        page: &ItemPage,
        now: SystemTime,
    ) -> DbResult<FoundItems> {
        self.write(|transaction| {
            if !touch_conversation(transaction, owner, id, now)? {
                return Ok(FoundItems::NoSuchConversation);
            }
            let start = match &page.after {
                None => None,
                Some(after) => {
                    let number: Option<i64> = transaction
                        .prepare_cached(
                            "SELECT number FROM conversation_item WHERE conversation = ?1 AND id = ?2",
                        )?
                        .query_row([id, after], |row| row.get(0))
                        .optional()?;
                    if number.is_none() {
                        return Ok(FoundItems::NothingAfter);
                    }
                    number
                }
            };
            let (query, start) = match page.order {
                ItemOrder::OldestFirst => ("number > ?2 ORDER BY number LIMIT ?3", start.unwrap_or(0)),
                ItemOrder::NewestFirst => {
                    ("number < ?2 ORDER BY number DESC LIMIT ?3", start.unwrap_or(i64::MAX))
                }
            };
            let query = format!("SELECT id, item FROM conversation_item WHERE conversation = ?1 AND {query}");
            // One more shows whether further ones follow.
            let limit = number(page.limit.saturating_add(1));
            let mut statement = transaction.prepare_cached(&query)?;
            let rows = statement.query_map(params![id, start, limit], conversation_item)?;
            let mut items = rows.collect::<rusqlite::Result<Vec<_>>>()?;
            let has_more = items.len() > page.limit;
            items.truncate(page.limit);
            Ok(FoundItems::Items { items, has_more })
        })
    }

    fn item(&self, owner: &ResponseOwner, id: &str, item: &str) -> DbResult<Option<ConversationItem>> {
        self.read(|connection| {
            connection
                .prepare_cached(
                    "SELECT id, item FROM conversation_item WHERE conversation = ?2 AND id = ?3
                     AND EXISTS (SELECT 1 FROM stored_conversation WHERE owner = ?1 AND id = ?2)",
                )?
                .query_row([owner.as_str(), id, item], conversation_item)
                .optional()
        })
    }

    fn append(
        &self,
        owner: &ResponseOwner,
        append: &ConversationAppend,
        now: SystemTime,
    ) -> DbResult<Appended> {
        self.write(|transaction| self.append_items(transaction, owner, append, now))
    }

    fn delete_item(&self, owner: &ResponseOwner, id: &str, item: &str) -> DbResult<bool> {
        self.write(|transaction| {
            let deleted = transaction
                .prepare_cached(
                    "DELETE FROM conversation_item WHERE conversation = ?2 AND id = ?3
                     AND EXISTS (SELECT 1 FROM stored_conversation WHERE owner = ?1 AND id = ?2)",
                )?
                .execute([owner.as_str(), id, item])?;
            if deleted > 0 {
                count_bytes(transaction, id)?;
            }
            Ok(deleted > 0)
        })
    }
}

fn conversation_item(row: &Row<'_>) -> rusqlite::Result<ConversationItem> {
    Ok(ConversationItem { id: row.get(0)?, item: row.get(1)? })
}

/// The clock of the leases: all processes that use the file have the same one.
fn clock() -> i64 {
    Moment::of(SystemTime::now()).microseconds()
}

fn lease_until(lease: ResponseLease) -> i64 {
    clock().saturating_add(lease.microseconds())
}

const COLUMNS: &str = "id, previous, body, input, lease";

fn response(row: &Row<'_>) -> rusqlite::Result<StoredResponse> {
    Ok(StoredResponse {
        id: row.get(0)?,
        previous: row.get(1)?,
        body: row.get(2)?,
        input: row.get(3)?,
        lease: row.get::<_, Option<i64>>(4)?.map(|until| ResponseLease::read(until > clock())),
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
            lease.map(lease_until),
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
