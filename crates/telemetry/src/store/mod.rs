//! Where calls are recorded, and read again for reports. Every call of a store blocks.

pub(crate) mod sqlite;
#[cfg(test)]
pub(crate) mod tests;

use std::time::SystemTime;

use hob_core::{Moment, RequestSource, UtcDay};
use hob_db::DatabaseError;

use crate::call_record::CallRecord;
use crate::figures::{AgentFigures, CallOverview, DayFigures, EngineFigures, ModelFigures};
use crate::inference::Inference;
use crate::savings::{Prices, ServedTotals};
use crate::timings::ModelSpeed;

pub use sqlite::{MIGRATIONS, SqliteTelemetryStore, has_answered};

/// Records calls and reports on them. In all reports `since` is a first day; `None` is from the beginning.
pub trait TelemetryStore: Send + Sync {
    /// Records all of them or, when that fails, none. Calls to the cloud are charged with `prices`.
    fn record_batch(&self, batch: &[Inference], prices: &Prices) -> Result<(), DatabaseError>;

    fn overview(&self, since: Option<UtcDay>) -> Result<CallOverview, DatabaseError>;

    /// The models with the most calls, and at most so many.
    fn top_models(&self, since: Option<UtcDay>, most: usize) -> Result<Vec<ModelFigures>, DatabaseError>;

    /// The engines, those with the most calls first.
    fn engines(&self, since: Option<UtcDay>) -> Result<Vec<EngineFigures>, DatabaseError>;

    /// The agents, those with the most calls first.
    fn agents(&self, since: Option<UtcDay>) -> Result<Vec<AgentFigures>, DatabaseError>;

    /// The last `days` days, today included, oldest first; days without calls too.
    fn per_day(&self, days: u32, now: SystemTime) -> Result<Vec<DayFigures>, DatabaseError>;

    /// How fast models have written from the day `since` on; of those with the most calls, and at most of so many.
    fn speeds(&self, since: UtcDay, most: u32) -> Result<Vec<ModelSpeed>, DatabaseError>;

    /// What savings are computed from, with timings and times of the last days before and with `today`.
    fn served(&self, today: UtcDay) -> Result<ServedTotals, DatabaseError>;

    /// The last `most` calls, newest first.
    fn recent(&self, most: usize) -> Result<Vec<CallRecord>, DatabaseError>;

    /// The last call of a run since a moment; `None` where there is none.
    fn find_run(&self, run: &str, since: Moment) -> Result<Option<CallRecord>, DatabaseError>;

    /// The last call since a moment that was completed, without those of some sources and of some runs.
    fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> Result<Option<CallRecord>, DatabaseError>;

    /// Some calls after `position`, page by page.
    fn page_after(&self, position: ExportPosition) -> Result<ExportPage, DatabaseError>;

    /// Deletes the oldest day before `oldest_kept`, and returns how many calls it had; `None` when there is no such day. One day at a
    /// time, so that others can write in between.
    fn delete_oldest(&self, oldest_kept: UtcDay) -> Result<Option<u64>, DatabaseError>;

    /// Deletes all calls, and returns how many there were.
    fn clear(&self) -> Result<u64, DatabaseError>;

    /// Writes to the disk what was recorded: until then a power cut may take it.
    fn sync(&self) -> Result<(), DatabaseError>;

    /// Moves what was recorded, and all else in the log beside the database, into the database itself.
    fn checkpoint(&self) -> Result<(), DatabaseError>;
}

/// How far an export has read. Pages are ordered by their first call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportPosition {
    pub(crate) first_started: i64,
    pub(crate) id: i64,
    /// Pages above this id came after the export began, and are skipped so that it ends. `None` before the first page.
    pub(crate) newest: Option<i64>,
}

impl ExportPosition {
    /// Before the first call of the day `since`; `None` is before all of them.
    pub fn before(since: Option<UtcDay>) -> Self {
        let first_started = since.map_or(-1, |day| day.start().microseconds() - 1);
        ExportPosition { first_started, id: i64::MAX, newest: None }
    }
}

/// Some calls of an export.
#[derive(Debug, Clone, PartialEq)]
pub struct ExportPage {
    pub calls: Vec<CallRecord>,
    /// Where to read on.
    pub position: ExportPosition,
    /// When the first call of the next page began; `None` after the last page.
    pub next: Option<Moment>,
}
