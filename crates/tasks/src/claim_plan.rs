//! Decides what happens to a task when it is claimed, when its run ends, and when the clock was wrong. Pure: a store reads rows,
//! asks here and writes the result, so that every database behaves the same.

use std::time::Duration;

use hob_core::Backoff;
use jiff::{SignedDuration, Timestamp};

use crate::missed_runs::settled_by;
use crate::store::{RetryPolicy, RunResult};
use crate::task::{RunOutcome, Task};
use crate::types::TaskStatus;

/// Runs of one task that are stored.
pub(crate) const MAX_RUNS: usize = 1000;

pub(crate) const RETRY_BACKOFF: Backoff =
    Backoff { first: Duration::from_secs(30), longest: Duration::from_secs(3600) };

/// Clocks are often corrected by seconds, and a slot that was already made up for must not run after such a correction.
const CLOCK_TOLERANCE: SignedDuration = SignedDuration::from_mins(5);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RunCause {
    Schedule,
    /// Started by a user, outside the schedule.
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

/// A slot to retry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PendingRetry {
    pub(crate) slot: Timestamp,
    pub(crate) attempt: u32,
}

/// The schedule of a task after a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Advance {
    /// All slots up to here are settled.
    pub(crate) settled: Timestamp,
    pub(crate) next_run: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ClaimPlan {
    /// Run a failed slot again. The schedule stays.
    Retry(PendingRetry),
    /// Run the slot and advance the schedule. A slot that already has a run is skipped.
    Run { slot: Timestamp, advance: Advance },
    /// Advance the schedule without a run.
    Skip(Advance),
    /// There is no slot left.
    Nothing,
}

/// Plans the claim of a task that is due at `now`. A slot older than `grace` was missed; `missed_runs` has the rule.
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
    let settled = settled_by(slot, now);
    let advance = Advance { settled, next_run: task.schedule.next_run(settled) };
    match task.missed.runs(slot, now, grace) {
        true => ClaimPlan::Run { slot, advance },
        false => ClaimPlan::Skip(advance),
    }
}

/// When an ended run is retried, if it is.
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

/// Whether a pending retry is dropped when the task enters `status`. A pause does not lose a date.
pub(crate) fn drops_retry(task: &Task, status: TaskStatus) -> bool {
    match status {
        TaskStatus::Paused => false,
        TaskStatus::Active => task.schedule.is_recurring(),
        TaskStatus::Completed | TaskStatus::Cancelled => true,
    }
}

pub(crate) fn lease_until(now: Timestamp, lease: Duration) -> Timestamp {
    later(now, signed(lease))
}

/// The latest possible lease. A later one was set before the clock was put back.
pub(crate) fn latest_lease(now: Timestamp, longest_lease: Duration) -> Timestamp {
    later(now, signed(longest_lease.saturating_mul(2)))
}

/// The latest time up to which an approximately correct clock can have settled slots.
pub(crate) fn latest_settled(now: Timestamp) -> Timestamp {
    later(now, CLOCK_TOLERANCE)
}

/// The latest retry that an approximately correct clock can have set.
pub(crate) fn latest_retry(now: Timestamp) -> Timestamp {
    later(now, signed(RETRY_BACKOFF.longest))
}

/// Whether a clock that was ahead has settled slots.
pub(crate) fn is_carried_ahead(settled: Timestamp, now: Timestamp) -> bool {
    settled > latest_settled(now)
}

/// The next slot of an active task that has neither run nor been made up for. What a clock that was ahead has settled is ignored,
/// and a date never moves.
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
    // No more slots than stored runs can have run.
    for slot in task.schedule.upcoming(after).take(MAX_RUNS + 1) {
        if !has_run(slot)? {
            return Ok(Some(slot));
        }
    }
    Ok(None)
}

/// Corrects a task that was created while the clock was ahead. Intervals count from its creation.
pub(crate) fn correct_creation(task: &mut Task, now: Timestamp) {
    if task.created_at > latest_settled(now) {
        task.created_at = now;
        task.schedule.anchor = now;
    }
}

/// Limited to the last possible time, because a clock may show anything.
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
    use crate::missed_runs::Missed;
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
    fn causes_are_stored_as_the_words_of_existing_databases() {
        assert_eq!(RunCause::ALL.map(RunCause::as_str), ["schedule", "manual"]);
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
    fn only_failed_scheduled_runs_with_retries_left_are_retried() {
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
    fn slots_that_have_run_are_skipped_and_a_clock_that_was_ahead_settles_nothing() {
        let task = task(Missed::Once);
        let next = |settled, now| next_slot(&task, settled, now, |slot| Ok::<_, ()>(slot == after(1200)));
        assert_eq!(next(after(600), after(700)), Ok(Some(after(1800))));
        assert_eq!(next(after(1900), after(1700)), Ok(Some(after(2400))), "a little ahead is settled");
        assert_eq!(next(after(9_000_000), after(500)), Ok(Some(after(600))));
    }

    #[test]
    fn a_slot_is_found_behind_as_many_runs_as_are_stored() {
        let task = task(Missed::Once);
        let last_run = after(600 * i64::try_from(MAX_RUNS).unwrap());
        let next = next_slot(&task, after(0), after(0), |slot| Ok::<_, ()>(slot <= last_run));
        assert_eq!(next, Ok(Some(last_run + SignedDuration::from_secs(600))));
    }

    #[test]
    fn a_clock_may_be_ahead_by_five_minutes() {
        assert!(!is_carried_ahead(after(300), after(0)));
        assert!(is_carried_ahead(after(301), after(0)));
        for (created, corrected) in [(300, 300), (301, 0)] {
            let mut task = Task { created_at: after(created), ..task(Missed::Once) };
            correct_creation(&mut task, after(0));
            assert_eq!(task.created_at, after(corrected));
        }
    }

    #[test]
    fn no_retry_is_later_than_the_longest_wait() {
        let result =
            RunResult { outcome: RunOutcome::Failed, result: None, error: None, retry: RetryPolicy::IfLeft };
        let last = retry_at(&result, RunCause::Schedule, 20, 20, after(0));
        assert_eq!((last, latest_retry(after(0))), (Some(after(3600)), after(3600)));
    }
}
