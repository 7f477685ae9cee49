//! The store of the memory in PostgreSQL, and its snapshots.

use std::cell::RefCell;
use std::time::Instant;

use hob_core::CollectionSet;
use hob_db::DbResult;
use hob_db::postgres::{PostgresDatabase, PostgresMigrations, PostgresTransaction, QueryError, QueryResult};
use parking_lot::Mutex;

use super::tokenizer::Tokenizer;
use crate::store::SnapshotWork;

/// The migrations of its tables.
pub const POSTGRES_MIGRATIONS: PostgresMigrations = PostgresMigrations {
    capability: "memory",
    steps: &[
        include_str!("../../../migrations/postgres/1_memory.sql"),
        include_str!("../../../migrations/postgres/2_collections.sql"),
        include_str!("../../../migrations/postgres/3_documents.sql"),
    ],
    usable_from: 0,
};

/// The memory in PostgreSQL, for several processes.
pub struct PostgresMemoryStore {
    pub(super) database: PostgresDatabase,
    pub(super) tokenizer: Tokenizer,
    /// The last statistics of a large memory, and when they were read.
    pub(super) statistics: Mutex<Option<(Instant, Statistics)>>,
}

/// What the rank of a word depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Statistics {
    pub(super) chunks: u64,
    /// Words of a chunk.
    pub(super) average_length: f64,
    /// Chunks have larger ids.
    pub(super) before: i64,
    pub(super) last_chunk: i64,
}

impl PostgresMemoryStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresMemoryStore { database, tokenizer: Tokenizer::default(), statistics: Mutex::new(None) }
    }

    /// Whether anything was ever indexed and is still there, or should be.
    pub fn has_sources(&self) -> DbResult<bool> {
        self.database.read(|transaction| {
            let row = transaction.query_one(
                "SELECT EXISTS (SELECT FROM memory_source) OR EXISTS (SELECT FROM memory_folder) \
                     OR EXISTS (SELECT FROM memory_skipped)",
                &[],
            )?;
            Ok(row.try_get(0)?)
        })
    }

    pub(super) fn explained<T>(&self, done: QueryResult<T>) -> DbResult<T> {
        done.map_err(|error| self.database.explain(error))
    }

    /// `work` runs again after a broken connection.
    pub(super) fn with_snapshot(&self, collections: &CollectionSet, work: SnapshotWork<'_>) -> DbResult<()> {
        self.database.read(|transaction| {
            let snapshot = PostgresSnapshot {
                transaction: RefCell::new(transaction),
                store: self,
                scope: Scope::of(collections),
                failure: RefCell::new(None),
            };
            let done = work(&snapshot);
            match snapshot.failure.into_inner() {
                // The database tries again where that helps, and explains the error otherwise.
                Some(error) => Err(error),
                None => Ok(done),
            }
        })?
    }
}

/// The names of collections, as a parameter; `None` for all.
pub(super) struct Scope(pub(super) Option<Vec<String>>);

impl Scope {
    pub(super) fn of(collections: &CollectionSet) -> Self {
        let names = collections.names();
        Scope(names.map(|names| names.iter().map(|name| name.as_str().to_owned()).collect()))
    }

    /// The condition that a source is in the scope, which is the parameter `parameter`. Without a scope, the planner drops it.
    pub(super) fn has_source(&self, source: &str, parameter: &str) -> String {
        match self.0 {
            Some(_) => format!(
                "{source} IN (SELECT source FROM memory_collection WHERE name = ANY({parameter}::text[]))"
            ),
            None => format!("{parameter}::text[] IS NULL"),
        }
    }

    /// The same for a chunk.
    pub(super) fn has_chunk(&self, chunk: &str, parameter: &str) -> String {
        match self.0 {
            Some(_) => format!(
                "{chunk} IN (SELECT memory_chunk.id FROM memory_chunk JOIN memory_collection USING (source) \
                 WHERE memory_collection.name = ANY({parameter}::text[]))"
            ),
            None => format!("{parameter}::text[] IS NULL"),
        }
    }
}

pub(super) struct PostgresSnapshot<'a, 'c> {
    transaction: RefCell<&'a mut PostgresTransaction<'c>>,
    pub(super) store: &'a PostgresMemoryStore,
    pub(super) scope: Scope,
    /// The error of a statement, after which the transaction is of no use.
    failure: RefCell<Option<QueryError>>,
}

impl<'c> PostgresSnapshot<'_, 'c> {
    pub(super) fn run<T>(
        &self,
        work: impl FnOnce(&mut PostgresTransaction<'c>) -> QueryResult<T>,
    ) -> DbResult<T> {
        work(&mut self.transaction.borrow_mut()).map_err(|error| {
            self.failure.replace(Some(error));
            // The caller of the snapshot gets the saved error instead.
            self.store.database.explain(QueryError::NoAnswer)
        })
    }
}
