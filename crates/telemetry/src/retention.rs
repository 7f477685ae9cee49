//! Deletes records that are older than the retention time. Knows no tables.

use std::error::Error;
use std::time::{Duration, Instant, SystemTime};

use hob_core::UtcDay;

use crate::store::{DayDeletion, TelemetryStore};

/// The wait after a failed deletion, or while another process deletes.
const RETRY_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Deletes old records at the start, and whenever a day has passed.
pub(crate) struct Retention {
    /// 0 keeps all.
    days: u32,
    /// The last day for which all old records were deleted.
    done: Option<UtcDay>,
    /// When the last attempt failed, or another process was deleting.
    refused: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pruning {
    Continues,
    Rests,
}

impl Retention {
    pub(crate) fn new(days: u32) -> Self {
        Retention { days, done: None, refused: None }
    }

    /// Deletes one old day, if there is one. A failure is logged and retried later.
    pub(crate) fn step(&mut self, store: &dyn TelemetryStore, now: SystemTime, clock: Instant) -> Pruning {
        let today = UtcDay::of(now);
        let too_soon =
            self.refused.is_some_and(|last| clock.saturating_duration_since(last) < RETRY_INTERVAL);
        if self.days == 0 || self.done == Some(today) || too_soon {
            return Pruning::Rests;
        }
        match store.delete_oldest(today.minus(self.days)) {
            Ok(DayDeletion::Deleted(deleted)) => {
                tracing::debug!(deleted, "deleted the oldest day of call records");
                self.refused = None;
                Pruning::Continues
            }
            Ok(DayDeletion::NothingOld) => {
                (self.done, self.refused) = (Some(today), None);
                Pruning::Rests
            }
            // The other process may end before it is done, so this one looks again.
            Ok(DayDeletion::Busy) => {
                self.refused = Some(clock);
                Pruning::Rests
            }
            Err(error) => {
                if self.refused.replace(clock).is_none() {
                    tracing::warn!(
                        error = &error as &dyn Error,
                        "call records that are older than [telemetry] retention_days cannot be deleted; Hob \
                         keeps trying"
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
