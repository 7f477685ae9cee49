//! What an older Hob has learnt.

use std::path::Path;

use hob_db::{Database, Migrations};

use crate::store::{MIGRATIONS, RoutingStore, SqliteRoutingStore};

/// A database as a Hob that knew only the first `steps` left it.
fn left_at(steps: usize, path: &Path) -> Database {
    let known = Migrations { steps: &MIGRATIONS.steps[..steps], ..MIGRATIONS };
    Database::open(path, &[known]).expect("made")
}

#[test]
fn the_knowledge_of_an_older_hob_is_kept() {
    let root = tempfile::tempdir().expect("a directory");
    let path = root.path().join("hob.db");
    left_at(1, &path)
        .writer()
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
    let routing = SqliteRoutingStore::new(Database::open(&path, &[MIGRATIONS]).expect("opened"));
    for (run, answered, implicit, reward) in [
        ("answered", true, Some(0.6), Some(0.6)),
        ("failed", false, Some(0.0), Some(0.0)),
        ("open", false, None, None),
        ("rated", true, None, Some(0.96)),
    ] {
        let found = routing.learn(run, &mut |stored, record| {
            assert_eq!(
                (stored.answered, stored.implicit, stored.reward),
                (answered, implicit, reward),
                "{run}"
            );
            assert_eq!((record.models["m"].tries, record.models["m"].samples), (3, 3));
        });
        assert!(found.expect("learnt"), "{run}");
    }
}
