//! The record of inferences: every one, packed in pages, and sums per day that keep reports fast however many there are.
//!
//! | file | what |
//! |---|---|
//! | `answered` | whether an engine has answered, without opening the database for work |
//! | `entry` | an inference in the database's terms, within bounds |
//! | `packed` | an inference as it stands in a page |
//! | `pages` | writes pages: a row of the database for many inferences of one day |
//! | `record` | writes a batch: pages and sums in one transaction |
//! | `report` | sums: overview, models, engines, agents, days |
//! | `rows` | single inferences: the last ones, and the last of a kind |
//! | `export` | all of them as a stream |
//! | `retention` | deletes: everything, or what is too old |
//! | `served` | what savings are computed from |
//! | `timing` | how long calls took, and how fast models write |
//! | `writer` | takes records without blocking and writes them from its own thread |

mod answered;
mod entry;
mod export;
mod histogram;
mod packed;
mod pages;
mod record;
mod report;
mod retention;
mod rows;
mod served;
mod timing;
mod writer;

use std::sync::Arc;

pub use answered::has_answered;
pub use export::Export;
pub use report::{AgentFigures, DayFigures, EngineFigures, Figures, ModelFigures, Overview};
pub use rows::{Outcome, Row};
pub use timing::{ModelSpeed, Timing, Timings};
pub use writer::TelemetryWriter;

use hob_core::Energy;
use hob_db::{Database, DatabaseError, Migrations};
use serde::{Serialize, Serializer};

use crate::savings::Prices;

/// The steps that make its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "telemetry",
    steps: &[
        include_str!("../../migrations/telemetry/1_telemetry.sql"),
        include_str!("../../migrations/telemetry/2_energy.sql"),
        include_str!("../../migrations/telemetry/3_series_totals.sql"),
        include_str!("../../migrations/telemetry/4_pages.sql"),
        include_str!("../../migrations/telemetry/5_completed_tokens.sql"),
    ],
    legacy_versions: &[1, 6, 7, 8, 10],
};

/// The key of the engine whose calls cost money.
const CLOUD: &str = "cloud";

/// The telemetry in a database. Cheap to clone. Everything blocks.
#[derive(Clone)]
pub struct Telemetry {
    database: Database,
    prices: Arc<Prices>,
}

impl Telemetry {
    /// `prices` are those that calls to the cloud are charged with when they are recorded.
    pub fn new(database: Database, prices: Prices) -> Self {
        Telemetry { database, prices: Arc::new(prices) }
    }

    /// Brings to the disk what was recorded: until then a power cut may take it.
    pub fn sync(&self) -> Result<(), DatabaseError> {
        self.database.sync()
    }

    /// Moves what was recorded, and all else in the log beside the database, into the database itself.
    pub fn checkpoint(&self) -> Result<(), DatabaseError> {
        self.database.checkpoint()
    }
}

/// Writes energy as it is told everywhere: in joules.
pub(crate) fn as_joules_if_known<S: Serializer>(
    energy: &Option<Energy>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    energy.map(Energy::joules).serialize(serializer)
}

#[cfg(test)]
mod migrations_tests;
#[cfg(test)]
mod processes_tests;
#[cfg(test)]
#[path = "telemetry_tests.rs"]
mod tests;
