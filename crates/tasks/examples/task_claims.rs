//! How many due tasks several schedulers claim and finish per second, in SQLite and in PostgreSQL. `./dev bench database claims` runs
//! it; or `task_claims [--url URL] [--tasks COUNT] [SCHEDULERS...]`.
//!
//! Each scheduler is a thread with its own connections, so the database sees it as a process. Without a URL, PostgreSQL is the server of
//! the tests, which does not wait for the disk.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use hob_core::{Permit, Reach};
use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_tasks::store::{Claimant, RetryPolicy, RunResult, TaskStore, task_store};
use hob_tasks::{MIGRATIONS, NewTask, POSTGRES_MIGRATIONS, RunOutcome, ScheduleType, Task, TaskId};
use hob_testkit::{PostgresServer, TestDatabase};
use jiff::{SignedDuration, Timestamp};

const TASKS: usize = 4_000;

const SCHEDULERS: [usize; 3] = [1, 4, 16];

/// Claimed at once, as with the default of `[scheduler] max_concurrent`.
const AT_ONCE: usize = 4;

type Failure = Box<dyn std::error::Error + Send + Sync>;
type Open<'a> = dyn Fn() -> Result<Arc<dyn TaskStore>, Failure> + Sync + 'a;

fn main() -> Result<(), Failure> {
    let (mut url, mut tasks, mut schedulers) = (None, TASKS, Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--url" => url = Some(arguments.next().ok_or("--url needs an address")?),
            "--tasks" => tasks = arguments.next().ok_or("--tasks needs a number")?.parse()?,
            number => schedulers.push(number.parse()?),
        }
    }
    if schedulers.is_empty() {
        schedulers = SCHEDULERS.to_vec();
    }
    println!("| database | schedulers | tasks | claimed and finished per second | ratio | longest claim |");
    println!("|---|---|---|---|---|---|");
    // The ratio is that to the first row of the database.
    let mut first = None;
    for count in &schedulers {
        let directory = tempfile::tempdir()?;
        let file = directory.path().join("hob.db");
        let figures = measure(*count, tasks, &|| open_sqlite(&file))?;
        figures.print("SQLite", *count, tasks, *first.get_or_insert(figures.per_second));
    }
    let mut first = None;
    for count in &schedulers {
        let (name, _database) = postgres(url.as_deref());
        let figures = measure(*count, tasks, &|| open_postgres(&name))?;
        figures.print("PostgreSQL", *count, tasks, *first.get_or_insert(figures.per_second));
    }
    Ok(())
}

struct Figures {
    per_second: f64,
    longest: Duration,
}

impl Figures {
    /// A row.
    fn print(&self, name: &str, schedulers: usize, tasks: usize, first: f64) {
        let Figures { per_second, longest } = self;
        let (ratio, longest) = (per_second / first, longest.as_secs_f64() * 1e3);
        println!("| {name} | {schedulers} | {tasks} | {per_second:.0} | {ratio:.2} | {longest:.1} ms |");
    }
}

fn open_sqlite(file: &Path) -> Result<Arc<dyn TaskStore>, Failure> {
    Ok(task_store(Database::open(file, &[MIGRATIONS])?))
}

fn open_postgres(url: &str) -> Result<Arc<dyn TaskStore>, Failure> {
    Ok(task_store(PostgresDatabase::new(url.parse()?, &[POSTGRES_MIGRATIONS])?))
}

/// The given database, or one of the test server.
fn postgres(url: Option<&str>) -> (String, Option<TestDatabase>) {
    match url {
        Some(url) => (url.to_owned(), None),
        None => {
            let database = PostgresServer::shared().create_database();
            (database.url(), Some(database))
        }
    }
}

fn measure(schedulers: usize, count: usize, open: &Open<'_>) -> Result<Figures, Failure> {
    let store = open()?;
    if !store.list(None)?.is_empty() {
        return Err("the database must be empty".into());
    }
    let now = Timestamp::now();
    let tasks: Vec<Task> = (0..count).map(|number| task(number, now)).collect::<Result<_, _>>()?;
    for batch in tasks.chunks(1000) {
        store.insert_all(batch)?;
    }
    // All are due.
    let later = now + SignedDuration::from_hours(2);
    let finished = AtomicUsize::new(0);
    let stores = (0..schedulers).map(|_| open()).collect::<Result<Vec<_>, _>>()?;
    let began = Instant::now();
    let longest = std::thread::scope(|scope| {
        let running: Vec<_> = stores
            .iter()
            .enumerate()
            .map(|(number, store)| {
                let finished = &finished;
                scope.spawn(move || work(&**store, number, count, later, finished))
            })
            .collect();
        let ended = running.into_iter().map(|thread| thread.join().map_err(|_| "a scheduler failed")?);
        ended.collect::<Result<Vec<Duration>, Failure>>()
    })?;
    let took = began.elapsed();
    for task in tasks.iter().take(100) {
        let runs = store.runs(&task.id, 10)?.len();
        if runs != 1 {
            return Err(format!("{} has {runs} runs", task.id).into());
        }
    }
    for task in &tasks {
        store.delete(&task.id)?;
    }
    let per_second = count as f64 / took.as_secs_f64();
    Ok(Figures { per_second, longest: longest.into_iter().max().unwrap_or_default() })
}

/// Claims and finishes until all tasks are done. Returns the longest time of a claim.
fn work(
    store: &dyn TaskStore,
    number: usize,
    count: usize,
    now: Timestamp,
    finished: &AtomicUsize,
) -> Result<Duration, Failure> {
    let claimant = Claimant {
        owner: format!("bench-{number}"),
        lease: Duration::from_secs(30),
        grace: Duration::from_secs(60),
    };
    let end = RunResult {
        outcome: RunOutcome::Succeeded,
        result: Some("done".to_owned()),
        error: None,
        retry: RetryPolicy::IfLeft,
    };
    let mut longest = Duration::ZERO;
    while finished.load(Ordering::Relaxed) < count {
        let began = Instant::now();
        let claimed = store.claim_due(now, AT_ONCE, &claimant)?;
        longest = longest.max(began.elapsed());
        if claimed.is_empty() {
            // The others finish the last ones.
            std::thread::yield_now();
        }
        for claimed in claimed {
            if !store.finish(claimed.run.id, &end, now, &claimant)? {
                return Err(format!("{} was claimed twice", claimed.task.id).into());
            }
            finished.fetch_add(1, Ordering::Relaxed);
        }
    }
    Ok(longest)
}

fn task(number: usize, now: Timestamp) -> Result<Task, Failure> {
    let once = (now + SignedDuration::from_hours(1)).to_string();
    let task = NewTask::new("Summarise my notes.", ScheduleType::Once, once, Permit::up_to(Reach::Act));
    Ok(task.plan(TaskId::parse(&format!("task-{number}"))?, now)?)
}
