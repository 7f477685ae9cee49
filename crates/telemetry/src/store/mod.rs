//! The tables of the record.

pub(crate) mod sqlite;
#[cfg(test)]
pub(crate) mod tests;

pub use sqlite::{
    AgentFigures, DayFigures, EngineFigures, Export, Figures, MIGRATIONS, ModelFigures, ModelSpeed, Outcome,
    Overview, Row, Telemetry, Timing, Timings, has_answered,
};
