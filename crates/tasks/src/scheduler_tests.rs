//! Simulated days: the clock is the paused clock of the runtime.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use hob_core::{
    AgentPreference, Ask, Clock, Engine, EngineError, EventBus, GenerateRequest, Generation,
    GenerationStream, ModelInfo, Permit, Reach, RequestSource, Zone,
};
use hob_db::{Database, LazyDatabase};
use hob_testkit::{EngineAsk, ScriptedEngine};
use jiff::{SignedDuration, Timestamp};
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::deliver::{Deliver, DeliverError, NoDelivery};
use crate::schedule::ScheduleType;
use crate::service::TaskOptions;
use crate::store::{MIGRATIONS, SqliteTaskStore, TaskStore};
use crate::task::{DeliverTo, NewTask, RunOutcome, Task, TaskLimits, TaskRun};
use crate::types::{TaskChange, TaskId, TaskStatus};

#[path = "fair_slots_tests.rs"]
mod fair_slots_tests;

#[path = "manual_run_tests.rs"]
mod manual_run_tests;

#[path = "result_summary_tests.rs"]
mod result_summary_tests;

/// Answers after a while, and counts how many questions it has at once.
struct SlowEngine {
    inner: ScriptedEngine,
    takes: Duration,
    at_once: AtomicUsize,
    most_at_once: AtomicUsize,
}

impl SlowEngine {
    fn taking(seconds: u64) -> Self {
        SlowEngine {
            inner: ScriptedEngine::saying(&["done"]),
            takes: Duration::from_secs(seconds),
            at_once: AtomicUsize::new(0),
            most_at_once: AtomicUsize::new(0),
        }
    }
}

#[async_trait]
impl Engine for SlowEngine {
    fn key(&self) -> &str {
        "slow"
    }

    fn address(&self) -> &str {
        ""
    }

    async fn generate(&self, request: &GenerateRequest) -> Result<Generation, EngineError> {
        let now = self.at_once.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_at_once.fetch_max(now, Ordering::SeqCst);
        tokio::time::sleep(self.takes).await;
        self.at_once.fetch_sub(1, Ordering::SeqCst);
        self.inner.generate(request).await
    }

    async fn stream(&self, request: &GenerateRequest) -> Result<GenerationStream, EngineError> {
        self.inner.stream(request).await
    }

    async fn list_models(&self) -> Result<Vec<ModelInfo>, EngineError> {
        self.inner.list_models().await
    }

    async fn health(&self) -> bool {
        true
    }
}

/// Takes what it is sent, or refuses it.
struct Pigeons {
    sent: Mutex<Vec<(String, String, Option<String>)>>,
    refuses: bool,
}

#[async_trait]
impl Deliver for Pigeons {
    async fn check(&self, to: DeliverTo) -> Result<DeliverTo, DeliverError> {
        Ok(to)
    }

    async fn deliver(&self, text: &str, to: &DeliverTo) -> Result<(), DeliverError> {
        let message = (to.channel.clone(), text.to_owned(), to.conversation.clone());
        self.sent.lock().unwrap().push(message);
        if self.refuses { Err(DeliverError("no wings".into())) } else { Ok(()) }
    }
}

fn store(database: impl Into<LazyDatabase>) -> Arc<dyn TaskStore> {
    Arc::new(SqliteTaskStore::new(database))
}

fn store_at(path: &Path) -> Arc<dyn TaskStore> {
    store(LazyDatabase::at(path, &[MIGRATIONS]))
}

fn task_options() -> TaskOptions {
    let agents = ["simple", "orchestrator", "react", "codeact"].map(str::to_owned).to_vec();
    TaskOptions { agents, agent_aliases: vec!["openhands".to_owned()], ..TaskOptions::default() }
}

struct World {
    database: Database,
    tasks: TaskService,
    scheduler: Scheduler,
    ask: Arc<EngineAsk>,
    bus: EventBus,
    start: Timestamp,
}

impl World {
    fn with(engine: Arc<dyn Engine>, options: SchedulerOptions) -> Self {
        Self::of(engine, options, Arc::new(NoDelivery))
    }

    fn of(engine: Arc<dyn Engine>, options: SchedulerOptions, deliver: Arc<dyn Deliver>) -> Self {
        Self::asking(EngineAsk::new(engine), options, deliver)
    }

    fn asking(ask: EngineAsk, options: SchedulerOptions, deliver: Arc<dyn Deliver>) -> Self {
        let database = Database::in_memory(&[MIGRATIONS]).unwrap();
        let start: Timestamp = "2026-11-15T12:00:00Z".parse().unwrap();
        let began = Instant::now();
        let clock: Arc<dyn Clock> =
            Arc::new(move || start + SignedDuration::try_from(began.elapsed()).unwrap());
        let tasks = TaskService::new(
            store(database.clone()),
            TaskOptions { clock, zone: Zone::UTC, deliver, ..task_options() },
        );
        let (ask, bus) = (Arc::new(ask), EventBus::new());
        let parts = SchedulerParts {
            tasks: tasks.clone(),
            ask: Arc::clone(&ask) as Arc<dyn Ask>,
            bus: bus.clone(),
            options,
        };
        World { database, tasks, scheduler: Scheduler::new(parts), ask, bus, start }
    }

    /// Another scheduler on the same tasks, whose clock is ahead.
    fn at_clock_ahead(&self, ahead: SignedDuration) -> Scheduler {
        let right = self.tasks.clone();
        let clock: Arc<dyn Clock> = Arc::new(move || right.now() + ahead);
        let options = TaskOptions { clock, zone: Zone::UTC, ..task_options() };
        Scheduler::new(SchedulerParts {
            tasks: TaskService::new(store(self.database.clone()), options),
            ask: Arc::clone(&self.ask) as Arc<dyn Ask>,
            bus: self.bus.clone(),
            options: SchedulerOptions::default(),
        })
    }

    async fn create(&self, task: NewTask) -> Task {
        self.tasks.create(task).await.unwrap()
    }

    async fn log(&self, task: &Task) -> Vec<TaskRun> {
        self.tasks.runs(&task.id, 1000).await.unwrap()
    }

    fn after(&self, seconds: i64) -> Timestamp {
        self.start + SignedDuration::from_secs(seconds)
    }

    async fn pass(&self, seconds: u64) {
        tokio::time::sleep(Duration::from_secs(seconds)).await;
    }
}

fn every(seconds: u32) -> NewTask {
    NewTask::new("say hello", ScheduleType::Interval, seconds.to_string(), Permit::up_to(Reach::Act))
}

fn greeter() -> Arc<ScriptedEngine> {
    Arc::new(ScriptedEngine::saying(&["hel", "lo"]))
}

#[tokio::test(start_paused = true)]
async fn a_result_names_the_documents_that_it_is_based_on() {
    let ask = EngineAsk::new(greeter()).with_source("/notes/house.md");
    let world = World::asking(ask, SchedulerOptions::default(), Arc::new(NoDelivery));
    world.scheduler.start();
    let task = world.create(every(90)).await;
    world.pass(100).await;
    assert_eq!(world.log(&task).await[0].result.as_deref(), Some("hello\n\nSources: house.md"));
}

#[tokio::test(start_paused = true)]
async fn a_task_runs_at_its_time_and_is_logged_and_published() {
    let world = World::with(greeter(), SchedulerOptions::default());
    let heard = Arc::new(Mutex::new(Vec::new()));
    let ear = Arc::clone(&heard);
    let _listening = world.bus.subscribe(move |happening| {
        if happening.event.name().starts_with("scheduler") {
            ear.lock().unwrap().push((happening.event.name(), happening.event.data()));
        }
    });
    world.scheduler.start();
    let task = world.create(every(90)).await;
    world.pass(100).await;

    let log = world.log(&task).await;
    assert_eq!(log.len(), 1);
    assert_eq!((log[0].slot, log[0].outcome), (world.after(90), Some(RunOutcome::Succeeded)));
    assert_eq!(log[0].result.as_deref(), Some("hello"));
    let late = log[0].started_at.duration_since(log[0].slot);
    assert!(late < SignedDuration::from_millis(50), "it sleeps until then, not until the next poll: {late}");
    let id = task.id.as_str();
    assert_eq!(
        *heard.lock().unwrap(),
        [
            ("scheduler_task_start", json!({ "task_id": id, "prompt": "say hello" })),
            (
                "scheduler_task_end",
                json!({ "task_id": id, "success": true, "result": "hello", "error": null })
            ),
        ]
    );
    let callers = world.ask.callers();
    assert_eq!(callers.len(), 1);
    assert_eq!(
        (callers[0].source, &callers[0].agent),
        (RequestSource::Scheduler, &AgentPreference::Named("simple".into()))
    );
}

#[tokio::test(start_paused = true)]
async fn a_simulated_day_has_all_its_slots_on_the_grid() {
    let world = World::with(Arc::new(SlowEngine::taking(7)), SchedulerOptions::default());
    world.scheduler.start();
    let hourly = world.create(every(3600)).await;
    let daily =
        world.create(NewTask::new("p", ScheduleType::Cron, "30 18 * * *", Permit::up_to(Reach::Act))).await;
    let once = NewTask::new("p", ScheduleType::Once, "2026-11-15T20:00:00Z", Permit::up_to(Reach::Act));
    let once = world.create(once).await;
    world.pass(24 * 3600 + 10).await;
    let slots: Vec<Timestamp> = world.log(&hourly).await.iter().rev().map(|run| run.slot).collect();
    assert_eq!(slots, (1..=24).map(|hour| world.after(hour * 3600)).collect::<Vec<_>>());
    assert_eq!(world.log(&daily).await.len(), 1);
    assert_eq!(world.log(&once).await.len(), 1);
    assert_eq!(world.tasks.get(&once.id).await.unwrap().status, TaskStatus::Completed);
}

#[tokio::test(start_paused = true)]
async fn slow_tasks_do_not_hold_others_and_none_overlaps_itself() {
    let engine = Arc::new(SlowEngine::taking(300));
    let options = SchedulerOptions { max_concurrent: 3, ..SchedulerOptions::default() };
    let world = World::with(Arc::clone(&engine) as Arc<dyn Engine>, options);
    world.scheduler.start();
    let mut tasks = Vec::new();
    for _ in 0..5 {
        tasks.push(world.create(every(60)).await);
    }
    world.pass(3600).await;
    assert_eq!(engine.most_at_once.load(Ordering::SeqCst), 3, "as many as may, and no more");
    for task in &tasks {
        let mut log = world.log(task).await;
        log.reverse();
        assert!(log.len() >= 4, "idle tasks are removed: {}", log.len());
        for pair in log.windows(2) {
            assert!(pair[1].started_at >= pair[0].finished_at.unwrap(), "{pair:?}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_run_that_takes_too_long_fails_and_is_tried_again_later() {
    let world = World::with(Arc::new(SlowEngine::taking(100)), SchedulerOptions::default());
    world.scheduler.start();
    let limits = TaskLimits { retries: 1, timeout: Duration::from_secs(10) };
    let task = world.create(NewTask { limits, ..every(1000) }).await;
    world.pass(1100).await;
    let mut log = world.log(&task).await;
    log.reverse();
    let seen: Vec<_> =
        log.iter().map(|run| (run.slot, run.attempt, run.outcome, run.error.as_deref())).collect();
    let why = Some("it did not finish within 10 s");
    assert_eq!(
        seen,
        [
            (world.after(1000), 1, Some(RunOutcome::Failed), why),
            (world.after(1000), 2, Some(RunOutcome::Failed), why),
        ]
    );
    let waited = log[1].started_at.duration_since(log[0].finished_at.unwrap());
    assert!(waited >= SignedDuration::from_secs(30) && waited < SignedDuration::from_secs(31), "{waited}");
}

#[tokio::test(start_paused = true)]
async fn cancelling_a_task_stops_its_run_at_once() {
    let world = World::with(Arc::new(SlowEngine::taking(500)), SchedulerOptions::default());
    world.scheduler.start();
    let task = world.create(every(60)).await;
    world.pass(65).await;
    assert_eq!(world.log(&task).await[0].outcome, None, "it runs");
    let cancelled = world.tasks.change(&task.id, TaskChange::Cancel).await.unwrap();
    assert_eq!(cancelled.status, TaskStatus::Cancelled);
    world.pass(1).await;
    let log = world.log(&task).await;
    assert_eq!(log[0].outcome, Some(RunOutcome::Cancelled));
    world.pass(3600).await;
    assert_eq!(world.log(&task).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn a_task_that_another_process_cancels_is_stopped_at_the_next_renewal() {
    let world = World::with(Arc::new(SlowEngine::taking(500)), SchedulerOptions::default());
    world.scheduler.start();
    let task = world.create(every(60)).await;
    world.pass(65).await;
    let (id, now) = (task.id.clone(), world.tasks.now());
    world.tasks.work(move |store| store.change(&id, TaskChange::Cancel, now)).await.unwrap().unwrap();
    world.pass(10).await;
    assert_eq!(world.log(&task).await[0].outcome, Some(RunOutcome::Cancelled));
}

#[tokio::test(start_paused = true)]
async fn at_shutdown_runs_get_a_grace_period_and_the_rest_is_logged_as_interrupted() {
    let world = World::with(Arc::new(SlowEngine::taking(20)), SchedulerOptions::default());
    world.scheduler.start();
    let task = world.create(every(60)).await;
    world.pass(61).await;
    world.scheduler.drain(Duration::from_secs(30)).await;
    world.scheduler.close().await;
    assert_eq!(world.log(&task).await[0].outcome, Some(RunOutcome::Succeeded));

    let world = World::with(Arc::new(SlowEngine::taking(500)), SchedulerOptions::default());
    world.scheduler.start();
    let task = world.create(every(60)).await;
    world.pass(61).await;
    let before = Instant::now();
    world.scheduler.drain(Duration::from_secs(30)).await;
    world.scheduler.close().await;
    assert!(before.elapsed() < Duration::from_secs(31));
    let log = world.log(&task).await;
    assert_eq!((log.len(), log[0].outcome), (1, Some(RunOutcome::Interrupted)));
    assert_eq!(log[0].error.as_deref(), Some("the scheduler was stopped"));
}

#[tokio::test(start_paused = true)]
async fn a_result_that_cannot_be_delivered_is_kept_and_not_sent_twice() {
    for (refuses, expected) in [(false, RunOutcome::Succeeded), (true, RunOutcome::Failed)] {
        let pigeons = Arc::new(Pigeons { sent: Mutex::default(), refuses });
        let deliver = Arc::clone(&pigeons) as Arc<dyn Deliver>;
        let world = World::of(greeter(), SchedulerOptions::default(), deliver);
        world.scheduler.start();
        let deliver_to = Some(DeliverTo { channel: "loft".into(), conversation: Some("7".into()) });
        let limits = TaskLimits { retries: 3, ..TaskLimits::default() };
        let task = world.create(NewTask { deliver_to, limits, ..every(1000) }).await;
        world.pass(1900).await;
        let log = world.log(&task).await;
        assert_eq!((log.len(), log[0].outcome, log[0].result.as_deref()), (1, Some(expected), Some("hello")));
        assert_eq!(
            *pigeons.sent.lock().unwrap(),
            [("loft".to_owned(), "hello".to_owned(), Some("7".to_owned()))]
        );
        if refuses {
            let error = log[0].error.as_deref().unwrap();
            assert!(
                error.starts_with("the answer was not delivered: ") && error.contains("no wings"),
                "{error}"
            );
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_engine_error_is_in_the_log() {
    let engine = ScriptedEngine::new(|_| {
        vec![Err(EngineError::Interrupted { engine: "scripted".into(), reason: "cable".into() })]
    });
    let world = World::with(Arc::new(engine), SchedulerOptions::default());
    let task = world.create(every(60)).await;
    let run = world.scheduler.run_to_end(&task.id).await.unwrap();
    assert_eq!(run.outcome, Some(RunOutcome::Failed));
    assert_eq!(run.error.as_deref(), Some("scripted broke off its answer: cable"));
}

#[tokio::test]
async fn a_task_with_an_unknown_target_is_refused() {
    let world = World::with(greeter(), SchedulerOptions::default());
    let refused = world.tasks.create(NewTask { agent: "jeeves".into(), ..every(60) }).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "there is no agent 'jeeves'; use one of simple, orchestrator, react, codeact"
    );
    let nobody = TaskId::parse("nobody").unwrap();
    for outcome in [world.tasks.get(&nobody).await.err(), world.scheduler.run_now(&nobody).await.err()] {
        assert_eq!(outcome.unwrap().to_string(), "there is no task 'nobody'");
    }
}

#[tokio::test]
async fn a_database_that_does_not_exist_has_no_tasks_and_is_not_created() {
    let home = std::env::temp_dir().join(format!("hob-book-{:x}", fastrand::u64(..)));
    let tasks = TaskService::new(store_at(&home.join("hob.db")), task_options());
    assert_eq!(tasks.list(None).await.unwrap(), []);
    assert!(tasks.get(&TaskId::parse("x").unwrap()).await.is_err());
    assert!(!home.exists());
}

#[tokio::test]
async fn a_task_without_a_zone_has_the_zone_of_the_service() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("hob.db");
    let zone = Zone::named("America/New_York").unwrap();
    let tasks = TaskService::new(store_at(&path), TaskOptions { zone: zone.clone(), ..task_options() });
    let daily = |timezone| NewTask {
        timezone,
        ..NewTask::new("p", ScheduleType::Cron, "0 9 * * *", Permit::up_to(Reach::Act))
    };
    assert_eq!(tasks.create(daily(None)).await.unwrap().schedule.zone, zone);
    let named = tasks.create(daily(Some(Zone::UTC))).await.unwrap();
    assert_eq!(named.schedule.zone, Zone::UTC);
    let again = TaskService::new(store_at(&path), task_options()).list(None).await.unwrap();
    let zones: Vec<&str> = again.iter().map(|task| task.schedule.zone.name()).collect();
    assert!(zones.contains(&"America/New_York") && zones.contains(&"UTC"), "kept by name: {zones:?}");
}

#[tokio::test(start_paused = true)]
async fn the_tools_of_a_run_get_the_zone_of_its_task() {
    let world = World::with(greeter(), SchedulerOptions::default());
    let zone = Zone::named("Europe/Berlin");
    let first_calls = vec![crate::first_call::FirstCall::parse("calendar").unwrap()];
    let task = world.create(NewTask { timezone: zone.clone(), first_calls, ..every(60) }).await;
    world.scheduler.run_to_end(&task.id).await.unwrap();
    let caller = world.ask.callers().remove(0);
    assert_eq!(caller.first_calls.unwrap().permit.zone, zone);
    assert_eq!(caller.permit.zone, zone);
}

/// Two services on one file are as good as two processes.
#[tokio::test]
async fn a_task_that_another_process_creates_runs_at_its_time() {
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("hob.db");
    let world = World::with(greeter(), SchedulerOptions::default());
    let ours = TaskService::new(store_at(&path), task_options());
    let scheduler = Scheduler::new(SchedulerParts {
        tasks: ours.clone(),
        ask: Arc::clone(&world.ask) as Arc<dyn Ask>,
        bus: world.bus.clone(),
        options: SchedulerOptions { poll_interval: Duration::from_secs(3600), ..SchedulerOptions::default() },
    });
    // The other process has been here already, and the scheduler sleeps.
    let theirs = TaskService::new(store_at(&path), task_options());
    let later = theirs.create(every(1_000_000)).await.unwrap();
    scheduler.start();
    let soon = theirs.create(every(1)).await.unwrap();
    let ran = async {
        while ours.runs(&soon.id, 1).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), ran).await.expect("noticed long before the next poll");
    assert_eq!(ours.runs(&later.id, 1).await.unwrap(), []);
    scheduler.close().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_was_ahead_once_does_not_stop_a_task() {
    let world = World::with(greeter(), SchedulerOptions::default());
    let task = world.create(every(600)).await;
    // A scheduler whose clock is a year ahead runs it once.
    let ahead = world.at_clock_ahead(SignedDuration::from_hours(365 * 24));
    ahead.start();
    while world.log(&task).await.is_empty() {
        world.pass(1).await;
    }
    ahead.close().await;
    let slot = world.log(&task).await[0].slot;
    assert_eq!(slot, world.after(600));
    // The clock is right again, after a restart.
    world.scheduler.start();
    world.pass(3 * 600 + 10).await;
    let slots: Vec<Timestamp> = world.log(&task).await.iter().rev().map(|run| run.slot).collect();
    assert_eq!(slots, [600, 1200, 1800].map(|seconds| world.after(seconds)), "each once");
    world.scheduler.close().await;
}
