//! Finds tasks by what was typed.

use anyhow::{Result, bail};
use hob_tasks::{Task, TaskError, TaskId, TaskService, TaskStatus};

use crate::failure::with_advice;
use crate::output::text::one_line;

/// The task with this id, else the active or paused one with this name.
pub(super) async fn find(service: &TaskService, typed: &str) -> Result<Task> {
    let found = match TaskId::parse(typed) {
        Ok(id) => service.get(&id).await,
        Err(error) => Err(error),
    };
    let missing = match found {
        Ok(task) => return Ok(task),
        Err(missing @ TaskError::NotFound { .. }) => missing,
        Err(error) => return Err(with_advice(error)),
    };
    let is_current = |task: &Task| matches!(task.status, TaskStatus::Active | TaskStatus::Paused);
    let mut named = service.list(None).await.map_err(with_advice)?;
    named.retain(|task| task.name() == Some(typed) && is_current(task));
    if named.len() > 1 {
        let ids: Vec<String> = named.iter().map(|task| task.id.to_string()).collect();
        bail!("several tasks are called '{}'. Use an ID: {}", one_line(typed), ids.join(", "));
    }
    named.pop().ok_or_else(|| with_advice(missing))
}
