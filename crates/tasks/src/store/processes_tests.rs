//! Real processes on one database, and some that are killed. The test program starts itself as the other processes.

use std::path::{Path, PathBuf};
use std::process::Child;
use std::sync::Arc;
use std::time::Duration;

use hob_db::{Database, DatabaseError};
use hob_testkit::{PostgresServer, TestDatabase, test_process};
use jiff::SignedDuration;

use super::simulation_tests::{check, log};
use super::tests::{after, asked, claimant, open_postgres, planned, success};
use super::{Claimed, MIGRATIONS, TaskStore, task_store};
use crate::schedule::ScheduleType;
use crate::task::{RunOutcome, Task};

/// The place and the owner for the other process, and how many processes start together.
const PLACE: &str = "HOB_TEST_STORE";
const OWNER: &str = "HOB_TEST_OWNER";
const TOGETHER: &str = "HOB_TEST_TOGETHER";
const STARTED: &str = "HOB_TEST_STARTED";

/// The other processes end when every slot up to here has run.
const UNTIL: i64 = 3000;

/// A database that several processes use.
struct Place {
    /// A path or a URL.
    name: String,
    root: tempfile::TempDir,
    _database: Option<TestDatabase>,
}

type NewPlace = fn() -> Place;

fn sqlite() -> Place {
    let root = tempfile::tempdir().expect("a directory");
    let name = root.path().join("hob.db").to_str().expect("text").to_owned();
    Place { name, root, _database: None }
}

fn postgres() -> Place {
    let database = PostgresServer::shared().create_database();
    let root = tempfile::tempdir().expect("a directory");
    Place { name: database.url(), root, _database: Some(database) }
}

fn open(place: &str) -> Arc<dyn TaskStore> {
    if place.starts_with("postgres://") {
        return open_postgres(place);
    }
    task_store(Database::open(Path::new(place), &[MIGRATIONS]).expect("opened"))
}

impl Place {
    fn start(&self, what: &str, owner: &str, together: usize) -> Child {
        test_process(&format!("store::processes_tests::{what}"))
            .env(PLACE, &self.name)
            .env(STARTED, self.root.path().join("started"))
            .env(OWNER, owner)
            .env(TOGETHER, together.to_string())
            .spawn()
            .expect("started")
    }
}

fn of_this_process() -> (Arc<dyn TaskStore>, String) {
    let place = std::env::var(PLACE).expect("only started by another test");
    (open(&place), std::env::var(OWNER).expect("a name"))
}

/// Waits until all processes that work together have started: a quick one would otherwise leave nothing to the others.
fn wait_for_all(owner: &str) {
    let started = PathBuf::from(std::env::var_os(STARTED).expect("only started by another test"));
    let together: usize = std::env::var(TOGETHER).expect("a number").parse().expect("a number");
    std::fs::create_dir_all(&started).expect("made");
    std::fs::write(started.join(owner), "").expect("written");
    while std::fs::read_dir(&started).expect("listed").count() < together {
        std::thread::yield_now();
    }
}

/// Tries again while the other process holds the database, as the scheduler does at its next poll. Both write without a pause, and
/// SQLite promises no turns: on a busy machine one of them can wait for longer than a write does.
fn once_free<T>(work: impl Fn() -> Result<T, DatabaseError>) -> T {
    loop {
        match work() {
            Err(DatabaseError::Busy { .. }) => std::thread::yield_now(),
            done => return done.expect("the store works"),
        }
    }
}

hob_testkit::on_both_databases!(
    sqlite, postgres:
    two_processes_on_one_store_run_every_slot_once,
    a_process_that_is_killed_at_any_moment_costs_no_slot,
    a_run_that_is_killed_with_its_process_is_logged_as_interrupted,
);

/// Ten tasks that run every ten seconds or so.
fn fill(tasks: &dyn TaskStore) -> Vec<Task> {
    let planned: Vec<Task> = (0..10)
        .map(|number| {
            planned(&format!("t{number}"), asked(ScheduleType::Interval, &(10 + number).to_string()))
        })
        .collect();
    tasks.insert_all(&planned).expect("kept");
    planned
}

#[test]
#[ignore = "a process that the other tests start"]
fn runs_due_tasks() {
    let (tasks, owner) = of_this_process();
    wait_for_all(&owner);
    let owner = claimant(&owner);
    loop {
        // The simulated clock is always at the next slot, and after the lease of killed processes.
        let Some(now) = once_free(|| tasks.next_due()) else {
            once_free(|| tasks.expire_leases(after(UNTIL + 3600), Duration::from_secs(30)));
            continue;
        };
        if now > after(UNTIL) {
            return;
        }
        for Claimed { run, .. } in once_free(|| tasks.claim_due(now, 3, &owner)) {
            assert!(once_free(|| tasks.finish(run.id, &success(), now, &owner)));
        }
    }
}

#[test]
#[ignore = "a process that the other tests start and kill"]
fn claims_and_then_hangs() {
    let (tasks, owner) = of_this_process();
    assert_eq!(tasks.claim_due(after(60), 1, &claimant(&owner)).expect("claimed").len(), 1);
    loop {
        std::thread::park();
    }
}

fn two_processes_on_one_store_run_every_slot_once(new: NewPlace) {
    let place = new();
    let tasks = open(&place.name);
    let planned = fill(tasks.as_ref());
    let children: Vec<Child> = ["one", "two"].map(|owner| place.start("runs_due_tasks", owner, 2)).into();
    for mut child in children {
        assert!(child.wait().expect("it ends").success());
    }
    for task in &planned {
        check(task, &log(tasks.as_ref(), task), after(UNTIL));
    }
}

fn a_process_that_is_killed_at_any_moment_costs_no_slot(new: NewPlace) {
    let place = new();
    let tasks = open(&place.name);
    let planned = fill(tasks.as_ref());
    for (number, milliseconds) in [40, 90, 20, 150, 60, 110].into_iter().enumerate() {
        let mut child = place.start("runs_due_tasks", &format!("victim-{number}"), 1);
        // Killed in the midst of whatever it does: this is no wait for anything to happen.
        std::thread::sleep(Duration::from_millis(milliseconds));
        child.kill().expect("killed");
        child.wait().expect("gone");
        let gone = tasks.expire_leases(after(UNTIL + 3600), Duration::from_secs(30)).expect("looked");
        // PostgreSQL may commit the last claim of a killed process a little later: then it is found here the next time.
        assert!(gone.len() <= 2 * 3, "no more than two of them had claimed");
    }
    loop {
        assert!(place.start("runs_due_tasks", "last", 1).wait().expect("it ends").success());
        let gone = tasks.expire_leases(after(UNTIL + 3600), Duration::from_secs(30)).expect("looked");
        if gone.is_empty() {
            break;
        }
    }
    for task in &planned {
        check(task, &log(tasks.as_ref(), task), after(UNTIL));
    }
}

fn a_run_that_is_killed_with_its_process_is_logged_as_interrupted(new: NewPlace) {
    let place = new();
    let tasks = open(&place.name);
    let task = planned("t", asked(ScheduleType::Interval, "60"));
    tasks.insert(&task).expect("kept");
    let mut child = place.start("claims_and_then_hangs", "victim", 1);
    while tasks.runs(&task.id, 1).expect("read").is_empty() {
        assert!(child.try_wait().expect("a process").is_none(), "it hangs");
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("gone");

    let rescuer = claimant("rescuer");
    assert_eq!(tasks.claim_due(after(80), 9, &rescuer).expect("claimed"), [], "its lease still holds");
    let lease = Duration::from_secs(30);
    let gone = tasks.expire_leases(after(91), lease).expect("looked");
    assert_eq!((gone[0].slot, gone[0].outcome), (after(60), Some(RunOutcome::Interrupted)));
    assert_eq!(tasks.claim_due(after(91), 9, &rescuer).expect("claimed"), [], "it is not run again");
    let next = tasks.claim_due(after(120) + SignedDuration::from_millis(5), 9, &rescuer).expect("claimed");
    assert_eq!(next[0].run.slot, after(120));
}
