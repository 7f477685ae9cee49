//! What only PostgreSQL can show: rows that another program spoilt, text that it refuses, plans of queries, and its clock.

use hob_testkit::{CommitLoss, CommitProxy, PostgresServer, TestDatabase};

use super::*;
use crate::schedule::ScheduleType;
use crate::store::tests::{after, asked, claimant, planned, success};
use crate::task::RunOutcome;

fn tasks() -> (PostgresTaskStore, TestDatabase) {
    let test = PostgresServer::shared().create_database();
    let options = test.url().parse().expect("a URL");
    let database = PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("made");
    (PostgresTaskStore::new(database), test)
}

#[test]
fn a_task_that_cannot_be_read_does_not_hold_up_the_others() {
    let (tasks, _test) = tasks();
    for id in ["a", "b"] {
        tasks.insert(&planned(id, asked(ScheduleType::Interval, "600"))).expect("kept");
    }
    let spoil = "UPDATE task SET timezone = 'Mars/Olympus' WHERE id = 'a'";
    tasks.database.write(|transaction| transaction.run_script(spoil)).expect("spoilt");
    let claimed = tasks.claim_due(after(600), 2, &claimant("x")).expect("claimed");
    assert_eq!(claimed.iter().map(|claimed| claimed.task.id.as_str()).collect::<Vec<_>>(), ["b"]);
    assert_eq!(tasks.next_due().expect("read"), None);
}

#[test]
fn any_character_of_a_task_is_read_as_it_was_saved() {
    let (tasks, _test) = tasks();
    let mut task = planned("t", asked(ScheduleType::Interval, "600"));
    task.prompt = "say\0hello".to_owned();
    tasks.insert(&task).expect("kept");
    assert_eq!(tasks.get(&task.id).expect("read").expect("there").prompt, "say\0hello");
    let claimed = tasks.claim_due(after(600), 1, &claimant("x")).expect("claimed");
    let result = RunResult { result: Some("a\0b".to_owned()), ..success() };
    assert!(tasks.finish(claimed[0].run.id, &result, after(601), &claimant("x")).expect("finished"));
    let run = tasks.runs(&task.id, 1).expect("read").remove(0);
    assert_eq!((run.outcome, run.result.as_deref()), (Some(RunOutcome::Succeeded), Some("a\0b")));
}

/// A poll costs what is due, not what there is.
#[test]
fn a_poll_reads_indexes_only() {
    let (tasks, _test) = tasks();
    let many = (0..5000).map(|number| planned(&format!("t{number}"), asked(ScheduleType::Interval, "600")));
    tasks.insert_all(&many.collect::<Vec<_>>()).expect("kept");
    let plan = |sql: &str, parameters: &str| {
        let sql = sql.replace("$1", parameters).replace("$2", "10");
        let explained = tasks.database.read(|transaction| {
            transaction.query("SET LOCAL enable_seqscan = on", &[])?;
            let rows = transaction
                .query(&format!("EXPLAIN (COSTS OFF) {}", sql.replace("FOR UPDATE SKIP LOCKED", "")), &[])?;
            rows.iter().map(|row| Ok(row.try_get::<_, String>(0)?)).collect::<Result<Vec<_>, _>>()
        });
        explained.expect("a plan").join("\n")
    };
    tasks.database.write(|transaction| transaction.run_script("ANALYZE task")).expect("counted");
    for (sql, index) in [(claim::due(), "task_due"), (NEXT_DUE.to_owned(), "task_due")] {
        let plan = plan(&sql, "0");
        assert!(plan.contains(&format!("using {index}")) && !plan.contains("Seq Scan"), "{plan}");
    }
}

#[test]
fn claims_of_several_processes_do_not_wait_for_each_other() {
    let (tasks, test) = tasks();
    let other =
        PostgresDatabase::new(test.url().parse().expect("a URL"), &[POSTGRES_MIGRATIONS]).expect("made");
    let other = PostgresTaskStore::new(other);
    let due = (0..4).map(|number| planned(&format!("t{number}"), asked(ScheduleType::Interval, "600")));
    tasks.insert_all(&due.collect::<Vec<_>>()).expect("kept");
    let now = after(600);
    let both = tasks.database.write(|transaction| {
        let first = claim::claim_due(transaction, &[], now, 2, &claimant("a"), None)?;
        // While the first transaction is open.
        let second = other.claim_due(now, 4, &claimant("b")).expect("claimed");
        Ok((first.len(), second.len()))
    });
    assert_eq!(both.expect("claimed"), (2, 2));
}

#[test]
fn a_wrong_clock_of_a_process_does_not_end_the_runs_of_others() {
    let (tasks, _test) = tasks();
    tasks.insert(&planned("t", asked(ScheduleType::Interval, "600"))).expect("kept");
    let run = tasks.claim_due(after(600), 1, &claimant("x")).expect("claimed").remove(0).run;
    let hour = 3600;
    for clock in [600 - hour, 600 + hour] {
        assert_eq!(tasks.expire_leases(after(clock), claimant("x").lease).expect("looked"), [], "{clock}");
        assert_eq!(tasks.renew(run.id, after(clock), &claimant("x")).expect("renewed"), Renewal::Held);
    }
    let end = "UPDATE task_run SET lease = 0";
    tasks.database.write(|transaction| transaction.run_script(end)).expect("ended");
    let ended = tasks.expire_leases(after(600), claimant("x").lease).expect("looked");
    assert_eq!(ended.iter().map(|run| run.id).collect::<Vec<_>>(), [run.id]);
}

#[test]
fn a_claim_whose_commit_was_not_confirmed_is_not_lost() {
    let (tasks, _test) = tasks();
    for (id, seconds) in [("a", "300"), ("b", "600")] {
        tasks.insert(&planned(id, asked(ScheduleType::Interval, seconds))).expect("kept");
    }
    let made = tasks.claim_due(after(600), 1, &claimant("x")).expect("claimed").remove(0);
    let never_made = Claimed { run: TaskRun { id: made.run.id + 1000, ..made.run.clone() }, ..made.clone() };
    // As if the connection had broken during the commits.
    tasks.unconfirmed.lock().expect("no panic").extend([never_made, made.clone()]);
    let claimed = tasks.claim_due(after(601), 2, &claimant("x")).expect("claimed");
    assert_eq!(claimed.iter().map(|claimed| claimed.task.id.as_str()).collect::<Vec<_>>(), ["a", "b"]);
    assert_eq!(claimed[0], made);
    assert_eq!(tasks.claim_due(after(602), 2, &claimant("x")).expect("claimed"), [], "once");
    // One that the server has not made is forgotten after its lease.
    assert_eq!(tasks.claim_due(after(631), 2, &claimant("x")).expect("claimed"), []);
    assert_eq!(*tasks.unconfirmed.lock().expect("no panic"), []);
}

/// A task that is not due, in a store whose commits can be lost.
fn behind_a_proxy() -> (PostgresTaskStore, TaskId, CommitProxy, TestDatabase) {
    let test = PostgresServer::shared().create_database();
    let proxy = CommitProxy::start(&test);
    let database = PostgresDatabase::new(proxy.url().parse().expect("a URL"), &[POSTGRES_MIGRATIONS]);
    let tasks = PostgresTaskStore::new(database.expect("made"));
    let task = planned("t", asked(ScheduleType::Interval, "600"));
    tasks.insert(&task).expect("kept");
    (tasks, task.id, proxy, test)
}

/// The run was claimed once, and its end is recorded.
fn assert_claimed_once(tasks: &PostgresTaskStore, claimed: &Claimed) {
    assert_eq!(tasks.runs(&claimed.task.id, 10).expect("read"), std::slice::from_ref(&claimed.run));
    assert!(tasks.finish(claimed.run.id, &success(), after(2), &claimant("x")).expect("finished"));
    assert_eq!(tasks.claim_due(after(3), 2, &claimant("x")).expect("claimed"), [], "once");
}

#[test]
fn a_run_outside_the_schedule_starts_although_the_connection_breaks_during_the_commit() {
    for loss in [CommitLoss::Unconfirmed, CommitLoss::Unsent] {
        let (tasks, id, proxy, _test) = behind_a_proxy();
        proxy.lose_next(loss);
        let claimed = tasks.claim_now(&id, after(1), &claimant("x")).expect("claimed").expect("not running");
        assert_claimed_once(&tasks, &claimed);
    }
}

#[test]
fn a_run_outside_the_schedule_is_found_when_the_server_is_back() {
    for by_poll in [true, false] {
        let (tasks, id, proxy, _test) = behind_a_proxy();
        proxy.lose_next_and_go_away(CommitLoss::Unconfirmed);
        let error = tasks.claim_now(&id, after(1), &claimant("x")).expect_err("it is away");
        assert!(error.is_temporary(), "{error}");
        proxy.come_back();
        let claimed = if by_poll {
            tasks.claim_due(after(2), 2, &claimant("x")).expect("claimed").remove(0)
        } else {
            tasks.claim_now(&id, after(2), &claimant("x")).expect("claimed").expect("its own run")
        };
        assert_eq!(claimed.run.started_at, after(1));
        assert_claimed_once(&tasks, &claimed);
    }
}

#[test]
fn a_run_outside_the_schedule_that_was_never_committed_is_claimed_again() {
    let (tasks, id, proxy, _test) = behind_a_proxy();
    proxy.lose_next_and_go_away(CommitLoss::Unsent);
    tasks.claim_now(&id, after(1), &claimant("x")).expect_err("it is away");
    proxy.come_back();
    let claimed = tasks.claim_now(&id, after(2), &claimant("x")).expect("claimed").expect("not running");
    assert_eq!(claimed.run.started_at, after(2));
    assert_claimed_once(&tasks, &claimed);
}
