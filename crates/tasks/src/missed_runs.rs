//! What becomes of the slots that passed while no scheduler ran, such as while the computer was off: one run makes up for all of
//! them, or they are skipped. Pure: takes the slot and the time.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::types::{TaskError, TaskField};

/// What to do about slots that passed while no scheduler ran.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Missed {
    /// One run makes up for all of them.
    #[default]
    Once,
    /// Nothing: the next slot is the next run.
    Skip,
}

impl Missed {
    pub fn as_str(self) -> &'static str {
        match self {
            Missed::Once => "once",
            Missed::Skip => "skip",
        }
    }

    pub fn parse(word: &str) -> Result<Self, TaskError> {
        match word {
            "once" => Ok(Missed::Once),
            "skip" => Ok(Missed::Skip),
            other => {
                let shown: String = other.chars().take(60).collect();
                Err(TaskError::invalid(TaskField::Missed, format!("'{shown}' is not once or skip")))
            }
        }
    }

    /// Whether a slot that is due at `now` still runs. A slot older than `grace` was missed.
    pub(crate) fn runs(self, slot: Timestamp, now: Timestamp, grace: Duration) -> bool {
        match self {
            Missed::Once => true,
            Missed::Skip => !is_missed(slot, now, grace),
        }
    }
}

fn is_missed(slot: Timestamp, now: Timestamp, grace: Duration) -> bool {
    // A period that is too long to be expressed has not passed.
    SignedDuration::try_from(grace).is_ok_and(|grace| now.duration_since(slot) > grace)
}

/// The time up to which all slots are settled once `slot` has run or was skipped at `now`: one run makes up for all missed slots.
pub(crate) fn settled_by(slot: Timestamp, now: Timestamp) -> Timestamp {
    now.max(slot)
}

#[cfg(test)]
mod tests {
    use super::*;

    const GRACE: Duration = Duration::from_secs(60);

    fn at(second: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_secs(second)
    }

    #[test]
    fn a_missed_slot_runs_only_if_the_task_makes_up_for_it() {
        assert!(Missed::Once.runs(at(0), at(61), GRACE));
        assert!(!Missed::Skip.runs(at(0), at(61), GRACE));
        assert!(Missed::Skip.runs(at(0), at(60), GRACE), "a little late is not missed");
        assert!(Missed::Skip.runs(at(0), at(61), Duration::MAX));
    }

    #[test]
    fn one_run_settles_all_slots_that_passed() {
        assert_eq!(settled_by(at(0), at(3600)), at(3600));
        assert_eq!(settled_by(at(10), at(9)), at(10), "a clock that was put back");
    }
}
