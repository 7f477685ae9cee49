//! How the tables came to be. Each step is taken once per database, in order; a step that was released is never changed.

use std::path::Path;

use rusqlite::{Connection, Transaction, TransactionBehavior};

use crate::error::StoreError;

/// A kind of database: the steps by which its tables came to be. A database's `user_version` says how many it has taken.
#[derive(Clone, Copy)]
pub struct Schema {
    steps: &'static [&'static str],
}

impl Schema {
    /// `hob.db`: what was asked and answered, tasks, conversations.
    pub const HOB: Schema = Schema {
        steps: &[
            include_str!("../migrations/hob/1_telemetry.sql"),
            include_str!("../migrations/hob/2_tasks.sql"),
            include_str!("../migrations/hob/3_conversations.sql"),
        ],
    };

    /// `memory.db`: what is known of the user's documents. Apart, because it is large, and can be made anew.
    pub const MEMORY: Schema = Schema { steps: &[include_str!("../migrations/memory/1_chunks.sql")] };

    fn next_step(self, version: i64) -> Option<&'static str> {
        usize::try_from(version).ok().and_then(|taken| self.steps.get(taken)).copied()
    }
}

/// Takes the steps that the database lacks. Safe when several processes do it at once: each step is taken under the
/// write lock, after a fresh look at what is there.
pub(crate) fn migrate(connection: &mut Connection, schema: Schema, path: &Path) -> Result<(), StoreError> {
    let known = schema.steps.len() as i64;
    let found = migrate_to_latest(connection, schema).map_err(|error| StoreError::explain(path, error))?;
    if (0..=known).contains(&found) {
        Ok(())
    } else {
        Err(StoreError::Newer { path: path.to_owned(), found, known })
    }
}

/// The version the database has in the end.
fn migrate_to_latest(connection: &mut Connection, schema: Schema) -> rusqlite::Result<i64> {
    // Most often there is nothing to do, and then nobody needs to be waited for.
    while schema.next_step(version(connection)?).is_some() {
        let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
        take_step(&transaction, schema)?;
        transaction.commit()?;
    }
    version(connection)
}

fn take_step(transaction: &Transaction<'_>, schema: Schema) -> rusqlite::Result<()> {
    let version = version(transaction)?;
    if let Some(step) = schema.next_step(version) {
        transaction.execute_batch(step)?;
        transaction.pragma_update(None, "user_version", version + 1)?;
    }
    Ok(())
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
    fn left_at(schema: Schema, steps: usize, path: &Path) {
        let connection = Connection::open(path).expect("a file");
        for step in &schema.steps[..steps] {
            connection.execute_batch(step).expect("a good step");
        }
        connection.pragma_update(None, "user_version", steps as i64).expect("written");
    }

    #[test]
    fn a_database_of_any_age_ends_up_like_a_new_one() {
        for kind in [Schema::HOB, Schema::MEMORY] {
            let fresh = schema(&Store::in_memory(kind).expect("opened").writer());
            for steps in 0..=kind.steps.len() {
                let root = tempfile::tempdir().expect("a directory");
                let path = root.path().join("some.db");
                left_at(kind, steps, &path);
                let store = Store::open(&path, kind).expect("opened");
                assert_eq!(version(&store.writer()).expect("readable"), kind.steps.len() as i64);
                assert_eq!(schema(&store.writer()), fresh, "from version {steps}");
            }
        }
    }

    #[test]
    fn a_database_of_a_newer_hob_is_left_alone() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        left_at(Schema::HOB, Schema::HOB.steps.len(), &path);
        let connection = Connection::open(&path).expect("a file");
        connection.pragma_update(None, "user_version", 4711).expect("written");
        let before = schema(&connection);
        let error = Store::open(&path, Schema::HOB).err().expect("refused").to_string();
        let known = Schema::HOB.steps.len();
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
        assert!(migrate(&mut connection, Schema::HOB, Path::new("x.db")).is_err());
        assert_eq!(schema(&connection), ["CREATE TABLE telemetry_latency (x)"]);
        assert_eq!(version(&connection).expect("readable"), 0);
    }
}
