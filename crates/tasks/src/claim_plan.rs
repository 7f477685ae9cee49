//! What happens to a task when it is claimed, when its run ends and when the clock was wrong. Pure: a store reads rows, asks here
//! and writes the result, so that every database behaves the same.

use std::time::Duration;

use hob_core::Backoff;
use jiff::{SignedDuration, Timestamp};

use crate::store::{RetryPolicy, RunResult};
use crate::task::{Missed, RunOutcome, Task};
use crate::types::TaskStatus;

/// Runs of one task that are kept.
pub(crate) const MOST_RUNS: usize = 1000;

/// The waits before retries.
pub(crate) const RETRY_BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(30), longest: Duration::from_secs(3600) };

/// Clocks are corrected by seconds all the time, and a slot that one run has made up for must not run after such a correction.
/// Further ahead than this nothing is settled by a clock that is only a little off.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

/// Why a run began.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunCause {
    Schedule,
    /// It was asked for, beside the schedule.
    Manual,
}

impl RunCause {
    pub(crate) const ALL: [RunCause; 2] = [RunCause::Schedule, RunCause::Manual];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            RunCause::Schedule => "schedule",
            RunCause::Manual => "manual",
        }
    }
}

/// A slot that is tried again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingRetry {
    pub(crate) slot: Timestamp,
    pub(crate) attempt: u32,
}

/// The schedule of a task after a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advance {
    /// Slots up to here are done with.
    pub(crate) settled: Timestamp,
    pub(crate) next_run: Option<Timestamp>,
}

/// What to do with a task that is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimPlan {
    /// Run a slot again that failed before. The schedule stays as it is.
    Retry(PendingRetry),
    /// Run the slot, and move the schedule on. A slot that has a run already is skipped.
    Run { slot: Timestamp, advance: Advance },
    /// Move the schedule on without a run.
    Skip(Advance),
    /// There is no slot left.
    Nothing,
}

/// Plans the claim of a task that is due at `now`. A slot that is later than `grace` was missed.
pub(crate) fn plan_claim(
    task: &Task,
    retry: Option<PendingRetry>,
    now: Timestamp,
    grace: Duration,
) -> ClaimPlan {
    if let Some(retry) = retry {
        return ClaimPlan::Retry(retry);
    }
    let Some(slot) = task.next_run else { return ClaimPlan::Nothing };
    // All slots up to now are settled by what happens here: one run makes up for those that were missed.
    let settled = now.max(slot);
    let advance = Advance { settled, next_run: task.schedule.next_run(settled) };
    let late = now.duration_since(slot) > signed(grace);
    match task.missed {
        Missed::Skip if late => ClaimPlan::Skip(advance),
        Missed::Skip | Missed::Once => ClaimPlan::Run { slot, advance },
    }
}

/// When a run that ended is tried again; `None` if it is not.
pub(crate) fn retry_at(
    result: &RunResult,
    cause: RunCause,
    attempt: u32,
    retries: u32,
    now: Timestamp,
) -> Option<Timestamp> {
    let failed = matches!(result.outcome, RunOutcome::Failed | RunOutcome::Interrupted);
    let again =
        failed && result.retry == RetryPolicy::IfLeft && cause == RunCause::Schedule && attempt <= retries;
    again.then(|| later(now, signed(RETRY_BACKOFF.delay(attempt))))
}

/// Whether a pending retry is dropped when the task enters `status`. A date is not lost by a pause.
pub(crate) fn drops_retry(task: &Task, status: TaskStatus) -> bool {
    match status {
        TaskStatus::Paused => false,
        TaskStatus::Active => task.schedule.is_recurring(),
        TaskStatus::Completed | TaskStatus::Cancelled => true,
    }
}

/// Until when a claim or its renewal holds.
pub(crate) fn lease_until(now: Timestamp, lease: Duration) -> Timestamp {
    later(now, signed(lease))
}

/// The latest time that a lease can have: one that is later was set before the clock was put back.
pub(crate) fn latest_lease(now: Timestamp, longest_lease: Duration) -> Timestamp {
    later(now, signed(longest_lease.saturating_mul(2)))
}

/// The latest time up to which slots are settled by a clock that is about right.
pub(crate) fn latest_settled(now: Timestamp) -> Timestamp {
    later(now, CLOCK_TOLERANCE)
}

/// The latest time of a retry that a clock which is about right can have set.
pub(crate) fn latest_retry(now: Timestamp) -> Timestamp {
    later(now, signed(RETRY_BACKOFF.longest))
}

/// Whether slots were settled by a clock that was ahead.
pub(crate) fn is_carried_ahead(settled: Timestamp, now: Timestamp) -> bool {
    settled > latest_settled(now)
}

/// The next slot of an active task that has neither run nor been made up for. What a clock that was ahead has settled does not
/// count, and a date stays where it is, whatever the clock showed.
pub(crate) fn next_slot<E>(
    task: &Task,
    settled: Timestamp,
    now: Timestamp,
    mut has_run: impl FnMut(Timestamp) -> Result<bool, E>,
) -> Result<Option<Timestamp>, E> {
    if !task.schedule.is_recurring() {
        return Ok(task.next_run);
    }
    let after = if is_carried_ahead(settled, now) { now } else { now.max(settled) };
    // No more slots can have run than runs are kept.
    for slot in task.schedule.upcoming(after).take(MOST_RUNS + 1) {
        if !has_run(slot)? {
            return Ok(Some(slot));
        }
    }
    Ok(None)
}

/// Corrects a task that a clock which was ahead created. Intervals are counted from its creation.
pub(crate) fn correct_creation(task: &mut Task, now: Timestamp) {
    if task.created_at > latest_settled(now) {
        task.created_at = now;
        task.schedule.anchor = now;
    }
}

/// At the latest the last moment there is: a clock may show anything.
fn later(now: Timestamp, by: SignedDuration) -> Timestamp {
    now.checked_add(by).unwrap_or(Timestamp::MAX)
}

fn signed(duration: Duration) -> SignedDuration {
    SignedDuration::try_from(duration).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use hob_core::{Permit, Reach};

    use super::*;
    use crate::schedule::ScheduleType;
    use crate::task::NewTask;
    use crate::types::TaskId;

    const GRACE: Duration = Duration::from_secs(60);

    fn after(seconds: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(seconds)
    }

    /// Every ten minutes.
    fn task(missed: Missed) -> Task {
        let task = NewTask::new("p", ScheduleType::Interval, "600", Permit::up_to(Reach::Act));
        NewTask { missed, ..task }.plan(TaskId::parse("t").unwrap(), after(0)).unwrap()
    }

    #[test]
    fn one_run_makes_up_for_all_missed_slots_or_none_does() {
        let advance = Advance { settled: after(10_000), next_run: Some(after(10_200)) };
        let plan = |missed| plan_claim(&task(missed), None, after(10_000), GRACE);
        assert_eq!(plan(Missed::Once), ClaimPlan::Run { slot: after(600), advance });
        assert_eq!(plan(Missed::Skip), ClaimPlan::Skip(advance));
    }

    #[test]
    fn a_little_late_is_not_missed() {
        let advance = Advance { settled: after(660), next_run: Some(after(1200)) };
        let plan = plan_claim(&task(Missed::Skip), None, after(660), GRACE);
        assert_eq!(plan, ClaimPlan::Run { slot: after(600), advance });
    }

    #[test]
    fn a_retry_comes_before_the_next_slot_and_a_task_without_slots_has_nothing_to_do() {
        let retry = PendingRetry { slot: after(0), attempt: 2 };
        assert_eq!(plan_claim(&task(Missed::Once), Some(retry), after(600), GRACE), ClaimPlan::Retry(retry));
        let over = Task { next_run: None, ..task(Missed::Once) };
        assert_eq!(plan_claim(&over, None, after(600), GRACE), ClaimPlan::Nothing);
    }

    #[test]
    fn only_scheduled_runs_that_failed_are_tried_again_while_tries_are_left() {
        let result = |outcome, retry| RunResult { outcome, result: None, error: None, retry };
        let failed = result(RunOutcome::Failed, RetryPolicy::IfLeft);
        let waits = [1, 2, 3].map(|attempt| retry_at(&failed, RunCause::Schedule, attempt, 2, after(0)));
        assert_eq!(waits, [Some(after(30)), Some(after(60)), None]);
        assert_eq!(retry_at(&failed, RunCause::Manual, 1, 2, after(0)), None);
        for ended in [
            result(RunOutcome::Failed, RetryPolicy::Never),
            result(RunOutcome::Succeeded, RetryPolicy::IfLeft),
            result(RunOutcome::Cancelled, RetryPolicy::IfLeft),
        ] {
            assert_eq!(retry_at(&ended, RunCause::Schedule, 1, 2, after(0)), None, "{ended:?}");
        }
    }

    #[test]
    fn slots_that_have_run_are_passed_over_and_a_clock_that_was_ahead_settles_nothing() {
        let task = task(Missed::Once);
        let next = |settled, now| next_slot(&task, settled, now, |slot| Ok::<_, ()>(slot == after(1200)));
        assert_eq!(next(after(600), after(700)), Ok(Some(after(1800))));
        assert_eq!(next(after(1900), after(1700)), Ok(Some(after(2400))), "a little ahead is settled");
        assert_eq!(next(after(9_000_000), after(500)), Ok(Some(after(600))));
    }
}
