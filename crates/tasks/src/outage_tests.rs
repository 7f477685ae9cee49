//! A database that is away for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use hob_core::{
    Clock, Engine, EngineError, EventBus, GenerateRequest, Generation, GenerationStream, ModelInfo, Permit,
    Reach,
};
use hob_db::{ChangeWatch, Database, DatabaseError};
use hob_testkit::{EngineAsk, ScriptedEngine};
use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

use crate::schedule::ScheduleType;
use crate::scheduler::{Scheduler, SchedulerOptions, SchedulerParts};
use crate::service::{TaskOptions, TaskService};
use crate::store::{
    Claimant, Claimed, MIGRATIONS, Recalculated, Renewal, RunResult, SqliteTaskStore, TaskStore,
};
use crate::task::{NewTask, RunOutcome, Task, TaskRun};
use crate::types::{TaskChange, TaskError, TaskId, TaskStatus};

/// A store that fails while it is away.
struct UnreliableStore {
    inner: SqliteTaskStore,
    is_away: AtomicBool,
}

impl UnreliableStore {
    fn set_away(&self, is_away: bool) {
        self.is_away.store(is_away, Ordering::SeqCst);
    }

    fn get_store(&self) -> Result<&SqliteTaskStore, DatabaseError> {
        match self.is_away.load(Ordering::SeqCst) {
            false => Ok(&self.inner),
            true => Err(DatabaseError::Busy {
                path: "tasks".into(),
                source: rusqlite::Error::ExecuteReturnedResults,
            }),
        }
    }
}

impl TaskStore for UnreliableStore {
    fn exists(&self) -> bool {
        true
    }

    fn insert_of_key(&self, task: &Task, key: &str, most: usize) -> Result<bool, DatabaseError> {
        self.get_store()?.insert_of_key(task, key, most)
    }

    fn insert_all(&self, tasks: &[Task]) -> Result<(), DatabaseError> {
        self.get_store()?.insert_all(tasks)
    }

    fn get(&self, id: &TaskId) -> Result<Option<Task>, DatabaseError> {
        self.get_store()?.get(id)
    }

    fn list(&self, status: Option<TaskStatus>) -> Result<Vec<Task>, DatabaseError> {
        self.get_store()?.list(status)
    }

    fn runs(&self, id: &TaskId, limit: usize) -> Result<Vec<TaskRun>, DatabaseError> {
        self.get_store()?.runs(id, limit)
    }

    fn delete(&self, id: &TaskId) -> Result<bool, DatabaseError> {
        self.get_store()?.delete(id)
    }

    fn change(
        &self,
        id: &TaskId,
        change: TaskChange,
        now: Timestamp,
    ) -> Result<Result<Task, TaskError>, DatabaseError> {
        self.get_store()?.change(id, change, now)
    }

    fn watch(&self) -> Result<Option<ChangeWatch>, DatabaseError> {
        self.get_store()?.watch()
    }

    fn next_due(&self) -> Result<Option<Timestamp>, DatabaseError> {
        self.get_store()?.next_due()
    }

    fn claim_due_except(
        &self,
        keys: &[Option<Arc<str>>],
        now: Timestamp,
        limit: usize,
        claimant: &Claimant,
    ) -> Result<Vec<Claimed>, DatabaseError> {
        self.get_store()?.claim_due_except(keys, now, limit, claimant)
    }

    fn claim_now(
        &self,
        id: &TaskId,
        now: Timestamp,
        claimant: &Claimant,
    ) -> Result<Result<Claimed, TaskError>, DatabaseError> {
        self.get_store()?.claim_now(id, now, claimant)
    }

    fn renew(&self, run: i64, now: Timestamp, claimant: &Claimant) -> Result<Renewal, DatabaseError> {
        self.get_store()?.renew(run, now, claimant)
    }

    fn finish(
        &self,
        run: i64,
        result: &RunResult,
        now: Timestamp,
        claimant: &Claimant,
    ) -> Result<bool, DatabaseError> {
        self.get_store()?.finish(run, result, now, claimant)
    }

    fn expire_leases(&self, now: Timestamp, longest_lease: Duration) -> Result<Vec<TaskRun>, DatabaseError> {
        self.get_store()?.expire_leases(now, longest_lease)
    }

    fn recalculate_carried_ahead(&self, now: Timestamp) -> Result<Vec<Recalculated>, DatabaseError> {
        self.get_store()?.recalculate_carried_ahead(now)
    }
}

/// A store, and a service whose time is that of the runtime.
fn unreliable() -> (Arc<UnreliableStore>, TaskService, Timestamp) {
    let database = Database::in_memory(&[MIGRATIONS]).unwrap();
    let store =
        Arc::new(UnreliableStore { inner: SqliteTaskStore::new(database), is_away: AtomicBool::new(false) });
    let start: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
    let began = Instant::now();
    let clock: Arc<dyn Clock> = Arc::new(move || start + SignedDuration::try_from(began.elapsed()).unwrap());
    let agents = vec!["simple".to_owned()];
    let tasks = TaskService::new(
        Arc::clone(&store) as Arc<dyn TaskStore>,
        TaskOptions { clock, agents, ..TaskOptions::default() },
    );
    (store, tasks, start)
}

fn scheduler_of(tasks: TaskService, engine: Arc<dyn Engine>) -> Scheduler {
    Scheduler::new(SchedulerParts {
        tasks,
        ask: Arc::new(EngineAsk::new(engine)),
        bus: EventBus::new(),
        options: SchedulerOptions::default(),
    })
}

/// A scheduler on a store whose database goes away when the engine is asked, if `goes_away`.
fn scheduler(goes_away: bool) -> (Scheduler, Arc<UnreliableStore>, Timestamp) {
    let (store, tasks, start) = unreliable();
    let fragile = Arc::clone(&store);
    let engine = ScriptedEngine::new(move |_| {
        fragile.set_away(goes_away);
        let done = hob_core::Delta::Finish { choice: 0, reason: hob_core::FinishReason::Stop };
        vec![Ok(hob_core::Delta::text("done")), Ok(done), Ok(hob_core::Delta::Done { usage: None })]
    });
    (scheduler_of(tasks, Arc::new(engine)), store, start)
}

/// Answers after five minutes.
struct SlowEngine(ScriptedEngine);

#[async_trait]
impl Engine for SlowEngine {
    fn key(&self) -> &str {
        "slow"
    }

    fn address(&self) -> &str {
        ""
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        pass(300).await;
        self.0.generate(request).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        pass(300).await;
        self.0.stream(request).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.0.list_models().await
    }

    async fn health(&self) -> bool {
        true
    }
}

/// A scheduler whose runs take five minutes.
fn slow_scheduler(tasks: &TaskService) -> Scheduler {
    scheduler_of(tasks.clone(), Arc::new(SlowEngine(ScriptedEngine::saying(&["done"]))))
}

const EVERY_MINUTE: &str = "60";
const EVERY_DAY: &str = "86400";

async fn create(scheduler: &Scheduler, interval: &str) -> Task {
    let task = NewTask::new("p", ScheduleType::Interval, interval, Permit::up_to(Reach::Act));
    scheduler.tasks().create(task).await.unwrap()
}

/// Creates a task and starts a run of it.
async fn start_run(scheduler: &Scheduler, interval: &str) -> TaskId {
    let task = create(scheduler, interval).await;
    scheduler.run_now(&task.id).await.unwrap();
    task.id
}

/// Each of these tasks has one run, which has succeeded.
async fn assert_succeeded(tasks: &TaskService, ids: &[TaskId]) {
    for id in ids {
        let runs = tasks.runs(id, 10).await.unwrap();
        let outcomes: Vec<Option<RunOutcome>> = runs.iter().map(|run| run.outcome).collect();
        assert_eq!(outcomes, [Some(RunOutcome::Succeeded)], "{runs:?}");
    }
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_result_is_stored_when_the_database_is_back() {
    let (scheduler, store, start) = scheduler(true);
    scheduler.start();
    let task = create(&scheduler, EVERY_MINUTE).await;
    pass(70).await;
    store.set_away(false);
    pass(2).await;
    let runs = scheduler.tasks().runs(&task.id, 10).await.unwrap();
    let seen: Vec<_> = runs.iter().map(|run| (run.slot, run.outcome, run.result.as_deref())).collect();
    assert_eq!(seen, [(start + SignedDuration::from_secs(60), Some(RunOutcome::Succeeded), Some("done"))]);
}

#[tokio::test(start_paused = true)]
async fn a_slot_runs_soon_after_the_database_is_back() {
    let (scheduler, store, start) = scheduler(false);
    scheduler.start();
    let task = create(&scheduler, EVERY_MINUTE).await;
    pass(50).await;
    store.set_away(true);
    pass(20).await;
    store.set_away(false);
    pass(6).await;
    let runs = scheduler.tasks().runs(&task.id, 10).await.unwrap();
    let starts: Vec<_> = runs.iter().map(|run| run.started_at).collect();
    assert_eq!(starts.len(), 1);
    let late = starts[0].duration_since(start + SignedDuration::from_secs(70));
    assert!(late <= SignedDuration::from_secs(5), "{late}");
}

/// The leases of two schedulers expire while their database is away. Then each records ended runs before the other one has renewed
/// its leases.
#[tokio::test(start_paused = true)]
async fn an_outage_does_not_interrupt_active_runs() {
    let (store, tasks, _) = unreliable();
    let schedulers = [slow_scheduler(&tasks), slow_scheduler(&tasks)];
    let mut running = Vec::new();
    for scheduler in &schedulers {
        scheduler.start();
        running.push(start_run(scheduler, EVERY_DAY).await);
    }
    pass(5).await;
    store.set_away(true);
    pass(100).await;
    store.set_away(false);
    // A run outside the schedule records ended runs at once.
    for scheduler in &schedulers {
        start_run(scheduler, EVERY_MINUTE).await;
    }
    pass(600).await;
    assert_succeeded(&tasks, &running).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_whose_process_has_ended_is_recorded_one_lease_after_an_outage() {
    let (scheduler, store, start) = scheduler(false);
    scheduler.start();
    let task = create(&scheduler, EVERY_DAY).await;
    let lease = SchedulerOptions::default().lease;
    let gone = Claimant { owner: "gone".into(), lease, grace: lease };
    store.inner.claim_now(&task.id, start, &gone).unwrap().unwrap();
    pass(5).await;
    store.set_away(true);
    // A poll takes place every minute.
    pass(65).await;
    store.set_away(false);
    let outcome = async || scheduler.tasks().runs(&task.id, 10).await.unwrap()[0].outcome;
    pass(10).await;
    assert_eq!(outcome().await, None, "its process may still renew the lease");
    pass(30).await;
    assert_eq!(outcome().await, Some(RunOutcome::Interrupted));
}

/// Neither scheduler polls during the outage.
#[tokio::test(start_paused = true)]
async fn an_outage_between_two_polls_does_not_interrupt_runs_of_other_processes() {
    let (store, tasks, _) = unreliable();
    let schedulers = [slow_scheduler(&tasks), slow_scheduler(&tasks)];
    let mut running = Vec::new();
    for scheduler in &schedulers {
        running.push(start_run(scheduler, EVERY_MINUTE).await);
    }
    store.set_away(true);
    // Renewals are tried every six seconds, so none happens between the end of the outage and the next call.
    pass(93).await;
    store.set_away(false);
    start_run(&schedulers[0], EVERY_MINUTE).await;
    pass(600).await;
    assert_succeeded(&tasks, &running).await;
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_expired_does_not_interrupt_a_run_of_the_same_process() {
    let (store, tasks, _) = unreliable();
    let scheduler = slow_scheduler(&tasks);
    // Without a loop that notices the outage.
    let first = start_run(&scheduler, EVERY_MINUTE).await;
    store.set_away(true);
    // Renewals are tried every six seconds, so none happens between the end of the outage and the next call.
    pass(93).await;
    store.set_away(false);
    let second = start_run(&scheduler, EVERY_MINUTE).await;
    pass(600).await;
    assert_succeeded(&tasks, &[first, second]).await;
}
