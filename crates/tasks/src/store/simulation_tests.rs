//! Many schedules, an unreliable clock, and processes that are killed at any time: every slot is run or made up for exactly once.

use std::collections::HashMap;
use std::time::Duration;

use hob_core::Zone;
use jiff::{SignedDuration, Timestamp};

use super::tests::{NewStore, after, asked, claimant, noon, planned, postgres, sqlite, success};
use super::{Claimant, TaskStore};
use crate::schedule::ScheduleType;
use crate::task::{NewTask, RunOutcome, Task, TaskRun};

const LEASE: Duration = Duration::from_secs(30);
const HOURS: i64 = 48;

/// Each of them runs several times, and each end of a run is a transaction.
const SCHEDULES: usize = 1_000;

/// With a clock that is set every minute.
const MINUTELY_HOURS: i64 = 12;

hob_testkit::on_both_databases!(
    sqlite, postgres:
    schedules_and_random_kills_count_every_slot_once,
    a_clock_that_is_sometimes_far_ahead_stops_and_repeats_nothing,
);

/// The same numbers every time, so that a failure can be looked into.
struct Dice(u64);

impl Dice {
    fn up_to(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % (most + 1)
    }

    fn one_in(&mut self, chances: u64) -> bool {
        self.up_to(chances - 1) == 0
    }
}

fn schedule(number: usize, dice: &mut Dice) -> Task {
    let id = format!("task-{number}");
    let zone = ["UTC", "Europe/Berlin", "America/New_York", "Asia/Kolkata"][number % 4];
    let minute = dice.up_to(59);
    let task = match dice.up_to(3) {
        0 => asked(ScheduleType::Cron, &format!("{minute} */{} * * *", 6 + dice.up_to(6))),
        1 => asked(ScheduleType::Cron, &format!("{minute} {} * * *", dice.up_to(23))),
        2 => asked(ScheduleType::Interval, &(6 * 3600 + dice.up_to(90_000)).to_string()),
        _ => {
            let at = after(60 + i64::try_from(dice.up_to(HOURS.unsigned_abs() * 3600)).expect("small"));
            asked(ScheduleType::Once, &at.to_string())
        }
    };
    planned(&id, NewTask { timezone: Some(Zone::named(zone).expect("a zone")), ..task })
}

/// One process: it looks around, takes some of what is due, and does it, unless it is killed in the middle.
fn daemon(tasks: &dyn TaskStore, owner: &Claimant, now: Timestamp, dice: &mut Dice, killed: &mut usize) {
    tasks.expire_leases(now, LEASE).expect("looked");
    let most = 1 + usize::try_from(dice.up_to(SCHEDULES as u64 / 25)).expect("small");
    for claimed in tasks.claim_due(now, most, owner).expect("claimed") {
        if dice.one_in(20) {
            *killed += 1;
            continue;
        }
        let end = now + SignedDuration::from_secs(1);
        assert!(tasks.finish(claimed.run.id, &success(), end, owner).expect("finished"));
    }
}

fn schedules_and_random_kills_count_every_slot_once(new: NewStore) {
    let mut dice = Dice(0x5eed_1234_abcd_0001);
    let tasks = new();
    let schedules: Vec<Task> = (0..SCHEDULES).map(|number| schedule(number, &mut dice)).collect();
    tasks.insert_all(&schedules).expect("kept");

    let daemons = [claimant("a"), claimant("b"), claimant("c")];
    let (mut clock, mut killed) = (noon(), 0);
    while clock < after(HOURS * 3600) {
        clock += SignedDuration::from_secs(1 + i64::try_from(dice.up_to(1800)).expect("small"));
        // Sometimes the clock is wrong for a moment, and sometimes no process runs for hours.
        let shown = match dice.up_to(19) {
            0 => clock - SignedDuration::from_hours(1 + i64::try_from(dice.up_to(4)).expect("small")),
            1 => clock + SignedDuration::from_mins(1 + i64::try_from(dice.up_to(90)).expect("small")),
            2 => {
                clock += SignedDuration::from_hours(i64::try_from(dice.up_to(5)).expect("small"));
                continue;
            }
            _ => clock,
        };
        for owner in &daemons[..=usize::try_from(dice.up_to(2)).expect("small")] {
            daemon(&*tasks, owner, shown, &mut dice, &mut killed);
        }
    }
    // At the end one process stays.
    let end = after(HOURS * 3600 + 10 * 3600);
    tasks.expire_leases(end, LEASE).expect("looked");
    while let claimed @ [_, ..] = &tasks.claim_due(end, 1000, &daemons[0]).expect("claimed")[..] {
        for claimed in claimed {
            assert!(tasks.finish(claimed.run.id, &success(), end, &daemons[0]).expect("finished"));
        }
    }

    let (mut runs, mut interrupted) = (0, 0);
    for task in &schedules {
        let log = log(&*tasks, task);
        check(task, &log, end);
        runs += log.len();
        interrupted += log.iter().filter(|run| run.outcome == Some(RunOutcome::Interrupted)).count();
    }
    assert_eq!(interrupted, killed, "whatever was killed is logged as that, and nothing else");
    assert!(runs > 2 * SCHEDULES && killed > SCHEDULES / 20, "{runs} runs, {killed} killed");
}

/// The clock is far ahead repeatedly, and is corrected each time.
fn a_clock_that_is_sometimes_far_ahead_stops_and_repeats_nothing(new: NewStore) {
    let mut dice = Dice(0x5eed_1234_abcd_0002);
    let tasks = new();
    let every = |number: u64| (600 + 60 * number).to_string();
    let schedules: Vec<Task> = (0..100)
        .map(|number| planned(&format!("task-{number}"), asked(ScheduleType::Interval, &every(number))))
        .collect();
    tasks.insert_all(&schedules).expect("kept");
    let owner = claimant("a");
    let run = |now: Timestamp| {
        for claimed in tasks.claim_due(now, 1000, &owner).expect("claimed") {
            assert!(tasks.finish(claimed.run.id, &success(), now, &owner).expect("finished"));
        }
    };
    let mut clock = noon();
    while clock < after(MINUTELY_HOURS * 3600) {
        clock += SignedDuration::from_secs(60);
        if dice.one_in(50) {
            run(clock + SignedDuration::from_hours(24 * (1 + i64::try_from(dice.up_to(400)).expect("small"))));
            tasks.recalculate_carried_ahead(clock).expect("looked");
        }
        run(clock);
    }
    for (number, task) in schedules.iter().enumerate() {
        let log = log(&*tasks, task);
        let slots: std::collections::HashSet<Timestamp> = log.iter().map(|run| run.slot).collect();
        assert_eq!(slots.len(), log.len(), "{}: a slot ran twice", task.id);
        let expected = MINUTELY_HOURS * 3600 / (600 + 60 * i64::try_from(number).expect("small"));
        let ran = task.schedule.upcoming(task.created_at).take_while(|slot| *slot <= clock);
        let ran = ran.filter(|slot| slots.contains(slot)).count();
        assert_eq!(ran, usize::try_from(expected).expect("small"), "{}: every slot runs", task.id);
    }
}

/// Oldest first.
pub(super) fn log(tasks: &dyn TaskStore, task: &Task) -> Vec<TaskRun> {
    let mut log = tasks.runs(&task.id, 100_000).expect("read");
    log.reverse();
    log
}

/// Every slot up to `end` is either that of one run, or lies between a run's slot and its start: then that run made up for it.
pub(super) fn check(task: &Task, log: &[TaskRun], end: Timestamp) {
    let mut slots: HashMap<Timestamp, usize> = HashMap::new();
    let mut settled = task.created_at;
    for run in log {
        *slots.entry(run.slot).or_default() += 1;
        assert_eq!(Some(run.slot), task.schedule.next_run(settled), "{}: a slot was lost: {log:#?}", task.id);
        assert!(run.outcome.is_some(), "{}: {run:?} never ended", task.id);
        settled = run.slot.max(run.started_at);
    }
    assert!(slots.values().all(|count| *count == 1), "{}: a slot ran twice: {log:#?}", task.id);
    let next = task.schedule.next_run(settled);
    assert!(next.is_none_or(|next| next > end), "{}: the slot {next:?} did not run", task.id);
}
