//! The state of the server and of the database, for `hob doctor`. Changes nothing.

use std::time::{Duration, Instant};

use super::database::{Mode, PostgresDatabase};
use super::migrations;
use super::query_error::{QueryError, QueryResult};
use super::transaction::PostgresTransaction;
use crate::DbResult;

const FACTS: &str = "
    SELECT current_setting('server_version'), current_setting('max_connections')::bigint,
        (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'),
        pg_is_in_recovery() OR current_setting('default_transaction_read_only') = 'on',
        pg_database_size(current_database()),
        (SELECT default_version FROM pg_available_extensions WHERE name = 'vector'),
        (SELECT extversion FROM pg_extension WHERE extname = 'vector')";

const HAS_TABLE: &str = "
    SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = $1 AND pg_table_is_visible(oid))";

/// What a server says of itself and of the database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PostgresState {
    /// Such as `17.2`.
    pub version: String,
    /// How long the server takes to answer the simplest question.
    pub latency: Duration,
    pub bytes: u64,
    /// Steps that the next use takes.
    pub steps_behind: usize,
    pub pgvector: ExtensionState,
    /// Nothing can be written.
    pub is_read_only: bool,
    pub connections: ConnectionCounts,
}

/// Connections of the server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Of all clients.
    pub in_use: u64,
    pub server_max: u64,
    /// The most that this process opens.
    pub own_max: usize,
}

/// An extension of the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtensionState {
    /// The server does not have it.
    Missing,
    /// The server has it, and the database does not use it yet.
    Available,
    /// The database uses this version.
    Installed(String),
}

impl PostgresDatabase {
    /// Asks the server. Changes nothing, and runs no migration. Fails as a use of the database would.
    pub fn inspect(&self) -> DbResult<PostgresState> {
        let read = |transaction: &mut PostgresTransaction<'_>| {
            let behind = migrations::steps_behind(transaction, self.migrations())?;
            let row = transaction.query_one(FACTS, &[])?;
            let asked = Instant::now();
            transaction.query_one("SELECT 1", &[])?;
            // The first time includes preparing the statement.
            let latency = asked.elapsed();
            let count = |column: usize, name: &'static str| -> QueryResult<u64> {
                u64::try_from(row.try_get::<_, i64>(column)?)
                    .map_err(|error| QueryError::unreadable(name, error))
            };
            let pgvector = match (row.try_get(5)?, row.try_get(6)?) {
                (_, Some(version)) => ExtensionState::Installed(version),
                (Some::<String>(_), None) => ExtensionState::Available,
                (None, None) => ExtensionState::Missing,
            };
            let state = PostgresState {
                version: row.try_get(0)?,
                latency,
                bytes: count(4, "pg_database_size")?,
                steps_behind: 0,
                pgvector,
                is_read_only: row.try_get(3)?,
                connections: ConnectionCounts {
                    in_use: count(2, "count")?,
                    server_max: count(1, "max_connections")?,
                    own_max: self.max_connections(),
                },
            };
            Ok(behind.map(|steps_behind| PostgresState { steps_behind, ..state }))
        };
        self.run(Mode::Read, read)?.map_err(|newer| self.newer(newer))
    }

    /// Reads without migrations, so columns may be missing; `None` if there is no such table yet. Changes nothing.
    pub fn peek<T>(
        &self,
        table: &str,
        mut read: impl FnMut(&mut PostgresTransaction<'_>) -> QueryResult<T>,
    ) -> DbResult<Option<T>> {
        self.run(Mode::Read, |transaction| {
            if !transaction.query_one(HAS_TABLE, &[&table])?.try_get::<_, bool>(0)? {
                return Ok(None);
            }
            read(transaction).map(Some)
        })
    }
}
