//! `schedule_task`: schedules a prompt, once or repeatedly.

use std::sync::LazyLock;

use async_trait::async_trait;
use hob_core::{Effect, Permit, Reach, Tool, ToolError, ToolSpec, object_schema, tool_arguments};
use serde::Deserialize;
use serde_json::{Value, json};

use super::tool_error;
use crate::plain_schedule::PlainSchedule;
use crate::schedule::parse_zone;
use crate::service::TaskService;
use crate::task::NewTask;

pub struct ScheduleTask {
    tasks: TaskService,
}

impl ScheduleTask {
    pub fn new(tasks: TaskService) -> Self {
        ScheduleTask { tasks }
    }
}

#[derive(Deserialize)]
struct Arguments {
    prompt: String,
    schedule_type: String,
    schedule_value: String,
    timezone: Option<String>,
    agent: Option<String>,
    tools: Option<Vec<String>>,
}

static SPEC: LazyLock<ToolSpec> = LazyLock::new(|| ToolSpec {
    effect: Effect::Persists,
    ..ToolSpec::new(
        "schedule_task",
        "Schedules a prompt by every 'weekdays 07:00', cron, interval in seconds, or once '2027-01-31T09:00'. It runs later \
                      without this conversation, so it must contain everything that is needed.",
        Reach::Act,
        object_schema(
            json!({
                "prompt": { "type": "string", "description": "What to do, with all details" },
                "schedule_type": { "type": "string", "enum": ["every", "cron", "interval", "once"] },
                "schedule_value": {
                    "type": "string",
                    "description": "every: words such as 'weekdays 07:00', 'every 15 minutes' or 'first monday 09:00'; cron: an expression such as '0 9 * * MON-FRI'; interval: seconds such as '3600'; once: a date such as '2027-01-31T09:00'"
                },
                "timezone": { "type": ["string", "null"], "description": "IANA name such as Europe/Berlin" },
                "agent": { "type": ["string", "null"], "description": "simple, orchestrator, react or codeact; with tools orchestrator by default, else simple" },
                "tools": {
                    "type": ["array", "null"], "items": { "type": "string" }, "description": "Tools that it may use; by default those that change nothing"
                }
            }),
            &["prompt", "schedule_type", "schedule_value"],
        ),
    )
});

#[async_trait]
impl Tool for ScheduleTask {
    fn spec(&self) -> &ToolSpec {
        &SPEC
    }

    fn rare_arguments(&self) -> &[&str] {
        &["agent"]
    }

    /// Without a known caller, the task may use pure tools only.
    async fn call(&self, arguments: Value) -> Result<String, ToolError> {
        self.call_for(arguments, &Permit::up_to(Reach::Pure)).await
    }

    /// The task may use at most what its creator may use.
    async fn call_for(&self, arguments: Value, permit: &Permit) -> Result<String, ToolError> {
        let asked: Arguments = tool_arguments::read(arguments)?;
        let schedule = PlainSchedule::read(&asked.schedule_type, asked.schedule_value);
        let PlainSchedule { kind, value } = schedule.map_err(tool_error)?;
        let usual = NewTask::new(asked.prompt, kind, value, permit.clone());
        let task = NewTask {
            timezone: asked.timezone.as_deref().map(parse_zone).transpose().map_err(tool_error)?,
            agent: NewTask::agent_for(asked.agent, asked.tools.as_deref()),
            tools: asked.tools,
            ..usual
        };
        let task = self.tasks.create(task).await.map_err(tool_error)?;
        let next_run = task.next_run.map(|at| at.to_string());
        Ok(json!({ "task_id": task.id, "next_run": next_run, "status": task.status.as_str() }).to_string())
    }
}
