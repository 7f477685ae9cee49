//! Calls in SQLite: packed in pages, with daily sums that keep reports fast.
//!
//! | file | what |
//! |---|---|
//! | `answered` | whether an engine has answered, without migrating |
//! | `call_page` | a page of the table of calls |
//! | `delete` | deletes: everything, or the oldest day |
//! | `export` | the next pages of an export |
//! | `pages` | writes pages: a row of the database for many calls of one day |
//! | `record` | writes a batch: pages and sums in one transaction |
//! | `report` | sums: overview, models, engines, agents, keys, days |
//! | `rows` | single calls: the last ones, and the last of a kind |
//! | `served` | the input of the savings |
//! | `timing` | latencies and speeds |

mod answered;
mod call_page;
mod delete;
pub(crate) mod export;
#[cfg(test)]
mod migrations_tests;
pub(crate) mod pages;
mod record;
mod report;
mod rows;
mod served;
mod timing;

use std::time::SystemTime;

use hob_core::{Moment, RequestSource, UtcDay};
use hob_db::{Database, DbResult, Migrations};

pub(super) use answered::has_answered;

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

/// The migrations of its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "telemetry",
    steps: &[
        include_str!("../../../migrations/1_telemetry.sql"),
        include_str!("../../../migrations/2_energy.sql"),
        include_str!("../../../migrations/3_series_totals.sql"),
        include_str!("../../../migrations/4_pages.sql"),
        include_str!("../../../migrations/5_completed_tokens.sql"),
        include_str!("../../../migrations/6_keys.sql"),
        include_str!("../../../migrations/7_call_details.sql"),
    ],
    legacy_versions: &[1, 6, 7, 8, 10],
};

#[derive(Clone)]
pub struct SqliteTelemetryStore {
    pub(crate) database: Database,
}

impl SqliteTelemetryStore {
    pub fn new(database: Database) -> Self {
        SqliteTelemetryStore { database }
    }

    fn groups(&self, grouping: Grouping, since: Option<UtcDay>) -> DbResult<Groups> {
        self.database.read(|connection| report::groups(connection, grouping, since))
    }
}

impl TelemetryStore for SqliteTelemetryStore {
    fn record_batch(&self, batch: &[Inference], prices: &Prices) -> DbResult<()> {
        record::record_batch(&self.database, batch, prices)
    }

    fn overview(&self, since: Option<UtcDay>) -> DbResult<CallOverview> {
        self.database.read(|connection| {
            let figures = together(report::groups(connection, Grouping::Together, since)?);
            Ok(CallOverview { recorded_since: report::first_moment(connection)?, figures })
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
        self.database.read(|connection| {
            let groups = report::groups(connection, Grouping::Key, since)?;
            Ok(keys(groups, &report::last_days(connection)?))
        })
    }

    fn per_day(&self, days: u32, now: SystemTime) -> DbResult<Vec<DayFigures>> {
        Ok(per_day(self.groups(Grouping::Day, Some(first_day(days, now)))?, days, now))
    }

    fn speeds(&self, since: UtcDay, most: u32) -> DbResult<Vec<ModelSpeed>> {
        self.database.read(|connection| timing::speeds(connection, since, most))
    }

    fn served(&self, today: UtcDay) -> DbResult<ServedTotals> {
        self.database.read(|connection| served::served(connection, today))
    }

    fn recent(&self, most: usize) -> DbResult<Vec<CallRecord>> {
        self.database.read(|connection| rows::recent(connection, most))
    }

    fn call_page(&self, query: &CallQuery) -> DbResult<CallPage> {
        self.database.read(|connection| call_page::call_page(connection, query))
    }

    fn find_run(&self, run: &str, since: Moment) -> DbResult<Option<CallRecord>> {
        self.database.read(|connection| rows::find_run(connection, run, since))
    }

    fn last_complete(
        &self,
        since: Moment,
        except_sources: &[RequestSource],
        except_runs: &[&str],
    ) -> DbResult<Option<CallRecord>> {
        self.database.read(|connection| rows::last_complete(connection, since, except_sources, except_runs))
    }

    fn page_after(&self, position: ExportPosition) -> DbResult<ExportPage> {
        self.database.read(|connection| export::page_after(connection, position))
    }

    fn delete_oldest(&self, oldest_kept: UtcDay) -> DbResult<DayDeletion> {
        delete::delete_oldest(&self.database, oldest_kept)
    }

    fn clear(&self) -> DbResult<u64> {
        delete::clear(&self.database)
    }

    fn sync(&self) -> DbResult<()> {
        self.database.sync()
    }

    fn checkpoint(&self) -> DbResult<()> {
        self.database.checkpoint()
    }
}
