//! The tools of the scheduler: have something done later, see what is planned, and change it.
//!
//! They reach the tasks through the contract [`Schedule`], and know nothing of how tasks are kept or run.

mod change;
mod create;
mod list;

use std::sync::Arc;

use hob_core::{Schedule, ScheduleError, Tool, ToolError};

pub use change::ChangeTask;
pub use create::ScheduleTask;
pub use list::ListTasks;

/// All of them.
pub fn schedule_tools(schedule: &Arc<dyn Schedule>) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> = vec![
        Arc::new(ScheduleTask::new(Arc::clone(schedule))),
        Arc::new(ListTasks::new(Arc::clone(schedule))),
    ];
    tools.extend(ChangeTask::all(schedule));
    tools
}

/// Why it was not done, in words for the model.
fn told(error: ScheduleError) -> ToolError {
    if let ScheduleError::Unavailable(cause) = &error {
        tracing::warn!(%error, %cause, "a tool cannot reach the tasks");
    }
    ToolError::new(match &error {
        ScheduleError::NotFound { .. } => format!("{error}; list_scheduled_tasks shows those there are"),
        ScheduleError::Invalid { field, .. } => format!("{}: {error}", field.as_str()),
        ScheduleError::Refused { .. } | ScheduleError::Running { .. } | ScheduleError::Unavailable(_) => {
            error.to_string()
        }
    })
}
