//! Tasks in the database: kept whole, changed as allowed, claimed once.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use hob_core::{Permit, Reach, Zone};
use hob_db::Database;
use hob_db::postgres::PostgresDatabase;
use hob_testkit::{PostgresServer, TestDatabase};
use jiff::{SignedDuration, Timestamp};

use super::*;
use crate::claim_plan::RETRY_BACKOFF;
use crate::first_call::FirstCall;
use crate::missed_runs::Missed;
use crate::schedule::ScheduleType;
use crate::task::{DeliverTo, NewTask, RunOutcome, Task, TaskLimits, TaskRun};
use crate::types::{TaskChange, TaskId, TaskStatus};

pub(in crate::store) fn at(text: &str) -> Timestamp {
    text.parse().expect("a moment")
}

pub(in crate::store) fn noon() -> Timestamp {
    at("2026-11-15T12:00:00Z")
}

pub(in crate::store) fn after(seconds: i64) -> Timestamp {
    noon() + SignedDuration::from_secs(seconds)
}

/// A store of its own for one test.
pub(in crate::store) struct TestStore {
    store: Arc<dyn TaskStore>,
    /// Dropped after the store.
    _database: Option<TestDatabase>,
}

impl std::ops::Deref for TestStore {
    type Target = dyn TaskStore;

    fn deref(&self) -> &Self::Target {
        self.store.as_ref()
    }
}

pub(in crate::store) type NewStore = fn() -> TestStore;

pub(in crate::store) fn sqlite() -> TestStore {
    let database = Database::in_memory(&[MIGRATIONS]).expect("opened");
    TestStore { store: task_store(database), _database: None }
}

pub(in crate::store) fn postgres() -> TestStore {
    let database = PostgresServer::shared().create_database();
    TestStore { store: open_postgres(&database.url()), _database: Some(database) }
}

pub(in crate::store) fn open_postgres(url: &str) -> Arc<dyn TaskStore> {
    let options = url.parse().expect("a URL");
    let database = PostgresDatabase::new(options, &[POSTGRES_MIGRATIONS]).expect("made");
    Arc::new(PostgresTaskStore::with_simulated_time(database))
}

pub(in crate::store) fn claimant(owner: &str) -> Claimant {
    Claimant { owner: owner.to_owned(), lease: Duration::from_secs(30), grace: Duration::from_secs(60) }
}

pub(in crate::store) fn asked(kind: ScheduleType, value: &str) -> NewTask {
    NewTask::new("say hello", kind, value, Permit::up_to(Reach::Act))
}

pub(in crate::store) fn planned(id: &str, task: NewTask) -> Task {
    task.plan(TaskId::parse(id).expect("an id"), noon()).expect("a good task")
}

pub(in crate::store) fn kept(new: NewStore, id: &str, task: NewTask) -> (TestStore, TaskId) {
    let (tasks, task) = (new(), planned(id, task));
    tasks.insert(&task).expect("kept");
    (tasks, task.id)
}

/// Every ten minutes.
pub(in crate::store) fn often() -> NewTask {
    asked(ScheduleType::Interval, "600")
}

pub(in crate::store) fn success() -> RunResult {
    RunResult {
        outcome: RunOutcome::Succeeded,
        result: Some("hello".into()),
        error: None,
        retry: RetryPolicy::IfLeft,
    }
}

pub(in crate::store) fn failure() -> RunResult {
    RunResult {
        outcome: RunOutcome::Failed,
        result: None,
        error: Some("no luck".into()),
        retry: RetryPolicy::IfLeft,
    }
}

/// Claims the one task that is due.
pub(in crate::store) fn claim(tasks: &dyn TaskStore, now: Timestamp) -> Option<Claimed> {
    let mut claimed = tasks.claim_due(now, 10, &claimant("a")).expect("claimed");
    assert!(claimed.len() <= 1);
    claimed.pop()
}

pub(in crate::store) fn finish(tasks: &dyn TaskStore, claimed: &Claimed, end: &RunResult, now: Timestamp) {
    assert!(tasks.finish(claimed.run.id, end, now, &claimant("a")).expect("finished"));
}

pub(in crate::store) fn status(tasks: &dyn TaskStore, id: &TaskId) -> (TaskStatus, Option<Timestamp>) {
    let task = tasks.get(id).expect("read").expect("there");
    (task.status, task.next_run)
}

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_task_is_read_as_it_was_saved,
    a_slot_is_claimed_once_and_the_task_advances,
    slots_that_were_missed_are_made_up_for_by_one_run_or_by_none,
    once_ends_completed_when_it_has_run,
    a_run_of_an_ended_process_is_logged_as_interrupted_and_not_repeated,
    only_its_owner_ends_a_run,
    failed_runs_are_retried_within_the_limit_with_growing_delays,
    runs_that_must_not_be_repeated_are_not_retried,
    a_paused_task_waits_and_a_resumed_one_continues_from_then,
    a_cancelled_task_stays_cancelled_and_its_run_is_notified,
    a_pause_during_a_run_lets_the_run_end,
    a_manual_run_does_not_change_the_schedule,
    a_deleted_task_is_gone_with_its_runs,
    the_log_of_a_task_is_limited,
    the_log_of_runs_outside_the_schedule_is_limited,
    a_key_has_a_limited_number_of_tasks,
);

fn a_task_is_read_as_it_was_saved(new: NewStore) {
    let zone = Zone::named("Europe/Berlin").expect("a zone");
    let full = NewTask {
        timezone: Some(zone),
        agent: "react".into(),
        model: Some("qwen3:8b".into()),
        tools: Some(vec!["calculator".into(), "web_fetch".into()]),
        first_calls: vec![
            FirstCall::parse(r#"calendar {"from": "today", "also": ["\u0000"]}"#).expect("a call"),
        ],
        deliver_to: Some(DeliverTo { channel: "telegram".into(), conversation: Some("7".into()) }),
        limits: TaskLimits { retries: 3, timeout: Duration::from_millis(1500) },
        missed: Missed::Skip,
        metadata: [("by".to_owned(), "me".into())].into_iter().collect(),
        permit: Permit {
            also: vec!["x".into()],
            only: Some(vec!["y".into()]),
            except: Cow::Owned(vec!["z".into()]),
            tainted: true,
            key: Some("ana".into()),
            rule: Some("groups=ml-team".into()),
            ..Permit::up_to(Reach::Read)
        },
        ..asked(ScheduleType::Cron, "30 2 * * MON-FRI")
    };
    let tasks = new();
    for (id, task) in [
        ("full", full),
        ("plain", often()),
        ("date", asked(ScheduleType::Once, "2027-01-01T00:00:00.123456Z")),
    ] {
        let task = planned(id, task);
        tasks.insert(&task).expect("kept");
        assert_eq!(tasks.get(&task.id).expect("read"), Some(task));
    }
    assert_eq!(tasks.get(&TaskId::parse("nobody").expect("an id")).expect("read"), None);
    let order: Vec<String> =
        tasks.list(None).expect("listed").into_iter().map(|task| task.id.to_string()).collect();
    assert_eq!(order, ["plain", "full", "date"], "the next first");
    assert_eq!(tasks.list(Some(TaskStatus::Paused)).expect("listed"), []);
}

fn a_slot_is_claimed_once_and_the_task_advances(new: NewStore) {
    let (tasks, id) = kept(new, "t", often());
    assert_eq!(claim(&*tasks, after(599)), None);
    assert_eq!(tasks.next_due().expect("read"), Some(after(600)));
    let claimed = claim(&*tasks, after(601)).expect("due");
    assert_eq!(
        (claimed.run.slot, claimed.run.attempt, claimed.task.next_run),
        (after(600), 1, Some(after(1200)))
    );
    assert_eq!(claim(&*tasks, after(602)), None, "it is taken");
    assert_eq!(claim(&*tasks, after(5000)), None, "a task never overlaps itself");
    assert_eq!(tasks.next_due().expect("read"), None);
    finish(&*tasks, &claimed, &success(), after(610));
    assert_eq!(tasks.next_due().expect("read"), Some(after(1200)));
    let runs = tasks.runs(&id, 10).expect("read");
    assert_eq!(
        runs,
        [TaskRun {
            finished_at: Some(after(610)),
            outcome: Some(RunOutcome::Succeeded),
            result: Some("hello".into()),
            ..claimed.run
        }]
    );
}

fn slots_that_were_missed_are_made_up_for_by_one_run_or_by_none(new: NewStore) {
    let (tasks, id) = kept(new, "t", often());
    let claimed = claim(&*tasks, after(10_000)).expect("due");
    assert_eq!((claimed.run.slot, claimed.task.next_run), (after(600), Some(after(10_200))));
    finish(&*tasks, &claimed, &success(), after(10_001));
    assert_eq!(claim(&*tasks, after(10_100)), None);
    assert_eq!(tasks.runs(&id, 10).expect("read").len(), 1);

    let (tasks, id) = kept(new, "t", NewTask { missed: Missed::Skip, ..often() });
    assert_eq!(claim(&*tasks, after(10_000)), None);
    assert_eq!(status(&*tasks, &id), (TaskStatus::Active, Some(after(10_200))));
    assert!(claim(&*tasks, after(10_230)).is_some(), "a little late is not missed");

    let date = NewTask { missed: Missed::Skip, ..asked(ScheduleType::Once, "2026-11-15T13:00Z") };
    let (tasks, id) = kept(new, "t", date);
    assert_eq!(claim(&*tasks, after(36_000)), None);
    assert_eq!(status(&*tasks, &id), (TaskStatus::Completed, None));
}

fn once_ends_completed_when_it_has_run(new: NewStore) {
    let (tasks, id) = kept(new, "t", asked(ScheduleType::Once, "2026-11-15T13:00Z"));
    let claimed = claim(&*tasks, after(3600)).expect("due");
    assert_eq!(status(&*tasks, &id), (TaskStatus::Active, None));
    finish(&*tasks, &claimed, &failure(), after(3610));
    assert_eq!(status(&*tasks, &id), (TaskStatus::Completed, None));
    assert_eq!(claim(&*tasks, after(100_000)), None);
}

fn a_run_of_an_ended_process_is_logged_as_interrupted_and_not_repeated(new: NewStore) {
    let (tasks, id) = kept(new, "t", often());
    let claimed = claim(&*tasks, after(600)).expect("due");
    let lease = Duration::from_secs(30);
    assert_eq!(tasks.expire_leases(after(629), lease).expect("looked"), []);
    assert_eq!(tasks.renew(claimed.run.id, after(620), &claimant("a")).expect("renewed"), Renewal::Held);
    assert_eq!(tasks.expire_leases(after(640), lease).expect("looked"), [], "it is alive");
    let gone = tasks.expire_leases(after(651), lease).expect("looked");
    assert_eq!((gone.len(), gone[0].outcome), (1, Some(RunOutcome::Interrupted)));
    assert_eq!(tasks.runs(&id, 10).expect("read"), gone);
    assert_eq!(tasks.renew(claimed.run.id, after(652), &claimant("a")).expect("renewed"), Renewal::Lost);
    assert!(
        !tasks.finish(claimed.run.id, &success(), after(653), &claimant("a")).expect("finished"),
        "too late"
    );
    assert_eq!(claim(&*tasks, after(700)), None);
    assert_eq!(claim(&*tasks, after(1200)).expect("due").run.slot, after(1200));
}

fn only_its_owner_ends_a_run(new: NewStore) {
    let (tasks, _) = kept(new, "t", often());
    let claimed = claim(&*tasks, after(600)).expect("due");
    assert!(!tasks.finish(claimed.run.id, &success(), after(601), &claimant("b")).expect("finished"));
    assert_eq!(tasks.renew(claimed.run.id, after(601), &claimant("b")).expect("renewed"), Renewal::Lost);
}

fn failed_runs_are_retried_within_the_limit_with_growing_delays(new: NewStore) {
    let (tasks, id) =
        kept(new, "t", NewTask { limits: TaskLimits { retries: 2, ..TaskLimits::default() }, ..often() });
    let first = claim(&*tasks, after(600)).expect("due");
    finish(&*tasks, &first, &failure(), after(605));
    assert_eq!(claim(&*tasks, after(634)), None);
    let second = claim(&*tasks, after(635)).expect("due");
    assert_eq!((second.run.slot, second.run.attempt), (after(600), 2));
    // Interrupted counts as failed.
    assert_eq!(tasks.expire_leases(after(700), Duration::from_secs(30)).expect("looked").len(), 1);
    let third = claim(&*tasks, after(760)).expect("due");
    assert_eq!((third.run.slot, third.run.attempt), (after(600), 3));
    finish(&*tasks, &third, &failure(), after(770));
    assert_eq!(claim(&*tasks, after(1199)), None, "no tries are left");
    let next = claim(&*tasks, after(1200)).expect("due");
    assert_eq!((next.run.slot, next.run.attempt), (after(1200), 1));
    let outcomes: Vec<_> = tasks.runs(&id, 10).expect("read").into_iter().map(|run| run.outcome).collect();
    use RunOutcome::{Failed, Interrupted};
    assert_eq!(outcomes, [None, Some(Failed), Some(Interrupted), Some(Failed)]);
    assert_eq!([1, 2, 3, 30].map(|attempt| RETRY_BACKOFF.delay(attempt).as_secs()), [30, 60, 120, 3600]);
}

fn runs_that_must_not_be_repeated_are_not_retried(new: NewStore) {
    let (tasks, _) =
        kept(new, "t", NewTask { limits: TaskLimits { retries: 2, ..TaskLimits::default() }, ..often() });
    let claimed = claim(&*tasks, after(600)).expect("due");
    finish(&*tasks, &claimed, &RunResult { retry: RetryPolicy::Never, ..failure() }, after(605));
    assert_eq!(claim(&*tasks, after(1199)), None);
}

fn a_paused_task_waits_and_a_resumed_one_continues_from_then(new: NewStore) {
    let (tasks, id) = kept(new, "t", often());
    let paused = tasks.change(&id, TaskChange::Pause, after(10)).expect("changed").expect("allowed");
    assert_eq!(paused.status, TaskStatus::Paused);
    assert_eq!(claim(&*tasks, after(5000)), None);
    assert_eq!(tasks.next_due().expect("read"), None);
    let resumed = tasks.change(&id, TaskChange::Resume, after(5000)).expect("changed").expect("allowed");
    assert_eq!((resumed.status, resumed.next_run), (TaskStatus::Active, Some(after(5400))));
    assert_eq!(claim(&*tasks, after(5399)), None);
    assert!(claim(&*tasks, after(5400)).is_some());

    let (tasks, id) = kept(new, "t", asked(ScheduleType::Once, "2026-11-15T13:00Z"));
    tasks.change(&id, TaskChange::Pause, after(10)).expect("changed").expect("allowed");
    tasks.change(&id, TaskChange::Resume, after(7200)).expect("changed").expect("allowed");
    assert_eq!(claim(&*tasks, after(7200)).expect("a date is not lost").run.slot, after(3600));

    let limits = TaskLimits { retries: 1, ..TaskLimits::default() };
    let (tasks, id) = kept(new, "t", NewTask { limits, ..asked(ScheduleType::Once, "2026-11-15T13:00Z") });
    let first = claim(&*tasks, after(3600)).expect("due");
    finish(&*tasks, &first, &failure(), after(3601));
    tasks.change(&id, TaskChange::Pause, after(3602)).expect("changed").expect("allowed");
    assert_eq!(claim(&*tasks, after(7200)), None);
    tasks.change(&id, TaskChange::Resume, after(7200)).expect("changed").expect("allowed");
    let second = claim(&*tasks, after(7200)).expect("nor is its second try");
    finish(&*tasks, &second, &success(), after(7201));
    assert_eq!(status(&*tasks, &id).0, TaskStatus::Completed);
}

fn a_cancelled_task_stays_cancelled_and_its_run_is_notified(new: NewStore) {
    let (tasks, id) = kept(new, "t", often());
    let claimed = claim(&*tasks, after(600)).expect("due");
    tasks.change(&id, TaskChange::Cancel, after(610)).expect("changed").expect("allowed");
    assert_eq!(tasks.renew(claimed.run.id, after(611), &claimant("a")).expect("renewed"), Renewal::Cancelled);
    finish(&*tasks, &claimed, &RunResult { outcome: RunOutcome::Cancelled, ..failure() }, after(612));
    assert_eq!(status(&*tasks, &id), (TaskStatus::Cancelled, None));
    assert_eq!(claim(&*tasks, after(100_000)), None);
    for change in [TaskChange::Pause, TaskChange::Resume] {
        let refused = tasks.change(&id, change, after(700)).expect("asked").expect_err("refused");
        assert_eq!(refused.to_string(), "a cancelled task cannot be changed");
    }
    let refused = tasks.claim_now(&id, after(700), &claimant("a")).expect("asked").expect_err("refused");
    assert_eq!(refused.to_string(), "a cancelled task cannot be changed");
}

fn a_pause_during_a_run_lets_the_run_end(new: NewStore) {
    let (tasks, id) = kept(new, "t", often());
    let claimed = claim(&*tasks, after(600)).expect("due");
    tasks.change(&id, TaskChange::Pause, after(601)).expect("changed").expect("allowed");
    let resumed = tasks.change(&id, TaskChange::Resume, after(1300)).expect("changed").expect("allowed");
    assert_eq!(resumed.next_run, Some(after(1800)));
    assert_eq!(claim(&*tasks, after(1900)), None, "it still runs");
    finish(&*tasks, &claimed, &success(), after(1901));
    assert_eq!(claim(&*tasks, after(1902)).expect("due").run.slot, after(1800));
}

fn a_manual_run_does_not_change_the_schedule(new: NewStore) {
    let (tasks, id) = kept(new, "t", often());
    let claimed = tasks.claim_now(&id, after(10), &claimant("a")).expect("asked").expect("allowed");
    assert_eq!((claimed.run.slot, claimed.task.next_run), (after(10), Some(after(600))));
    let again = tasks.claim_now(&id, after(11), &claimant("b")).expect("asked").expect_err("refused");
    assert_eq!(again.to_string(), "the task 't' is already running");
    assert_eq!(claim(&*tasks, after(605)), None, "never beside itself");
    finish(&*tasks, &claimed, &failure(), after(606));
    let on_schedule = claim(&*tasks, after(607)).expect("due");
    assert_eq!(on_schedule.run.slot, after(600));
    finish(&*tasks, &on_schedule, &success(), after(608));
    // A second one at the moment of a slot gets another slot.
    let at_once = tasks.claim_now(&id, after(600), &claimant("a")).expect("asked").expect("allowed");
    assert!(at_once.run.slot > after(600));
    finish(&*tasks, &at_once, &success(), after(609));
    assert_eq!(status(&*tasks, &id).1, Some(after(1200)));
}

fn a_deleted_task_is_gone_with_its_runs(new: NewStore) {
    let (tasks, id) = kept(new, "t", often());
    let claimed = claim(&*tasks, after(600)).expect("due");
    assert!(tasks.delete(&id).expect("deleted"));
    assert!(!tasks.delete(&id).expect("nothing to do"));
    assert_eq!(tasks.renew(claimed.run.id, after(601), &claimant("a")).expect("renewed"), Renewal::Lost);
    assert_eq!(tasks.runs(&id, 10).expect("read"), []);
}

fn the_log_of_a_task_is_limited(new: NewStore) {
    let (tasks, id) = kept(new, "t", asked(ScheduleType::Interval, "1"));
    for second in 1..=1010 {
        let claimed = claim(&*tasks, after(second)).expect("due");
        finish(&*tasks, &claimed, &success(), after(second));
    }
    let runs = tasks.runs(&id, 5000).expect("read");
    assert_eq!((runs.len(), runs[0].slot), (1000, after(1010)));
    assert_eq!(tasks.runs(&id, 3).expect("read").len(), 3);
}

fn the_log_of_runs_outside_the_schedule_is_limited(new: NewStore) {
    let (tasks, id) = kept(new, "t", asked(ScheduleType::Interval, "86400"));
    for second in 1..=1010 {
        let claimed = tasks.claim_now(&id, after(second), &claimant("a")).expect("claimed").expect("free");
        finish(&*tasks, &claimed, &success(), after(second));
    }
    let runs = tasks.runs(&id, 5000).expect("read");
    assert_eq!((runs.len(), runs[0].slot), (1000, after(1010)));
}

fn a_key_has_a_limited_number_of_tasks(new: NewStore) {
    let tasks = new();
    // In the order of their letters.
    let of_key = |key: &str, id: &str| {
        let permit = Permit { key: Some(key.into()), ..Permit::up_to(Reach::Act) };
        let created = after(i64::from(id.as_bytes()[0]));
        let id = TaskId::parse(id).expect("an id");
        NewTask { permit, ..often() }.plan(id, created).expect("a good task")
    };
    let insert = |key: &str, id: &str| tasks.insert_of_key(&of_key(key, id), key, 2).expect("looked");
    let there = |id: &str| tasks.get(&TaskId::parse(id).expect("an id")).expect("read").is_some();
    let change = |id: &str, change: TaskChange| {
        let id = TaskId::parse(id).expect("an id");
        tasks.change(&id, change, after(300)).expect("changed").expect("allowed");
    };
    // A task of the owner, and one of a key whose name contains the other one.
    tasks.insert(&planned("owner", often())).expect("kept");
    assert!(insert("anabel", "longer"));
    assert!(insert("ana", "a") && insert("ana", "b"));
    assert!(!insert("ana", "c"), "two are open");
    assert!(!there("c"));
    change("a", TaskChange::Pause);
    assert!(!insert("ana", "c"), "a paused task is open");
    assert!(insert("ben", "other"), "each key has its own");
    // A run that is still active when its task is cancelled, and that does not make the task newer.
    let b = of_key("ana", "b");
    let running = tasks.claim_now(&b.id, b.created_at, &claimant("a")).expect("claimed").expect("free");
    // Ended tasks do not count, and the oldest of them make room.
    let replace = |open: &str, id: &str| {
        change(open, TaskChange::Cancel);
        assert!(insert("ana", id), "{id}");
    };
    let left = || -> Vec<&'static str> {
        let ids = ["a", "b", "c", "d", "e", "f", "g", "owner", "longer", "other"];
        ids.into_iter().filter(|id| there(id)).collect()
    };
    for (open, id) in [("a", "c"), ("b", "d"), ("c", "e"), ("d", "f")] {
        replace(open, id);
    }
    assert_eq!(left(), ["b", "c", "d", "e", "f", "owner", "longer", "other"]);
    finish(&*tasks, &running, &success(), after(400));
    replace("e", "g");
    assert_eq!(left(), ["d", "e", "f", "g", "owner", "longer", "other"]);
}
