//! `pause_scheduled_task`, `resume_scheduled_task`, `cancel_scheduled_task`: one tool in three variants.

use std::sync::Arc;

use async_trait::async_trait;
use hob_core::{Effect, Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tool_error;
use crate::service::TaskService;
use crate::types::{TaskChange, TaskId};

/// Name, change and description of each variant.
const VARIANTS: [(&str, TaskChange, &str); 3] = [
    ("pause_scheduled_task", TaskChange::Pause, "Pauses a task. Resume it to run it again."),
    ("resume_scheduled_task", TaskChange::Resume, "Resumes a task. Recalculates its next run."),
    ("cancel_scheduled_task", TaskChange::Cancel, "Cancels a task permanently. Stops a current run."),
];

pub struct ChangeTask {
    tasks: TaskService,
    change: TaskChange,
    spec: ToolSpec,
}

impl ChangeTask {
    pub fn all(tasks: &TaskService) -> impl Iterator<Item = Arc<dyn Tool>> {
        VARIANTS.into_iter().map(|(name, change, description)| -> Arc<dyn Tool> {
            let spec = ToolSpec {
        effect: Effect::Persists,
        ..ToolSpec::new(
            name,
            description,
            Reach::Act,
            object_schema(json!({ "task_id": { "type": "string", "description": "From list_scheduled_tasks" } }), &["task_id"]),
        )
    };
            Arc::new(ChangeTask { tasks: tasks.clone(), change, spec })
        })
    }
}

#[derive(Deserialize)]
struct Arguments {
    task_id: String,
}

#[async_trait]
impl Tool for ChangeTask {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let Arguments { task_id } = tool_arguments::read(arguments)?;
        let id = TaskId::parse(&task_id).map_err(tool_error)?;
        let task = self.tasks.change(&id, self.change).await.map_err(tool_error)?;
        let next_run = task.next_run.map(|at| at.to_string());
        Ok(json!({ "task_id": task.id, "next_run": next_run, "status": task.status.as_str() }).to_string())
    }
}
