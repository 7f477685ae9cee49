//! The tools with which a model schedules a prompt, lists the tasks and changes them. They know nothing of how tasks are
//! saved or run.

mod change;
mod create;
mod list;

use std::sync::Arc;

use hob_core::{Tool, ToolError};

use crate::service::TaskService;
use crate::types::TaskError;

pub use change::ChangeTask;
pub use create::ScheduleTask;
pub use list::ListTasks;

/// All of them.
pub fn task_tools(tasks: &TaskService) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> =
        vec![Arc::new(ScheduleTask::new(tasks.clone())), Arc::new(ListTasks::new(tasks.clone()))];
    tools.extend(ChangeTask::all(tasks));
    tools
}

/// Why it was not done, in words for the model.
fn tool_error(error: TaskError) -> ToolError {
    if let TaskError::Unavailable(cause) = &error {
        tracing::warn!(%error, %cause, "a tool cannot reach the tasks");
    }
    ToolError::new(match &error {
        TaskError::NotFound { .. } => format!("{error}; list_scheduled_tasks lists all tasks"),
        TaskError::Invalid { field, .. } => format!("{}: {error}", field.as_str()),
        TaskError::Refused { .. } | TaskError::Running { .. } | TaskError::Unavailable(_) => {
            error.to_string()
        }
    })
}
