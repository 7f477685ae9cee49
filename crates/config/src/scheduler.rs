//! `[scheduler]`: tasks that run at a set time.

use std::time::Duration;

use hob_core::defaults::{CONCURRENT_TASKS, TASK_POLL_INTERVAL};

use crate::kind::{COUNT, FLAG, SECONDS};
use crate::settings_schema::keys_of;

/// Settings of the scheduler.
#[derive(Debug, Clone)]
pub struct SchedulerConfig {
    /// Whether `serve` runs tasks.
    pub enabled: bool,
    /// The longest time between two checks for due tasks.
    pub poll_interval: Duration,
    /// How many tasks run at once.
    pub max_concurrent: usize,
}

impl Default for SchedulerConfig {
    fn default() -> Self {
        SchedulerConfig { enabled: true, poll_interval: TASK_POLL_INTERVAL, max_concurrent: CONCURRENT_TASKS }
    }
}

keys_of! {
    SchedulerConfig {
        enabled: FLAG, "Whether 'hob serve' runs scheduled tasks. Without tasks, this costs nothing.";
        poll_interval: SECONDS, "Longest time in seconds between two checks for due tasks.";
        max_concurrent: COUNT, "Tasks that may run at the same time.";
    }
}
