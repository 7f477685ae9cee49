//! The record of inferences: every one, packed in pages, and sums per day that keep reports fast however many there are.
//!
//! | file | what |
//! |---|---|
//! | `answered` | whether an engine has answered, without opening the database for work |
//! | `pages` | writes pages: a row of the database for many inferences of one day |
//! | `record` | writes a batch: pages and sums in one transaction |
//! | `report` | sums: overview, models, engines, agents, days |
//! | `rows` | single inferences: the last ones, and the last of a kind |
//! | `export` | all of them as a stream |
//! | `retention` | deletes: everything, or what is too old |
//! | `served` | what savings are computed from |
//! | `timing` | how long calls took, and how fast models write |

mod answered;
mod export;
mod pages;
mod record;
mod report;
pub(crate) mod retention;
pub(crate) mod rows;
mod served;
mod timing;

use std::sync::Arc;

pub use answered::has_answered;
pub use export::Export;
pub use report::{AgentFigures, DayFigures, EngineFigures, Figures, ModelFigures, Overview};
pub use rows::{Outcome, Row};
pub use timing::{ModelSpeed, Timing, Timings};

use hob_db::{Database, DatabaseError, Migrations};
use serde::{Serialize, Serializer};

use crate::inference::Energy;
use crate::savings::Prices;

/// The steps that make its tables.
pub const MIGRATIONS: Migrations = Migrations {
    capability: "telemetry",
    steps: &[
        include_str!("../../../migrations/1_telemetry.sql"),
        include_str!("../../../migrations/2_energy.sql"),
        include_str!("../../../migrations/3_series_totals.sql"),
        include_str!("../../../migrations/4_pages.sql"),
        include_str!("../../../migrations/5_completed_tokens.sql"),
    ],
    legacy_versions: &[1, 6, 7, 8, 10],
};

/// The key of the engine whose calls cost money.
pub(crate) const CLOUD: &str = "cloud";

/// The telemetry in a database. Cheap to clone. Everything blocks.
#[derive(Clone)]
pub struct Telemetry {
    pub(crate) database: Database,
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
