//! What only SQLite can show: rows that another program spoilt, and the plans of queries.

use super::*;
use crate::schedule::ScheduleType;
use crate::store::tests::{after, asked, claimant, planned};

fn tasks() -> SqliteTaskStore {
    SqliteTaskStore::new(hob_db::Database::in_memory(&[MIGRATIONS]).expect("opened"))
}

#[test]
fn a_task_that_cannot_be_read_does_not_hold_up_the_others() {
    let tasks = tasks();
    for id in ["a", "b"] {
        tasks.insert(&planned(id, asked(ScheduleType::Interval, "600"))).expect("kept");
    }
    let spoil = "UPDATE task SET timezone = 'Mars/Olympus' WHERE id = 'a'";
    tasks.write(|transaction| transaction.execute_batch(spoil)).expect("spoilt");
    let claimed = tasks.claim_due(after(600), 1, &claimant("x")).expect("claimed");
    assert_eq!(claimed, []);
    let claimed = tasks.claim_due(after(600), 1, &claimant("x")).expect("claimed");
    assert_eq!(claimed[0].task.id.as_str(), "b");
}

/// A poll costs what is due, not what there is.
#[test]
fn a_poll_reads_indexes_only() {
    let database = tasks().database.open().expect("opened");
    let writer = database.writer();
    let plan = |sql: &str, parameters: usize| {
        let mut statement = writer.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).expect("a plan");
        let zeros = rusqlite::params_from_iter(vec![0_i64; parameters]);
        let steps = statement.query_map(zeros, |row| row.get::<_, String>(3)).expect("steps");
        steps.collect::<Result<Vec<_>, _>>().expect("text").join("; ")
    };
    assert_eq!(plan(claim::DUE, 2), "SEARCH task USING COVERING INDEX task_due (status=? AND due<?)");
    assert_eq!(plan(NEXT_DUE, 0), "SEARCH task USING COVERING INDEX task_due (status=?)");
    // Of which there is an entry only for runs under way.
    assert_eq!(plan(finish::EXPIRED, 2), "SCAN task_run USING INDEX task_run_lease");
}
