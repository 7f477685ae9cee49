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
    /// `hob.db`: what was asked and answered, tasks, conversations, what was learnt of models.
    pub const HOB: Schema = Schema {
        steps: &[
            include_str!("../migrations/hob/1_telemetry.sql"),
            include_str!("../migrations/hob/2_tasks.sql"),
            include_str!("../migrations/hob/3_conversations.sql"),
            include_str!("../migrations/hob/4_routing.sql"),
            include_str!("../migrations/hob/5_chats.sql"),
            include_str!("../migrations/hob/6_energy.sql"),
            include_str!("../migrations/hob/7_series_totals.sql"),
            include_str!("../migrations/hob/8_telemetry_pages.sql"),
            include_str!("../migrations/hob/9_routing_outcomes.sql"),
            include_str!("../migrations/hob/10_completed_tokens.sql"),
        ],
    };

    /// `memory.db`: what is known of the user's documents. Apart, because it is large, and can be made anew.
    pub const MEMORY: Schema = Schema {
        steps: &[
            include_str!("../migrations/memory/1_chunks.sql"),
            include_str!("../migrations/memory/2_words_by_hand.sql"),
            include_str!("../migrations/memory/3_vectors_gone.sql"),
        ],
    };

    /// The version of a database that has taken them all.
    pub(crate) fn latest(self) -> i64 {
        self.steps.len() as i64
    }

    fn next_step(self, version: i64) -> Option<&'static str> {
        usize::try_from(version).ok().and_then(|taken| self.steps.get(taken)).copied()
    }
}

/// Takes the steps that the database lacks. Safe when several processes do it at once: each step is taken under the
/// write lock, after a fresh look at what is there.
pub(crate) fn migrate(connection: &mut Connection, schema: Schema, path: &Path) -> Result<(), StoreError> {
    let known = schema.latest();
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

pub(crate) fn version(connection: &Connection) -> rusqlite::Result<i64> {
    connection.pragma_query_value(None, "user_version", |row| row.get(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::Routing;
    use crate::savings::Prices;
    use crate::store::Store;
    use crate::telemetry::{Row, Telemetry};

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
    fn calls_of_an_older_hob_are_in_the_sums_of_all_days() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        left_at(Schema::HOB, 6, &path);
        let connection = Connection::open(&path).expect("a file");
        connection
            .execute_batch(
                "INSERT INTO telemetry_series (id, engine, model, agent, source) VALUES (7, 'ollama', 'm', '', 'ask');
                 INSERT INTO telemetry_day VALUES (1, 7, 5, 1, 0, 0, 100, 10, 0, 0, 0, 0, 3, 0, 0, 0);
                 INSERT INTO telemetry_day VALUES (2, 7, 3, 0, 0, 0, 50, 5, 0, 0, 0, 0, 4, 0, 0, 0);",
            )
            .expect("recorded");
        let store = Store::open(&path, Schema::HOB).expect("opened");
        let sums: [i64; 4] = store.writer().query_row(
            "SELECT total_answered, total_prompt_tokens, total_completion_tokens, total_cost_pico FROM telemetry_series",
            [],
            |row| Ok([row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?]),
        ).expect("readable");
        assert_eq!(sums, [7, 150, 15, 7]);
    }

    #[test]
    fn calls_of_an_older_hob_are_still_on_record() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        left_at(Schema::HOB, 7, &path);
        let connection = Connection::open(&path).expect("a file");
        // The first day has more calls than a page takes, recorded in another order than they began.
        connection
            .execute_batch(
                r#"INSERT INTO telemetry_series (id, engine, model, agent, source) VALUES (7, 'cloud', 'm', 'react', 'ask');
                 WITH RECURSIVE number (n) AS (SELECT 0 UNION ALL SELECT n + 1 FROM number WHERE n < 1299)
                 INSERT INTO telemetry_inference
                 SELECT n + 1, 1300 - n, 7, 'r' || (1300 - n), 1, 10, 20, 5, 1, 4000000, 30, 'complete', 'stop', NULL, 9, 8
                 FROM number;
                 INSERT INTO telemetry_inference
                 VALUES (2000, 86400000000, 7, 'last', 0, 1, 0, NULL, 0, 2, NULL, 'failed', NULL, 'say "no"', NULL, NULL);"#,
            )
            .expect("recorded");
        let telemetry = Telemetry::new(Store::open(&path, Schema::HOB).expect("opened"), Prices::standard());
        let rows: Vec<Row> = telemetry.export(None).collect::<Result<_, _>>().expect("readable");
        let runs: Vec<&str> = rows.iter().map(|row| row.run.as_str()).collect();
        let expected: Vec<String> = (1..=1300).map(|n| format!("r{n}")).chain(["last".to_owned()]).collect();
        assert_eq!(runs, expected);
        insta::assert_json_snapshot!([&rows[0], &rows[1300]], @r#"
        [
          {
            "started": "1970-01-01T00:00:00.000001Z",
            "run": "r1",
            "source": "ask",
            "engine": "cloud",
            "model": "m",
            "agent": "react",
            "streamed": true,
            "prompt_tokens": 10,
            "completion_tokens": 20,
            "cached_tokens": 5,
            "estimated": true,
            "latency_seconds": 4.0,
            "first_token_seconds": 0.00003,
            "tokens_per_second": 5.0,
            "outcome": "complete",
            "finish_reason": "stop",
            "error": null,
            "cost": 0.000000000009,
            "energy_joules": 0.000008
          },
          {
            "started": "1970-01-02T00:00:00.000000Z",
            "run": "last",
            "source": "ask",
            "engine": "cloud",
            "model": "m",
            "agent": "react",
            "streamed": false,
            "prompt_tokens": 1,
            "completion_tokens": 0,
            "cached_tokens": null,
            "estimated": false,
            "latency_seconds": 0.000002,
            "first_token_seconds": null,
            "tokens_per_second": null,
            "outcome": "failed",
            "finish_reason": null,
            "error": "say \"no\"",
            "cost": null,
            "energy_joules": null
          }
        ]
        "#);
    }

    #[test]
    fn what_an_older_hob_has_learnt_is_still_known() {
        let root = tempfile::tempdir().expect("a directory");
        let path = root.path().join("hob.db");
        left_at(Schema::HOB, 8, &path);
        let connection = Connection::open(&path).expect("a file");
        connection
            .execute_batch(
                "INSERT INTO router_model VALUES ('code/short/english', 'm', 0.5, 3, 1.5, NULL, NULL);
                 INSERT INTO router_decision
                 SELECT run, 1, 'ask', 'grpo', 'code/short/english', 'ollama', 'm', '[\"m\"]', NULL, 7, FALSE, reward
                 FROM (
                     SELECT 'answered' AS run, 0.6 AS reward UNION SELECT 'failed', 0.0
                     UNION SELECT 'open', NULL UNION SELECT 'rated', 0.96
                 );
                 INSERT INTO feedback VALUES ('rated', 2, 'good', 'ollama', 'm');",
            )
            .expect("learnt");
        let routing = Routing::new(Store::open(&path, Schema::HOB).expect("opened"));
        for (run, answered, implicit, reward) in [
            ("answered", true, Some(0.6), Some(0.6)),
            ("failed", false, Some(0.0), Some(0.0)),
            ("open", false, None, None),
            ("rated", true, None, Some(0.96)),
        ] {
            let found = routing.learn(run, |kept, record| {
                assert_eq!(
                    (kept.answered, kept.implicit, kept.reward),
                    (answered, implicit, reward),
                    "{run}"
                );
                assert_eq!((record.models["m"].tries, record.models["m"].samples), (3, 3));
            });
            assert!(found.expect("learnt"), "{run}");
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
