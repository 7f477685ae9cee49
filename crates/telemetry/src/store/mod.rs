//! Stores calls, and reads them for reports. Every call blocks.

#[cfg(test)]
mod call_page_tests;
mod copy;
pub(crate) mod postgres;
#[cfg(test)]
mod recount_tests;
mod report;
pub(crate) mod sqlite;
mod sums;
#[cfg(test)]
pub(crate) mod tests;

use std::sync::Arc;
use std::time::SystemTime;

use hob_core::{Moment, RequestSource, UtcDay};
use hob_db::{DbResult, Storage};

use crate::call_page::{CallPage, CallQuery};
use crate::call_record::CallRecord;
use crate::figures::{AgentFigures, CallOverview, DayFigures, EngineFigures, KeyFigures, ModelFigures};
use crate::inference::Inference;
use crate::savings::{Prices, ServedTotals};
use crate::timings::ModelSpeed;

pub use copy::COPY_TABLES;
pub use postgres::{POSTGRES_MIGRATIONS, PostgresTelemetryStore};
pub use sqlite::{MIGRATIONS, SqliteTelemetryStore};

/// In all reports, `since` is the first day; `None` is the beginning.
pub trait TelemetryStore: Send + Sync {
    /// Records all or none. Cloud calls are charged with `prices`.
    fn record_batch(&self, batch: &[Inference], prices: &Prices) -> DbResult<()>;

    fn overview(&self, since: Option<UtcDay>) -> DbResult<CallOverview>;

    /// The models with the most calls.
    fn top_models(&self, since: Option<UtcDay>, most: usize) -> DbResult<Vec<ModelFigures>>;

    /// Most calls first.
    fn engines(&self, since: Option<UtcDay>) -> DbResult<Vec<EngineFigures>>;

    /// Most calls first.
    fn agents(&self, since: Option<UtcDay>) -> DbResult<Vec<AgentFigures>>;

    /// Most calls first.
    fn keys(&self, since: Option<UtcDay>) -> DbResult<Vec<KeyFigures>>;

    /// The last `days` days including today, oldest first, also without calls.
    fn per_day(&self, days: u32, now: SystemTime) -> DbResult<Vec<DayFigures>>;

    /// The speeds of the `most` models with the most calls since a day.
    fn speeds(&self, since: UtcDay, most: u32) -> DbResult<Vec<ModelSpeed>>;

    /// The input of the savings, with the timings of the last days.
    fn served(&self, today: UtcDay) -> DbResult<ServedTotals>;

    /// The last `most` calls, newest first.
    fn recent(&self, most: usize) -> DbResult<Vec<CallRecord>>;

    /// The newest calls that match, and where the next page begins.
    fn call_page(&self, query: &CallQuery) -> DbResult<CallPage>;

    /// The last call of a run since a moment.
    fn find_run(&self, run: &str, since: Moment) -> DbResult<Option<CallRecord>>;

    /// The last completed call since a moment, except some sources and runs.
    fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> DbResult<Option<CallRecord>>;

    /// The next calls after `position`.
    fn page_after(&self, position: ExportPosition) -> DbResult<ExportPage>;

    /// Deletes the oldest day before `oldest_kept`. One day at a time, so that other writers do not wait.
    fn delete_oldest(&self, oldest_kept: UtcDay) -> DbResult<DayDeletion>;

    /// Deletes all calls, and returns their number.
    fn clear(&self) -> DbResult<u64>;

    /// Flushes records to the disk.
    fn sync(&self) -> DbResult<()>;

    /// Moves the write-ahead log into the database.
    fn checkpoint(&self) -> DbResult<()>;
}

/// The store in a database, which is created if necessary.
pub(crate) fn open(storage: &Storage) -> DbResult<Arc<dyn TelemetryStore>> {
    Ok(match storage {
        Storage::Sqlite(database) => Arc::new(SqliteTelemetryStore::new(database.open()?)),
        Storage::Postgres(database) => Arc::new(PostgresTelemetryStore::new(database.clone())),
    })
}

/// The store in an existing database. Creates nothing.
pub fn find_telemetry_store(storage: &Storage) -> DbResult<Option<Arc<dyn TelemetryStore>>> {
    if storage.exists() { open(storage).map(Some) } else { Ok(None) }
}

/// Whether an answer of an engine was ever recorded. Creates and migrates nothing.
pub fn has_answered(storage: &Storage, engine: &str) -> DbResult<bool> {
    match storage {
        Storage::Sqlite(database) => sqlite::has_answered(database.path(), engine),
        Storage::Postgres(database) => PostgresTelemetryStore::new(database.clone()).has_answered(engine),
    }
}

/// What became of the oldest day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DayDeletion {
    /// It is deleted, with this number of calls.
    Deleted(u64),
    /// No day is old enough.
    NothingOld,
    /// Another process is deleting.
    Busy,
}

/// The position of an export. SQLite returns whole pages of calls, ordered by their first call; PostgreSQL returns calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExportPosition {
    pub(crate) first_started: i64,
    pub(crate) id: i64,
    /// What has a later id was written after the export began, and is skipped so that it ends. `None` before the first page.
    pub(crate) newest: Option<i64>,
}

impl ExportPosition {
    /// Before the first call of the day `since`, or before all.
    pub fn before(since: Option<UtcDay>) -> Self {
        let first_started = since.map_or(-1, |day| day.start().microseconds() - 1);
        ExportPosition { first_started, id: i64::MAX, newest: None }
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct ExportPage {
    pub calls: Vec<CallRecord>,
    pub position: ExportPosition,
    /// The start of the first call of the next page; `None` after the last page.
    pub next: Option<Moment>,
}
