//! Migrations. Each capability has a list of steps; each step runs once per database, in order. A released step never changes.
//!
//! The table `schema_version` contains the number of steps that have run, by capability. Older databases count one list for all
//! tables in `user_version`. They are converted: each capability knows the positions of its steps in that list. `user_version` is
//! then set above every such list, so that an older Hob refuses the database.

use std::collections::BTreeMap;
use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior, params};

use crate::error::{DatabaseError, DbResult};

/// The `user_version` of a database with `schema_version`: one more than the longest list for all tables.
const COUNTED_BY_CAPABILITY: i64 = 11;

const CREATE_VERSIONS: &str = "
    CREATE TABLE IF NOT EXISTS schema_version (
        capability TEXT PRIMARY KEY,
        version INTEGER NOT NULL
    ) STRICT, WITHOUT ROWID";

const SET_VERSION: &str = "
    INSERT INTO schema_version (capability, version) VALUES (?1, ?2)
    ON CONFLICT (capability) DO UPDATE SET version = excluded.version";

/// The steps that create the tables of one capability.
#[derive(Debug, Clone, Copy)]
pub struct Migrations {
    /// The name in `schema_version`. It never changes.
    pub capability: &'static str,
    /// One SQL script each.
    pub steps: &'static [&'static str],
    /// The positions of the first steps in the list for all tables, from 1. Empty for a capability that was never in it.
    pub legacy_versions: &'static [i64],
}

impl Migrations {
    /// The version after all steps.
    fn latest(&self) -> i64 {
        self.steps.len() as i64
    }

    /// The version of a database that has run the first `taken` steps of the list for all tables.
    fn version_after(&self, taken: i64) -> i64 {
        self.legacy_versions.iter().filter(|place| **place <= taken).count() as i64
    }
}

/// The state of a database compared to the steps of this Hob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SchemaState {
    Current,
    Behind { steps: i64 },
    Newer { found: i64, known: i64 },
}

/// Runs the missing steps in one transaction. Safe for concurrent processes: the versions are read again under the write lock.
pub(crate) fn migrate(connection: &mut Connection, migrations: &[Migrations], path: &Path) -> DbResult<()> {
    match migrate_to_latest(connection, migrations).map_err(|error| DatabaseError::explain(path, error))? {
        SchemaState::Newer { found, known } => {
            Err(DatabaseError::Newer { path: path.to_owned(), found, known })
        }
        SchemaState::Current | SchemaState::Behind { .. } => Ok(()),
    }
}

/// Returns the state before the migration.
fn migrate_to_latest(
    connection: &mut Connection,
    migrations: &[Migrations],
) -> rusqlite::Result<SchemaState> {
    // A database that is up to date needs no lock.
    if let state @ (SchemaState::Current | SchemaState::Newer { .. }) = state(connection, migrations)? {
        return Ok(state);
    }
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    let versions = Versions::read(&transaction)?;
    let state = versions.compare(migrations);
    if let SchemaState::Behind { .. } = state {
        take_steps(&transaction, &versions, migrations)?;
        transaction.commit()?;
    }
    Ok(state)
}

fn take_steps(
    transaction: &Transaction<'_>,
    versions: &Versions,
    migrations: &[Migrations],
) -> rusqlite::Result<()> {
    transaction.execute_batch(CREATE_VERSIONS)?;
    for list in migrations {
        let taken = usize::try_from(versions.of(list)).unwrap_or_default();
        for step in list.steps.iter().skip(taken) {
            transaction.execute_batch(step)?;
        }
        transaction.execute(SET_VERSION, params![list.capability, list.latest()])?;
    }
    transaction.pragma_update(None, "user_version", COUNTED_BY_CAPABILITY)
}

/// Compares the database to `migrations`. Changes nothing.
pub(crate) fn state(connection: &Connection, migrations: &[Migrations]) -> rusqlite::Result<SchemaState> {
    Ok(Versions::read(connection)?.compare(migrations))
}

pub(crate) fn user_version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

/// The versions in a database.
struct Versions {
    user_version: i64,
    /// `None` in a new database, and in one that counts one list for all tables.
    by_capability: Option<BTreeMap<String, i64>>,
}

impl Versions {
    fn read(connection: &Connection) -> rusqlite::Result<Self> {
        let user_version = user_version(connection)?;
        let counted =
            "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'schema_version')";
        if !connection.query_row(counted, [], |row| row.get(0))? {
            return Ok(Versions { user_version, by_capability: None });
        }
        let mut statement = connection.prepare("SELECT capability, version FROM schema_version")?;
        let rows = statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?)))?;
        Ok(Versions { user_version, by_capability: Some(rows.collect::<rusqlite::Result<_>>()?) })
    }

    fn of(&self, list: &Migrations) -> i64 {
        match &self.by_capability {
            Some(versions) => versions.get(list.capability).copied().unwrap_or(0),
            None => list.version_after(self.user_version),
        }
    }

    /// Capabilities that are not in `migrations` are ignored.
    fn compare(&self, migrations: &[Migrations]) -> SchemaState {
        let known = match self.by_capability {
            Some(_) => COUNTED_BY_CAPABILITY,
            None => adoptable(migrations),
        };
        if !(0..=known).contains(&self.user_version) {
            return SchemaState::Newer { found: self.user_version, known };
        }
        let mut steps = 0;
        for list in migrations {
            let (found, known) = (self.of(list), list.latest());
            if !(0..=known).contains(&found) {
                return SchemaState::Newer { found, known };
            }
            steps += known - found;
        }
        // The conversion to `schema_version` counts as a step.
        steps += i64::from(self.user_version != COUNTED_BY_CAPABILITY);
        if steps == 0 { SchemaState::Current } else { SchemaState::Behind { steps } }
    }
}

/// The number of known steps of the list for all tables. A database with more steps cannot be converted: nothing would record
/// them.
fn adoptable(migrations: &[Migrations]) -> i64 {
    let is_known = |place: &i64| migrations.iter().any(|list| list.legacy_versions.contains(place));
    (1..COUNTED_BY_CAPABILITY).take_while(is_known).last().unwrap_or(0)
}

#[cfg(test)]
#[path = "migrations_tests.rs"]
mod tests;
