//! Calls that an older Hob recorded.

use std::path::Path;
use std::sync::Arc;

use hob_db::{Database, Migrations};

use crate::store::TelemetryStore;
use crate::store::sqlite::{MIGRATIONS, SqliteTelemetryStore};
use crate::store::tests::rows;

/// A database as a Hob that knew only the first `steps` left it.
fn left_at(steps: usize, path: &Path) -> Database {
    let known = Migrations { steps: &MIGRATIONS.steps[..steps], ..MIGRATIONS };
    Database::open(path, &[known]).expect("made")
}

#[test]
fn calls_of_an_older_hob_are_in_the_sums_of_all_days() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    left_at(2, &path)
        .writer()
        .execute_batch(
            "INSERT INTO telemetry_series (id, engine, model, agent, source) VALUES (7, 'ollama', 'm', '', 'ask');
             INSERT INTO telemetry_day VALUES (1, 7, 5, 1, 0, 0, 100, 10, 0, 0, 0, 0, 3, 0, 0, 0);
             INSERT INTO telemetry_day VALUES (2, 7, 3, 0, 0, 0, 50, 5, 0, 0, 0, 0, 4, 0, 0, 0);",
        )
        .expect("recorded");
    let database = Database::open(&path, &[MIGRATIONS]).expect("opened");
    let sums: [i64; 4] = database.writer().query_row(
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
    // The first day has more calls than a page takes, recorded in another order than they began.
    left_at(3, &path)
        .writer()
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
    let database = Database::open(&path, &[MIGRATIONS]).expect("opened");
    let telemetry: Arc<dyn TelemetryStore> = Arc::new(SqliteTelemetryStore::new(database));
    let rows = rows(&telemetry);
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
        "key": null,
        "end_user": null,
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
        "energy_joules": 0.000008,
        "request_id": null,
        "route": null,
        "host": null,
        "queue_seconds": null
      },
      {
        "started": "1970-01-02T00:00:00.000000Z",
        "run": "last",
        "source": "ask",
        "engine": "cloud",
        "model": "m",
        "agent": "react",
        "key": null,
        "end_user": null,
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
        "energy_joules": null,
        "request_id": null,
        "route": null,
        "host": null,
        "queue_seconds": null
      }
    ]
    "#);
}
