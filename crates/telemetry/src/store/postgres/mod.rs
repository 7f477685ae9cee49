//! Calls in PostgreSQL: a row each, with daily sums that keep reports fast. Several processes write at once.
//!
//! | file | what |
//! |---|---|
//! | `calls` | single calls: the last ones, the last of a kind, and the next ones of an export |
//! | `delete` | deletes: everything, or the oldest day |
//! | `record` | writes a batch: rows and sums in one transaction, once |
//! | `report` | sums: overview, models, engines, agents, keys, days, speeds |
//! | `served` | the input of the savings |

mod calls;
mod delete;
#[cfg(test)]
mod postgres_tests;
mod record;
mod report;
mod served;

use std::sync::Arc;
use std::time::SystemTime;

use hob_core::{Moment, RequestSource, UtcDay};
use hob_db::DbResult;
use hob_db::postgres::{PostgresDatabase, PostgresMigrations};
use parking_lot::Mutex;

use crate::call_page::{CallPage, CallQuery};
use crate::call_record::CallRecord;
use crate::figures::{AgentFigures, CallOverview, DayFigures, EngineFigures, KeyFigures, ModelFigures};
use crate::inference::Inference;
use crate::savings::{Prices, ServedTotals};
use crate::store::report::{
    Grouping, Groups, agents, engines, first_day, keys, per_day, together, top_models,
};
use crate::store::{DayDeletion, ExportPage, ExportPosition, TelemetryStore};
use crate::timings::ModelSpeed;
use record::UnknownEnd;

/// The migrations of its tables.
pub const POSTGRES_MIGRATIONS: PostgresMigrations = PostgresMigrations {
    capability: "telemetry",
    steps: &[
        include_str!("../../../migrations/postgres/1_telemetry.sql"),
        include_str!("../../../migrations/postgres/2_call_details.sql"),
    ],
    usable_from: 0,
};

#[derive(Clone)]
pub struct PostgresTelemetryStore {
    database: PostgresDatabase,
    /// The last batch of which it is not known whether it was recorded.
    unknown: Arc<Mutex<Option<UnknownEnd>>>,
}

impl PostgresTelemetryStore {
    pub fn new(database: PostgresDatabase) -> Self {
        PostgresTelemetryStore { database, unknown: Arc::default() }
    }

    /// Whether there is an answer of `engine`. Migrates nothing, and fails if the tables are too old. Blocks.
    pub fn has_answered(&self, engine: &str) -> DbResult<bool> {
        let answered = self
            .database
            .peek("telemetry_series", |transaction| served::has_answered(transaction, engine))?;
        Ok(answered.unwrap_or(false))
    }

    fn groups(&self, grouping: Grouping, since: Option<UtcDay>) -> DbResult<Groups> {
        self.database.read(|transaction| report::groups(transaction, grouping, since))
    }
}

impl TelemetryStore for PostgresTelemetryStore {
    fn record_batch(&self, batch: &[Inference], prices: &Prices) -> DbResult<()> {
        record::record_batch(&self.database, &self.unknown, batch, prices)
    }

    fn overview(&self, since: Option<UtcDay>) -> DbResult<CallOverview> {
        self.database.read(|transaction| {
            let figures = together(report::groups(transaction, Grouping::Together, since)?);
            Ok(CallOverview { recorded_since: calls::first_moment(transaction)?, figures })
        })
    }

    fn top_models(&self, since: Option<UtcDay>, most: usize) -> DbResult<Vec<ModelFigures>> {
        Ok(top_models(self.groups(Grouping::Model, since)?, most))
    }

    fn engines(&self, since: Option<UtcDay>) -> DbResult<Vec<EngineFigures>> {
        Ok(engines(self.groups(Grouping::Engine, since)?))
    }

    fn agents(&self, since: Option<UtcDay>) -> DbResult<Vec<AgentFigures>> {
        Ok(agents(self.groups(Grouping::Agent, since)?))
    }

    fn keys(&self, since: Option<UtcDay>) -> DbResult<Vec<KeyFigures>> {
        self.database.read(|transaction| {
            let groups = report::groups(transaction, Grouping::Key, since)?;
            Ok(keys(groups, &report::last_days(transaction)?))
        })
    }

    fn per_day(&self, days: u32, now: SystemTime) -> DbResult<Vec<DayFigures>> {
        Ok(per_day(self.groups(Grouping::Day, Some(first_day(days, now)))?, days, now))
    }

    fn speeds(&self, since: UtcDay, most: u32) -> DbResult<Vec<ModelSpeed>> {
        self.database.read(|transaction| report::speeds(transaction, since, most))
    }

    fn served(&self, today: UtcDay) -> DbResult<ServedTotals> {
        self.database.read(|transaction| served::served(transaction, today))
    }

    fn recent(&self, most: usize) -> DbResult<Vec<CallRecord>> {
        self.database.read(|transaction| calls::recent(transaction, most))
    }

    fn call_page(&self, query: &CallQuery) -> DbResult<CallPage> {
        self.database.read(|transaction| calls::call_page(transaction, query))
    }

    fn find_run(&self, run: &str, since: Moment) -> DbResult<Option<CallRecord>> {
        self.database.read(|transaction| calls::find_run(transaction, run, since))
    }

    fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> DbResult<Option<CallRecord>> {
        self.database
            .read(|transaction| calls::last_complete(transaction, since, except_sources, except_runs))
    }

    fn page_after(&self, position: ExportPosition) -> DbResult<ExportPage> {
        self.database.read(|transaction| calls::page_after(transaction, position))
    }

    fn delete_oldest(&self, oldest_kept: UtcDay) -> DbResult<DayDeletion> {
        self.database.write(|transaction| delete::delete_oldest(transaction, oldest_kept))
    }

    fn clear(&self) -> DbResult<u64> {
        self.database.write(delete::clear)
    }

    /// Every batch is on the disk of the server once it is recorded.
    fn sync(&self) -> DbResult<()> {
        Ok(())
    }

    /// The server does it by itself.
    fn checkpoint(&self) -> DbResult<()> {
        Ok(())
    }
}
