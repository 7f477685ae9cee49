//! A database that is away for a while.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use hob_core::{Clock, EventBus, Permit, Reach};
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

    fn claim_due(
        &self,
        now: Timestamp,
        limit: usize,
        claimant: &Claimant,
    ) -> Result<Vec<Claimed>, DatabaseError> {
        self.get_store()?.claim_due(now, limit, claimant)
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

/// A scheduler on a store whose database goes away when the engine is asked, if `goes_away`.
fn scheduler(goes_away: bool) -> (Scheduler, Arc<UnreliableStore>, Timestamp) {
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
    let fragile = Arc::clone(&store);
    let engine = ScriptedEngine::new(move |_| {
        fragile.set_away(goes_away);
        let done = hob_core::Delta::Finish { choice: 0, reason: hob_core::FinishReason::Stop };
        vec![Ok(hob_core::Delta::text("done")), Ok(done), Ok(hob_core::Delta::Done { usage: None })]
    });
    let scheduler = Scheduler::new(SchedulerParts {
        tasks,
        ask: Arc::new(EngineAsk::new(Arc::new(engine))),
        bus: EventBus::new(),
        options: SchedulerOptions::default(),
    });
    (scheduler, store, start)
}

async fn create(scheduler: &Scheduler) -> Task {
    let task = NewTask::new("p", ScheduleType::Interval, "60", Permit::up_to(Reach::Act));
    scheduler.tasks().create(task).await.unwrap()
}

async fn pass(seconds: u64) {
    tokio::time::sleep(Duration::from_secs(seconds)).await;
}

#[tokio::test(start_paused = true)]
async fn a_result_is_stored_when_the_database_is_back() {
    let (scheduler, store, start) = scheduler(true);
    scheduler.start();
    let task = create(&scheduler).await;
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
    let task = create(&scheduler).await;
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
