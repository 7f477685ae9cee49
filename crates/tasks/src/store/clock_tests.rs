//! Clocks that are wrong, put back or corrected.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::Recalculated;
use super::tests::{
    NewStore, TestStore, after, asked, at, claim, claimant, failure, finish, kept, noon, often, postgres,
    sqlite, status, success,
};
use crate::schedule::ScheduleType;
use crate::task::{NewTask, TaskLimits};
use crate::types::{TaskChange, TaskId};

hob_testkit::on_both_databases!(
    sqlite, postgres:
    a_clock_that_is_put_back_a_little_runs_no_slot_again,
    a_clock_that_was_ahead_once_does_not_stop_a_task,
    resuming_a_task_uses_the_current_time,
    a_task_created_or_retried_by_a_wrong_clock_still_runs,
    an_active_run_is_not_started_again_by_a_corrected_clock,
    a_lease_from_before_the_clock_was_put_back_expires,
    a_clock_may_show_anything,
);

/// The task runs once while the clock is ahead by so many seconds.
fn ran_ahead(new: NewStore, seconds: i64) -> (TestStore, TaskId) {
    let (tasks, id) = kept(new, "t", often());
    let claimed = claim(&*tasks, after(seconds)).expect("due");
    assert_eq!(claimed.run.slot, after(600));
    finish(&*tasks, &claimed, &success(), after(seconds + 1));
    (tasks, id)
}

fn a_clock_that_is_put_back_a_little_runs_no_slot_again(new: NewStore) {
    let (tasks, id) = kept(new, "t", often());
    let claimed = claim(&*tasks, after(1210)).expect("due");
    assert_eq!(claimed.run.slot, after(600), "it makes up for 1200, too");
    finish(&*tasks, &claimed, &success(), after(1211));
    for seconds in [1209, 1190, 1150, 1000, 950] {
        assert_eq!(tasks.recalculate_carried_ahead(after(seconds)).expect("looked"), []);
    }
    assert_eq!(claim(&*tasks, after(1205)), None);
    assert!(tasks.change(&id, TaskChange::Pause, after(1190)).expect("changed").is_ok());
    let resumed = tasks.change(&id, TaskChange::Resume, after(1190)).expect("changed").expect("allowed");
    assert_eq!(resumed.next_run, Some(after(1800)), "not even after a pause");
    assert_eq!(claim(&*tasks, after(1799)), None);
    assert_eq!(claim(&*tasks, after(1800)).expect("due").run.slot, after(1800));
}

fn a_clock_that_was_ahead_once_does_not_stop_a_task(new: NewStore) {
    const YEAR: i64 = 365 * 86_400;
    let (tasks, id) = ran_ahead(new, YEAR);
    // While the clock cannot be believed, nothing is undone.
    assert_eq!(claim(&*tasks, after(1300)), None);
    let recalculated = tasks.recalculate_carried_ahead(after(590)).expect("looked");
    let expected =
        Recalculated { task: id, ahead: SignedDuration::from_secs(YEAR - 590), next_run: Some(after(1200)) };
    assert_eq!(recalculated, [expected], "the slot of 600 has run already");
    assert_eq!(tasks.recalculate_carried_ahead(after(591)).expect("looked"), [], "once is enough");
    assert_eq!(claim(&*tasks, after(700)), None);
    for slot in [1200, 1800, 2400] {
        let claimed = claim(&*tasks, after(slot)).expect("due");
        assert_eq!(claimed.run.slot, after(slot));
        finish(&*tasks, &claimed, &success(), after(slot + 1));
    }
}

fn resuming_a_task_uses_the_current_time(new: NewStore) {
    let (tasks, id) = ran_ahead(new, 365 * 86_400);
    assert!(tasks.change(&id, TaskChange::Pause, after(500)).expect("changed").is_ok());
    let resumed = tasks.change(&id, TaskChange::Resume, after(510)).expect("changed").expect("allowed");
    assert_eq!(resumed.next_run, Some(after(1200)), "the slot of 600 has run already");
    let claimed = claim(&*tasks, after(1200)).expect("due");
    finish(&*tasks, &claimed, &success(), after(1201));
    assert_eq!(status(&*tasks, &id).1, Some(after(1800)));
}

fn a_task_created_or_retried_by_a_wrong_clock_still_runs(new: NewStore) {
    let limits = TaskLimits { retries: 1, ..TaskLimits::default() };
    let (tasks, _) = kept(new, "t", NewTask { limits, ..asked(ScheduleType::Once, "2026-11-15T13:00Z") });
    let claimed = claim(&*tasks, after(90 * 86_400)).expect("due");
    finish(&*tasks, &claimed, &failure(), after(90 * 86_400));
    assert_eq!(claim(&*tasks, after(4000)), None);
    assert_eq!(tasks.recalculate_carried_ahead(after(4000)).expect("looked").len(), 1);
    assert_eq!(claim(&*tasks, after(4000)).expect("its second try").run.attempt, 2);

    let tasks = new();
    let ahead = often().plan(TaskId::parse("t").expect("an id"), after(86_400)).expect("a good task");
    tasks.insert(&ahead).expect("kept");
    assert_eq!(tasks.recalculate_carried_ahead(noon()).expect("looked")[0].next_run, Some(after(600)));
    assert_eq!(claim(&*tasks, after(600)).expect("due").run.slot, after(600));
}

fn an_active_run_is_not_started_again_by_a_corrected_clock(new: NewStore) {
    let (tasks, _) = kept(new, "t", often());
    let claimed = claim(&*tasks, after(86_400)).expect("due");
    assert_eq!(tasks.recalculate_carried_ahead(after(700)).expect("looked").len(), 1);
    assert_eq!(claim(&*tasks, after(1200)), None, "it still runs");
    finish(&*tasks, &claimed, &success(), after(1210));
    assert_eq!(claim(&*tasks, after(1211)).expect("due").run.slot, after(1200));
}

fn a_lease_from_before_the_clock_was_put_back_expires(new: NewStore) {
    let (tasks, _) = kept(new, "t", often());
    claim(&*tasks, after(86_400)).expect("due");
    let gone = tasks.expire_leases(after(700), Duration::from_secs(30)).expect("looked");
    assert_eq!(gone.len(), 1);
}

fn a_clock_may_show_anything(new: NewStore) {
    let far = at("9999-12-30T00:00:00Z");
    let moments = [Timestamp::MIN, Timestamp::UNIX_EPOCH, noon(), far];
    for made in moments {
        for shown in moments {
            let tasks = new();
            for (id, kind, value) in [
                ("cron", ScheduleType::Cron, "*/10 * * * *"),
                ("interval", ScheduleType::Interval, "600"),
                ("once", ScheduleType::Once, "2027-01-01T00:00Z"),
            ] {
                // At the end of time nothing is left to be planned.
                let Ok(task) = asked(kind, value).plan(TaskId::parse(id).expect("an id"), made) else {
                    continue;
                };
                tasks.insert(&task).expect("kept");
            }
            tasks.recalculate_carried_ahead(shown).expect("looked");
            for claimed in tasks.claim_due(shown, 10, &claimant("a")).expect("claimed") {
                tasks.renew(claimed.run.id, shown, &claimant("a")).expect("renewed");
            }
            tasks.expire_leases(shown, Duration::from_secs(30)).expect("looked");
            tasks.recalculate_carried_ahead(noon()).expect("looked");
            for task in tasks.list(None).expect("listed") {
                let _ = tasks.change(&task.id, TaskChange::Pause, shown).expect("asked");
                let _ = tasks.change(&task.id, TaskChange::Resume, noon()).expect("asked");
            }
            tasks.next_due().expect("read");
        }
    }
}
