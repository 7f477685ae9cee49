//! How the tables came to be. Each step is taken once per database, in order; a step that was released is never changed.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::StoreError;

/// The steps. A database's `user_version` says how many of them it has taken.
const MIGRATIONS: &[&str] = &[
    // 1: telemetry. Times are microseconds, `started` and `day` count from 1970 in UTC, `cost_pico` is in millionths of a
    // millionth of a dollar. `telemetry_day` and `telemetry_latency` are sums over `telemetry_inference`, kept in the same
    // transaction; the latter has histograms, apart from the other sums because most reports can do without.
    "
    CREATE TABLE telemetry_series (
        id INTEGER PRIMARY KEY,
        engine TEXT NOT NULL,
        model TEXT NOT NULL,
        agent TEXT NOT NULL,
        source TEXT NOT NULL,
        UNIQUE (engine, model, agent, source)
    ) STRICT;

    CREATE TABLE telemetry_inference (
        id INTEGER PRIMARY KEY,
        started INTEGER NOT NULL,
        series INTEGER NOT NULL,
        run TEXT NOT NULL,
        streamed INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        cached_tokens INTEGER,
        estimated INTEGER NOT NULL,
        latency_us INTEGER NOT NULL,
        first_token_us INTEGER,
        outcome TEXT NOT NULL,
        finish_reason TEXT,
        error TEXT,
        cost_pico INTEGER
    ) STRICT;

    CREATE INDEX telemetry_inference_started ON telemetry_inference (started);

    CREATE TABLE telemetry_day (
        day INTEGER NOT NULL,
        series INTEGER NOT NULL,
        calls INTEGER NOT NULL,
        failures INTEGER NOT NULL,
        cancelled INTEGER NOT NULL,
        estimated INTEGER NOT NULL,
        prompt_tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        cached_tokens INTEGER NOT NULL,
        latency_us INTEGER NOT NULL,
        first_token_us INTEGER NOT NULL,
        first_tokens INTEGER NOT NULL,
        cost_pico INTEGER NOT NULL,
        unpriced INTEGER NOT NULL,
        PRIMARY KEY (day, series)
    ) STRICT, WITHOUT ROWID;

    CREATE TABLE telemetry_latency (
        day INTEGER NOT NULL,
        series INTEGER NOT NULL,
        latency BLOB NOT NULL,
        first_token BLOB NOT NULL,
        PRIMARY KEY (day, series)
    ) STRICT, WITHOUT ROWID;
    ",
];

/// Takes the steps that the database lacks. Safe when several processes do it at once: each step is taken under the
/// write lock, after a fresh look at what is there.
pub(crate) fn migrate(connection: &mut Connection, path: &Path) -> Result<(), StoreError> {
    let known = MIGRATIONS.len() as i64;
    let found = migrate_to_latest(connection).map_err(|error| StoreError::explain(path, error))?;
    if (0..=known).contains(&found) {
        Ok(())
    } else {
        Err(StoreError::Newer { path: path.to_owned(), found, known })
    }
}

/// The version the database has in the end.
fn migrate_to_latest(connection: &mut Connection) -> rusqlite::Result<i64> {
    // Most often there is nothing to do, and then nobody needs to be waited for.
    while next_step(version(connection)?).is_some() {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        take_step(&transaction)?;
        transaction.commit()?;
    }
    version(connection)
}

fn take_step(transaction: &Transaction<'_>) -> rusqlite::Result<()> {
    let version = version(transaction)?;
    if let Some(step) = next_step(version) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version + 1)?;
    }
    Ok(())
}

fn next_step(version: i64) -> Option<&'static str> {
    usize::try_from(version).ok().and_then(|taken| MIGRATIONS.get(taken)).copied()
}

fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    /// The tables and indexes as SQLite has them.
    fn schema(connection: &Connection) -> Vec<String> {
        let sql = "SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY name";
        let mut statement = connection.prepare(sql).expect("the schema can be asked for");
        let lines = statement.query_map([], |row| row.get(0)).expect("it has rows");
        lines.collect::<Result<_, _>>().expect("of text")
    }

    /// A database as a Hob that knew only the first `steps` left it.
    fn left_at(steps: usize, path: &Path) {
        let connection = Connection::open(path).expect("a file");
        for step in &MIGRATIONS[..steps] {
            connection.execute_batch(step).expect("a good step");
        }
        connection.pragma_update(None, "user_version", steps as i64).expect("written");
    }

    #[test]
    fn a_database_of_any_age_ends_up_like_a_new_one() {
        let fresh = schema(&Store::in_memory().expect("opened").writer());
        for steps in 0..=MIGRATIONS.len() {
            let root = tempfile::tempdir().expect("a directory");
            let path = root.path().join("hob.db");
            left_at(steps, &path);
            let store = Store::open(&path).expect("opened");
            assert_eq!(version(&store.writer()).expect("readable"), MIGRATIONS.len() as i64);
            assert_eq!(schema(&store.writer()), fresh, "from version {steps}");
        }
    }

    #[test]
    fn a_database_of_a_newer_hob_is_left_alone() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        left_at(MIGRATIONS.len(), &path);
        let connection = Connection::open(&path).expect("a file");
        connection.pragma_update(None, "user_version", 4711).expect("written");
        let before = schema(&connection);
        let error = Store::open(&path).err().expect("refused").to_string();
        let known = MIGRATIONS.len();
        assert_eq!(
            error,
            format!(
                "the database {} was written by a newer Hob: its version is 4711, and this Hob knows none above {known}. \
                 Update Hob, or set HOB_HOME to another directory.",
                path.display()
            )
        );
        assert_eq!((version(&connection).expect("readable"), schema(&connection)), (4711, before));
    }

    #[test]
    fn a_step_that_fails_leaves_nothing_behind() {
        let mut connection = Connection::open_in_memory().expect("opened");
        connection.execute_batch("CREATE TABLE telemetry_latency (x)").expect("in the way of a step");
        assert!(migrate(&mut connection, Path::new("x.db")).is_err());
        assert_eq!(schema(&connection), ["CREATE TABLE telemetry_latency (x)"]);
        assert_eq!(version(&connection).expect("readable"), 0);
    }
}
