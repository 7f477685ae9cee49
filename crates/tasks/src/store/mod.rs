//! Where tasks are saved, changed and claimed. Starts nothing by itself, and takes `now` from its callers.

mod sqlite;

pub use sqlite::{Claimant, Claimed, MIGRATIONS, Recalculated, Renewal, Retry, RunEnd, Tasks, back_off};

#[cfg(test)]
mod processes_tests;
#[cfg(test)]
mod simulation_tests;
#[cfg(test)]
mod tests;
