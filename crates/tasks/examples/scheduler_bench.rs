//! Measures a poll among many tasks, and the database cost of a run: `cargo run -p hob-tasks --example scheduler_bench
//! [tasks...]`.

use std::time::{Duration, Instant};

use hob_core::{Permit, Reach};
use hob_db::Database;
use hob_tasks::store::{Claimant, RetryPolicy, RunResult, SqliteTaskStore, TaskStore};
use hob_tasks::{MIGRATIONS, NewTask, RunOutcome, ScheduleType, Task, TaskId};
use jiff::{SignedDuration, Timestamp};

/// Due at each measured poll that finds something.
const DUE: usize = 10;
const POLLS: u32 = 1000;

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let mut sizes: Vec<usize> =
        std::env::args().skip(1).map(|size| size.parse()).collect::<Result<_, _>>()?;
    if sizes.is_empty() {
        sizes = vec![1_000, 10_000, 100_000];
    }
    println!(
        "{:>9}  {:>12}  {:>14}  {:>14}  {:>14}",
        "tasks", "insert each", "idle poll", "poll, 10 due", "run, each"
    );
    for size in sizes {
        measure(size)?;
    }
    Ok(())
}

fn measure(size: usize) -> Result<(), Failure> {
    let directory = tempfile::tempdir()?;
    let tasks = SqliteTaskStore::new(Database::open(&directory.path().join("hob.db"), &[MIGRATIONS])?);
    let now = Timestamp::now();
    let claimant = Claimant {
        owner: "bench".to_owned(),
        lease: Duration::from_secs(30),
        grace: Duration::from_secs(60),
    };

    let planned: Vec<Task> = (0..size).map(|number| task(number, now)).collect::<Result<_, _>>()?;
    let inserting = Instant::now();
    for batch in planned.chunks(1000) {
        tasks.insert_all(batch)?;
    }
    let insert = inserting.elapsed() / u32::try_from(size)?;

    let mut idle = Vec::new();
    for _ in 0..POLLS {
        let polling = Instant::now();
        tasks.expire_leases(now, claimant.lease)?;
        let claimed = tasks.claim_due(now, DUE, &claimant)?;
        tasks.next_due()?;
        idle.push(polling.elapsed());
        assert!(claimed.is_empty(), "nothing is due yet");
    }

    // Far enough ahead that there is always something to do.
    let later = now + SignedDuration::from_hours(24 * 400);
    let (mut busy, mut runs) = (Vec::new(), Vec::new());
    let end = RunResult {
        outcome: RunOutcome::Succeeded,
        result: Some("done".to_owned()),
        error: None,
        retry: RetryPolicy::IfLeft,
    };
    for _ in 0..(size / DUE).min(50) {
        let polling = Instant::now();
        tasks.expire_leases(later, claimant.lease)?;
        let claimed = tasks.claim_due(later, DUE, &claimant)?;
        tasks.next_due()?;
        busy.push(polling.elapsed());
        assert_eq!(claimed.len(), DUE, "all of them are due");
        for claimed in claimed {
            let running = Instant::now();
            tasks.renew(claimed.run.id, later, &claimant)?;
            tasks.finish(claimed.run.id, &end, later, &claimant)?;
            runs.push(running.elapsed());
        }
    }
    let shown = |times: &mut Vec<Duration>| format!("{:.1} µs", median(times).as_secs_f64() * 1e6);
    let (idle, busy, runs) = (shown(&mut idle), shown(&mut busy), shown(&mut runs));
    println!(
        "{size:>9}  {:>12}  {idle:>14}  {busy:>14}  {runs:>14}",
        format!("{:.1} µs", insert.as_secs_f64() * 1e6)
    );
    Ok(())
}

fn task(number: usize, now: Timestamp) -> Result<Task, Failure> {
    let cron = format!("{} {} * * *", number % 60, number / 60 % 24);
    let task = NewTask::new("Summarise my notes.", ScheduleType::Cron, cron, Permit::up_to(Reach::Act));
    Ok(task.plan(TaskId::parse(&format!("task-{number}"))?, now)?)
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times.get(times.len() / 2).copied().unwrap_or_default()
}
