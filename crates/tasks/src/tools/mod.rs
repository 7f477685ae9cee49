//! The tools to schedule a prompt, and to list and change tasks. They know nothing of how tasks are stored or run.

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

pub fn task_tools(tasks: &TaskService) -> Vec<Arc<dyn Tool>> {
    let mut tools: Vec<Arc<dyn Tool>> =
        vec![Arc::new(ScheduleTask::new(tasks.clone())), Arc::new(ListTasks::new(tasks.clone()))];
    tools.extend(ChangeTask::all(tasks));
    tools
}

/// The error as text for the model.
fn tool_error(error: TaskError) -> ToolError {
    if let TaskError::Unavailable(cause) = &error {
        tracing::warn!(
            %error,
            %cause,
            "a tool cannot read or write the tasks. 'hob doctor' checks the database"
        );
    }
    ToolError::new(match &error {
        TaskError::NotFound { .. } => format!("{error}; list_scheduled_tasks lists all tasks"),
        TaskError::Invalid { field, .. } => format!("{}: {error}", field.as_str()),
        TaskError::Refused { .. }
        | TaskError::Running { .. }
        | TaskError::TooManyTasks { .. }
        | TaskError::TooManyRuns { .. }
        | TaskError::Unavailable(_) => error.to_string(),
    })
}
