//! `list_scheduled_tasks`: lists the tasks.

use std::sync::LazyLock;

use async_trait::async_trait;
use hob_core::{Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tool_error;
use crate::service::TaskService;
use crate::types::TaskStatus;

/// The number of tasks that a model gets, the next ones first.
const MOST: usize = 50;

/// The part of a prompt that a model gets.
const SHOWN: usize = 120;

pub struct ListTasks {
    tasks: TaskService,
}

impl ListTasks {
    pub fn new(tasks: TaskService) -> Self {
        ListTasks { tasks }
    }
}

#[derive(Deserialize)]
struct Arguments {
    status: Option<String>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    // A prompt may come from a tainted run.
    untrusted_output: true,
    ..ToolSpec::new(
        "list_scheduled_tasks",
        "Lists scheduled tasks. Returns id, prompt, schedule, status and next run.",
        Reach::Read,
        object_schema(
            json!({
                "status": {
                    "type": ["string", "null"], "enum": ["active", "paused", "completed", "cancelled", null], "description": "Only tasks in this state; all by default" }
            }),
            &[],
        ),
    )
});

#[async_trait]
impl Tool for ListTasks {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn rare_arguments(&self) -> &[&str] {
        &["status"]
    }

    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        let Arguments { status } = tool_arguments::read(arguments)?;
        let status = status.as_deref().map(TaskStatus::parse).transpose().map_err(tool_error)?;
        let tasks = self.tasks.list(status).await.map_err(tool_error)?;
        let listed: Vec<Value> = tasks
            .iter()
            .take(MOST)
            .map(|task| {
                json!({
                    "task_id": task.id,
                    "prompt": task.prompt.chars().take(SHOWN).collect::<String>(),
                    "schedule_type": task.schedule.spec.kind().as_str(),
                    "schedule_value": task.schedule.spec.value(),
                    "timezone": task.schedule.zone.name(),
                    "status": task.status.as_str(),
                    "next_run": task.next_run.map(|at| at.to_string()),
                })
            })
            .collect();
        Ok(json!({ "total": tasks.len(), "tasks": listed }).to_string())
    }
}
