//! Keeps the record within the days it may have. Knows no tables.

use std::error::Error;
use std::time::{Duration, Instant, SystemTime};

use hob_core::UtcDay;

use crate::store::TelemetryStore;

/// How long to wait before trying again what the disk refused to delete.
const TRY_AGAIN: Duration = Duration::from_secs(60 * 60);

/// Keeps a record within the days it may have: from the start on, and whenever a day has passed.
pub(crate) struct Retention {
    /// 0 keeps all.
    days: u32,
    /// The day for which everything that is too old is gone.
    done: Option<UtcDay>,
    /// The last attempt, if it failed.
    refused: Option<Instant>,
}

/// Whether there is more to delete at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pruning {
    Continues,
    Rests,
}

impl Retention {
    pub(crate) fn new(days: u32) -> Self {
        Retention { days, done: None, refused: None }
    }

    /// Deletes a day, if one is too old. A failure is logged, and tried again after a while.
    pub(crate) fn step(&mut self, store: &dyn TelemetryStore, now: SystemTime, clock: Instant) -> Pruning {
        let today = UtcDay::of(now);
        let too_soon = self.refused.is_some_and(|last| clock.saturating_duration_since(last) < TRY_AGAIN);
        if self.days == 0 || self.done == Some(today) || too_soon {
            return Pruning::Rests;
        }
        match store.delete_oldest(today.minus(self.days)) {
            Ok(Some(deleted)) => {
                tracing::debug!(deleted, "the oldest day of the record of calls is gone");
                self.refused = None;
                Pruning::Continues
            }
            Ok(None) => {
                (self.done, self.refused) = (Some(today), None);
                Pruning::Rests
            }
            Err(error) => {
                if self.refused.replace(clock).is_none() {
                    tracing::warn!(
                        error = &error as &dyn Error,
                        "records of calls that are older than [telemetry] retention_days cannot be deleted; \
                         Hob keeps trying"
                    );
                }
                Pruning::Rests
            }
        }
    }
}

#[cfg(test)]
#[path = "retention_tests.rs"]
mod tests;
