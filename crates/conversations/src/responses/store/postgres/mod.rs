//! Stored responses and conversations in PostgreSQL. Several processes write at once: what is added to a conversation locks its row.

mod items;
mod prune;
mod responses;

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::postgres::{PostgresDatabase, PostgresTransaction, QueryResult, Row, SERVER_CLOCK, SqlText};
use hob_db::{DbResult, Durability};

use crate::responses::prune::{PruneSchedule, Stored};
use crate::responses::{
    Appended, ConversationAppend, ConversationItem, FoundItems, ItemPage, ResponseChain, ResponseLease,
    ResponseOwner, ResponseStore, StoredConversation, StoredResponse,
};
use prune::prune;

/// The responses and conversations in a database.
pub struct PostgresResponseStore {
    database: PostgresDatabase,
    responses: PruneSchedule,
    conversations: PruneSchedule,
}

impl PostgresResponseStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresResponseStore {
            database,
            responses: PruneSchedule::of(Stored::Responses),
            conversations: PruneSchedule::of(Stored::Conversations),
        }
    }

    /// An answer names its response, and other processes use it, so it must survive a crash of the server.
    fn write<T>(&self, work: impl FnMut(&mut PostgresTransaction<'_>) -> QueryResult<T>) -> DbResult<T> {
        self.database.write(work)
    }

    /// Reads, and notes the time of the last use, which may be lost with the server.
    fn read_and_touch<T>(
        &self,
        work: impl FnMut(&mut PostgresTransaction<'_>) -> QueryResult<T>,
    ) -> DbResult<T> {
        self.database.write_with(Durability::ProcessEnd, work)
    }

    /// Adds items to a conversation, all of them or none, and looks at the limits now and then.
    fn add(
        &self,
        transaction: &mut PostgresTransaction<'_>,
        owner: &ResponseOwner,
        append: Option<&ConversationAppend>,
        now: SystemTime,
    ) -> QueryResult<Appended> {
        let Some(append) = append else { return Ok(Appended::Yes) };
        let (appended, bytes) = items::append(transaction, owner, append, now)?;
        if appended == Appended::Yes && self.conversations.is_due(owner, bytes) {
            prune(transaction, Stored::Conversations, owner, &append.conversation, now)?;
        }
        Ok(appended)
    }
}

impl ResponseStore for PostgresResponseStore {
    fn check_known_state(&self) -> DbResult<()> {
        self.database.check_known_state()
    }

    fn save(
        &self,
        owner: &ResponseOwner,
        response: &StoredResponse,
        append: Option<&ConversationAppend>,
        now: SystemTime,
    ) -> DbResult<Appended> {
        let is_due = self.responses.is_due(owner, response.body.len() + response.input.len());
        self.write(|transaction| {
            responses::save(transaction, owner, response, now)?;
            if is_due {
                prune(transaction, Stored::Responses, owner, &response.id, now)?;
            }
            self.add(transaction, owner, append, now)
        })
    }

    fn update(
        &self,
        owner: &ResponseOwner,
        response: &StoredResponse,
        append: Option<&ConversationAppend>,
        now: SystemTime,
    ) -> DbResult<Option<Appended>> {
        // A response in the background gets its output here.
        let is_due = self.responses.is_due(owner, response.body.len() + response.input.len());
        self.write(|transaction| {
            if !responses::update(transaction, owner, response, now)? {
                return Ok(None);
            }
            if is_due {
                prune(transaction, Stored::Responses, owner, &response.id, now)?;
            }
            self.add(transaction, owner, append, now).map(Some)
        })
    }

    fn renew(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool> {
        // A lease that is lost with the server is renewed a moment later.
        self.database.write_with(Durability::ProcessEnd, |transaction| {
            let renewed = transaction.execute(
                &format!(
                    "UPDATE stored_response SET lease = {SERVER_CLOCK} + $3
                     WHERE owner = $1 AND id = $2 AND lease IS NOT NULL"
                ),
                &[&SqlText(owner.as_str()), &SqlText(id), &ResponseLease::Held.microseconds()],
            )?;
            Ok(renewed > 0)
        })
    }

    fn find(&self, owner: &ResponseOwner, id: &str) -> DbResult<Option<StoredResponse>> {
        self.database.read(|transaction| responses::find(transaction, owner, id))
    }

    fn chain(&self, owner: &ResponseOwner, id: &str, now: SystemTime) -> DbResult<ResponseChain> {
        self.read_and_touch(|transaction| responses::chain(transaction, owner, id, now))
    }

    fn delete(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool> {
        self.write(|transaction| {
            let deleted = transaction.execute(
                "DELETE FROM stored_response WHERE owner = $1 AND id = $2",
                &[&SqlText(owner.as_str()), &SqlText(id)],
            )?;
            Ok(deleted > 0)
        })
    }

    fn create_conversation(&self, owner: &ResponseOwner, conversation: &StoredConversation) -> DbResult<()> {
        let StoredConversation { id, created, metadata } = conversation;
        let is_due = self.conversations.is_due(owner, metadata.len());
        self.write(|transaction| {
            transaction.execute(
                "INSERT INTO stored_conversation (id, owner, created, metadata, bytes, last_used)
                 VALUES ($1, $2, $3, $4, 0, $3)",
                &[&SqlText(id), &SqlText(owner.as_str()), &created.microseconds(), &SqlText(metadata)],
            )?;
            match is_due {
                true => prune(transaction, Stored::Conversations, owner, id, created.time()),
                false => Ok(()),
            }
        })
    }

    fn conversation(&self, owner: &ResponseOwner, id: &str) -> DbResult<Option<StoredConversation>> {
        self.database.read(|transaction| {
            let row = transaction.query_opt(
                "SELECT id, created, metadata FROM stored_conversation WHERE owner = $1 AND id = $2",
                &[&SqlText(owner.as_str()), &SqlText(id)],
            )?;
            row.map(|row| {
                let created = Moment::from_microseconds(row.try_get(1)?);
                Ok(StoredConversation { id: text(&row, 0)?, created, metadata: text(&row, 2)? })
            })
            .transpose()
        })
    }

    fn set_metadata(&self, owner: &ResponseOwner, id: &str, metadata: &str) -> DbResult<bool> {
        self.write(|transaction| {
            let changed = transaction.execute(
                "UPDATE stored_conversation SET metadata = $3 WHERE owner = $1 AND id = $2",
                &[&SqlText(owner.as_str()), &SqlText(id), &SqlText(metadata)],
            )?;
            Ok(changed > 0)
        })
    }

    fn delete_conversation(&self, owner: &ResponseOwner, id: &str) -> DbResult<bool> {
        self.write(|transaction| {
            let deleted = transaction.execute(
                "DELETE FROM stored_conversation WHERE owner = $1 AND id = $2",
                &[&SqlText(owner.as_str()), &SqlText(id)],
            )?;
            Ok(deleted > 0)
        })
    }

    fn items(
        &self,
        owner: &ResponseOwner,
        id: &str,
        page: &ItemPage,
        now: SystemTime,
    ) -> DbResult<FoundItems> {
        self.read_and_touch(|transaction| items::page(transaction, owner, id, page, now))
    }

    fn item(&self, owner: &ResponseOwner, id: &str, item: &str) -> DbResult<Option<ConversationItem>> {
        self.database.read(|transaction| items::find(transaction, owner, id, item))
    }

    fn append(
        &self,
        owner: &ResponseOwner,
        append: &ConversationAppend,
        now: SystemTime,
    ) -> DbResult<Appended> {
        self.write(|transaction| self.add(transaction, owner, Some(append), now))
    }

    fn delete_item(&self, owner: &ResponseOwner, id: &str, item: &str) -> DbResult<bool> {
        self.write(|transaction| items::delete(transaction, owner, id, item))
    }
}

fn text(row: &Row, column: usize) -> QueryResult<String> {
    Ok(row.try_get::<_, SqlText<String>>(column)?.0)
}
