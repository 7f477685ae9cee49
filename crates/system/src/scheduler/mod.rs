//! Runs tasks at their time.
//!
//! [`TaskBook`] keeps them, for everybody who makes, changes or reads tasks; [`Scheduler`] runs them, by asking [`System`] as
//! everybody else does. Time comes from a [`Clock`], so that a test can bring its own.
//!
//! [`System`]: crate::System

mod book;
mod daemon;
mod runner;
mod watch;

use std::sync::Arc;

use jiff::Timestamp;

pub use book::{BookParts, TaskBook};
pub use daemon::{Scheduler, SchedulerOptions, SchedulerParts};

/// Where the time comes from.
pub type Clock = Arc<dyn Fn() -> Timestamp + Send + Sync>;

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
