//! Migrations of PostgreSQL. Each capability has a list of steps; each step runs once per database, in order. A released step never
//! changes.
//!
//! Processes of two versions use one database during an upgrade. So a step only adds: tables, columns with a default, indexes.
//! A step that an older Hob cannot live with raises `usable_from`, and such a Hob refuses the database.

use std::collections::BTreeMap;

use super::query_error::QueryResult;
use super::transaction::PostgresTransaction;

const CREATE_VERSIONS: &str = "
    CREATE TABLE IF NOT EXISTS schema_version (
        capability TEXT PRIMARY KEY,
        version BIGINT NOT NULL,
        usable_from BIGINT NOT NULL
    )";

/// Not `to_regclass`: a session may remember from before it waited for the lock that there is no such table. A query of a table
/// makes it look again.
const HAS_VERSIONS: &str = "
    SELECT EXISTS (SELECT 1 FROM pg_class WHERE relname = 'schema_version' AND pg_table_is_visible(oid))";

const SET_VERSION: &str = "
    INSERT INTO schema_version (capability, version, usable_from) VALUES ($1, $2, $3)
    ON CONFLICT (capability) DO UPDATE SET version = excluded.version, usable_from = excluded.usable_from";

/// The lock under which one process migrates.
const LOCK: &str = "hob.migrations";

/// The steps that create the tables of one capability in PostgreSQL.
#[derive(Debug, Clone, Copy)]
pub struct PostgresMigrations {
    /// The name in `schema_version`. It never changes.
    pub capability: &'static str,
    /// One SQL script each.
    pub steps: &'static [&'static str],
    /// How many steps a Hob must know to use the tables after all steps. 0 while all steps after the first only add.
    pub usable_from: i64,
}

impl PostgresMigrations {
    fn latest(&self) -> i64 {
        self.steps.len() as i64
    }
}

/// A database that needs a newer Hob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct NewerSchema {
    pub(super) found: i64,
    pub(super) known: i64,
}

/// How many steps are missing. Changes nothing.
pub(super) fn steps_behind(
    transaction: &mut PostgresTransaction<'_>,
    migrations: &[PostgresMigrations],
) -> QueryResult<Result<usize, NewerSchema>> {
    Ok(missing(&versions(transaction)?, migrations))
}

/// Runs the missing steps in one transaction. Other processes wait for the lock, and then find nothing to do.
pub(super) fn migrate(
    transaction: &mut PostgresTransaction<'_>,
    migrations: &[PostgresMigrations],
) -> QueryResult<Result<(), NewerSchema>> {
    transaction.wait_without_limit()?;
    transaction.lock(LOCK)?;
    let versions = versions(transaction)?;
    match missing(&versions, migrations) {
        Err(newer) => return Ok(Err(newer)),
        Ok(0) => return Ok(Ok(())),
        Ok(_) => {}
    }
    transaction.run_script(CREATE_VERSIONS)?;
    for list in migrations {
        let taken = version_of(&versions, list);
        if taken >= list.latest() {
            continue;
        }
        for step in list.steps.iter().skip(usize::try_from(taken).unwrap_or_default()) {
            transaction.run_script(step)?;
        }
        transaction.execute(SET_VERSION, &[&list.capability, &list.latest(), &list.usable_from])?;
    }
    Ok(Ok(()))
}

/// The version and the oldest usable version, by capability.
type Versions = BTreeMap<String, (i64, i64)>;

fn versions(transaction: &mut PostgresTransaction<'_>) -> QueryResult<Versions> {
    let counted = transaction.query_one(HAS_VERSIONS, &[])?;
    if !counted.try_get::<_, bool>(0)? {
        return Ok(Versions::new());
    }
    let rows = transaction.query("SELECT capability, version, usable_from FROM schema_version", &[])?;
    rows.iter().map(|row| Ok((row.try_get(0)?, (row.try_get(1)?, row.try_get(2)?)))).collect()
}

fn version_of(versions: &Versions, list: &PostgresMigrations) -> i64 {
    versions.get(list.capability).map_or(0, |(version, _)| *version)
}

fn missing(versions: &Versions, migrations: &[PostgresMigrations]) -> Result<usize, NewerSchema> {
    for list in migrations {
        if let Some(&(found, usable_from)) = versions.get(list.capability)
            && usable_from > list.latest()
        {
            return Err(NewerSchema { found, known: list.latest() });
        }
    }
    let steps = |list: &PostgresMigrations| list.latest().saturating_sub(version_of(versions, list)).max(0);
    Ok(usize::try_from(migrations.iter().map(steps).sum::<i64>()).unwrap_or_default())
}
