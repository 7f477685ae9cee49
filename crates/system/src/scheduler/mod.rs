//! Runs tasks at their time.
//!
//! [`TaskBook`] saves them, for everyone who makes, changes or reads tasks; [`Scheduler`] runs them. It asks by the contract
//! [`Ask`] and hands results to a [`Deliver`]; it knows no engine, agent or channel. Time comes from a [`Clock`], so that a
//! test can bring its own.
//!
//! [`Ask`]: hob_core::Ask
//! [`Clock`]: hob_core::Clock

mod book;
mod daemon;
mod deliver;
mod runner;
mod watch;

pub use book::{TaskBook, TaskOptions};
pub use daemon::{Scheduler, SchedulerOptions, SchedulerParts};
pub use deliver::{Deliver, DeliverError, NoDelivery};

#[cfg(test)]
#[path = "scheduler_tests.rs"]
mod tests;
