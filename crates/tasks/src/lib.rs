//! Scheduled tasks: prompts that run once or repeatedly, at the times of a schedule.
//!
//! [`TaskService`] creates, lists and changes tasks. [`Scheduler`] runs them: it asks through the contract [`Ask`] and hands
//! results to a [`Deliver`]. Both read and write through [`store`], which claims every slot for one process only. [`task_tools`] are the
//! tools with which a model schedules tasks. The time comes from a [`Clock`], so that a test can set it.
//!
//! Knows no engine, agent or channel, no configuration file and no HTTP server.
//!
//! [`Ask`]: hob_core::Ask
//! [`Clock`]: hob_core::Clock

mod claim_plan;
mod clock_check;
mod cron;
mod deliver;
mod fair_slots;
mod first_call;
mod live_runs;
mod manual_runs;
mod missed_runs;
mod plain_schedule;
mod result_layout;
mod result_summary;
mod runner;
mod schedule;
mod schedule_text;
mod scheduler;
mod service;
pub mod store;
mod task;
pub mod tools;
mod types;

pub use cron::CronSpec;
pub use deliver::{Deliver, DeliverError, NoDelivery};
pub use first_call::FirstCall;
pub use missed_runs::Missed;
pub use plain_schedule::PlainSchedule;
pub use runner::TaskRunOptions;
pub use schedule::{Schedule, ScheduleSpec, ScheduleType, parse_zone};
pub use schedule_text::{in_words, shown_schedule};
pub use scheduler::{Scheduler, SchedulerOptions, SchedulerParts};
pub use service::{TaskOptions, TaskService};
pub use store::{COPY_TABLES, MIGRATIONS, POSTGRES_MIGRATIONS};
pub use task::{DeliverTo, NewTask, RunOutcome, Task, TaskLimits, TaskRun};
pub use tools::task_tools;
pub use types::{TaskChange, TaskError, TaskField, TaskId, TaskStatus};

#[cfg(test)]
mod outage_tests;
