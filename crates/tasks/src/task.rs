//! A task and its runs.

use std::time::Duration;

use hob_core::{FirstCalls, Permit, Reach, Zone};
use jiff::{Timestamp, Unit};
use serde::ser::SerializeMap;
use serde::{Serialize, Serializer};
use serde_json::{Map, Value};

use crate::first_call::{self, FirstCall};
use crate::missed_runs::Missed;
use crate::schedule::{Schedule, ScheduleType};
use crate::schedule_text::shown_schedule;
use crate::types::{TaskError, TaskField, TaskId, TaskStatus};

const LONGEST_PROMPT: usize = 256 * 1024;
const MOST_TOOLS: usize = 64;
const LONGEST_NAME: usize = 128;
const LONGEST_MODEL: usize = 1024;
const LARGEST_METADATA: usize = 16 * 1024;
const MOST_RETRIES: u32 = 10;
const LONGEST_TIMEOUT: Duration = Duration::from_secs(86_400);

/// The agent of tasks that name none, without tools and with tools.
const PLAIN_AGENT: &str = "simple";
const AGENT_WITH_TOOLS: &str = "orchestrator";

/// The key of the metadata that has the name of a task.
const NAME: &str = "name";

/// The key of the metadata that says whether a result begins with the results of the calls before the prompt.
const SHOW_RESULTS: &str = "show_results";

/// The target of a result, besides the log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeliverTo {
    pub channel: String,
    pub conversation: Option<String>,
}

/// Retries and timeout of a task.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TaskLimits {
    /// The number of retries of a failed or interrupted run.
    pub retries: u32,
    /// The time limit of one attempt.
    pub timeout: Duration,
}

impl Default for TaskLimits {
    fn default() -> Self {
        TaskLimits { retries: 0, timeout: Duration::from_secs(600) }
    }
}

/// A task to create.
#[derive(Debug, Clone, PartialEq)]
pub struct NewTask {
    pub prompt: String,
    pub schedule_type: ScheduleType,
    pub schedule_value: String,
    /// The zone of the schedule. `None`: the default of the service, or UTC without a service.
    pub timezone: Option<Zone>,
    /// The name of an agent.
    pub agent: String,
    /// The model that answers; `None` for the default.
    pub model: Option<String>,
    /// The tools that its runs may use; `None` for those that change nothing.
    pub tools: Option<Vec<String>>,
    /// The calls before the prompt.
    pub first_calls: Vec<FirstCall>,
    pub deliver_to: Option<DeliverTo>,
    pub limits: TaskLimits,
    pub missed: Missed,
    pub metadata: Map<String, Value>,
    /// What the caller may use, which limits the runs of the task.
    pub permit: Permit,
}

impl NewTask {
    /// A task with default values.
    pub fn new(
        prompt: impl Into<String>,
        schedule_type: ScheduleType,
        schedule_value: impl Into<String>,
        permit: Permit,
    ) -> Self {
        NewTask {
            prompt: prompt.into(),
            schedule_type,
            schedule_value: schedule_value.into(),
            timezone: None,
            agent: PLAIN_AGENT.to_owned(),
            model: None,
            tools: None,
            first_calls: Vec::new(),
            deliver_to: None,
            limits: TaskLimits::default(),
            missed: Missed::default(),
            metadata: Map::new(),
            permit,
        }
    }

    /// The same with a name, by which the command line finds it.
    pub fn named(mut self, name: &str) -> Self {
        self.metadata.insert(NAME.to_owned(), name.into());
        self
    }

    /// The same, whose results begin with those of the calls before the prompt, as lists. The model adds a short text.
    pub fn showing_results(mut self) -> Self {
        self.metadata.insert(SHOW_RESULTS.to_owned(), true.into());
        self
    }

    /// The agent of a task: the named one, or one that calls the selected tools, if there are any.
    pub fn agent_for(named: Option<String>, tools: Option<&[String]>) -> String {
        let usual = if tools.is_some_and(|tools| !tools.is_empty()) { AGENT_WITH_TOOLS } else { PLAIN_AGENT };
        named.unwrap_or_else(|| usual.to_owned())
    }

    /// Checks the values, and creates the task.
    pub fn plan(self, id: TaskId, now: Timestamp) -> Result<Task, TaskError> {
        self.check()?;
        // The stored precision.
        let now = now.round(Unit::Microsecond).unwrap_or(now);
        let zone = self.timezone.unwrap_or(Zone::UTC);
        let schedule = Schedule::from_now(self.schedule_type, &self.schedule_value, zone, now)?;
        let next_run = schedule.next_run(now);
        Ok(Task {
            id,
            prompt: self.prompt,
            schedule,
            agent: self.agent,
            model: self.model,
            tools: self.tools,
            first_calls: self.first_calls,
            deliver_to: self.deliver_to,
            limits: self.limits,
            missed: self.missed,
            metadata: self.metadata,
            permit: self.permit,
            status: TaskStatus::Active,
            next_run,
            last_run: None,
            created_at: now,
        })
    }

    fn check(&self) -> Result<(), TaskError> {
        let refuse = |field, reason: &str| Err(TaskError::invalid(field, reason));
        if self.prompt.trim().is_empty() {
            return refuse(TaskField::Prompt, "the prompt is empty");
        }
        if self.prompt.len() > LONGEST_PROMPT {
            return refuse(TaskField::Prompt, "the prompt is longer than 256 KiB");
        }
        let is_name = |name: &str| !name.trim().is_empty() && name.len() <= LONGEST_NAME;
        if !is_name(&self.agent) {
            return refuse(TaskField::Agent, "the name of the agent is not valid");
        }
        if self.model.as_ref().is_some_and(|model| model.trim().is_empty() || model.len() > LONGEST_MODEL) {
            return refuse(TaskField::Model, "the name of the model is not valid");
        }
        if let Some(tools) = &self.tools
            && (tools.len() > MOST_TOOLS || !tools.iter().all(|tool| is_name(tool)))
        {
            return refuse(TaskField::Tools, "at most 64 tools, each with a name of at most 128 letters");
        }
        first_call::check(&self.first_calls)?;
        if let Some(DeliverTo { channel, conversation }) = &self.deliver_to
            && (!is_name(channel) || conversation.as_ref().is_some_and(|name| name.len() > 1024))
        {
            return refuse(TaskField::Channel, "the name of the channel is not valid");
        }
        if self.limits.retries > MOST_RETRIES {
            return refuse(TaskField::Retries, "at most 10 retries");
        }
        if self.limits.timeout < Duration::from_secs(1) || self.limits.timeout > LONGEST_TIMEOUT {
            return refuse(TaskField::Timeout, "a run may take between 1 and 86400 seconds");
        }
        let metadata = serde_json::to_string(&self.metadata).map_or(usize::MAX, |text| text.len());
        if metadata > LARGEST_METADATA {
            return refuse(TaskField::Metadata, "the metadata is larger than 16 KiB");
        }
        Ok(())
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct Task {
    pub id: TaskId,
    pub prompt: String,
    pub schedule: Schedule,
    pub agent: String,
    pub model: Option<String>,
    pub tools: Option<Vec<String>>,
    pub first_calls: Vec<FirstCall>,
    pub deliver_to: Option<DeliverTo>,
    pub limits: TaskLimits,
    pub missed: Missed,
    pub metadata: Map<String, Value>,
    pub permit: Permit,
    pub status: TaskStatus,
    /// The next slot.
    pub next_run: Option<Timestamp>,
    /// The last start.
    pub last_run: Option<Timestamp>,
    pub created_at: Timestamp,
}

impl Task {
    /// The name that its creator gave it, if any.
    pub fn name(&self) -> Option<&str> {
        self.metadata.get(NAME).and_then(Value::as_str)
    }

    /// Whether the result of a run begins with the results of the calls before the prompt.
    pub fn shows_results(&self) -> bool {
        let is_wanted = self.metadata.get(SHOW_RESULTS).and_then(Value::as_bool).unwrap_or(false);
        is_wanted && !self.first_calls.is_empty()
    }

    /// What its runs may use: the selected tools, limited to the permit of the caller who created the task. Without a selection,
    /// only tools that change nothing, because runs are not supervised.
    pub fn run_permit(&self) -> Permit {
        let permit = self.permit.clone();
        match &self.tools {
            None => Permit { most: permit.most.min(Reach::Read), also: Vec::new(), ..permit },
            Some(chosen) => {
                let may = |tool: &&String| permit.only.as_ref().is_none_or(|only| only.contains(tool));
                Permit { only: Some(chosen.iter().filter(may).cloned().collect()), ..permit }
            }
        }
    }

    /// The calls before its prompt, which may use what the caller who created the task may use; `None` if there are none.
    pub(crate) fn first_calls_of_run(&self) -> Option<FirstCalls> {
        if self.first_calls.is_empty() {
            return None;
        }
        let calls = (1..).zip(&self.first_calls).map(|(number, call)| call.to_tool_call(number)).collect();
        Some(FirstCalls { calls, permit: self.permit.clone(), results: None })
    }
}

/// How a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RunOutcome {
    Succeeded,
    Failed,
    /// Its process ended.
    Interrupted,
    /// Its task was cancelled.
    Cancelled,
}

hob_core::named_variants! {
    RunOutcome {
        Succeeded => "succeeded",
        Failed => "failed",
        Interrupted => "interrupted",
        Cancelled => "cancelled",
    }
}

/// Why a run that succeeded is not delivered.
pub(crate) const NOTHING_NEW: &str = "not delivered: no watched page has changed";

/// One attempt at one slot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskRun {
    pub id: i64,
    pub task_id: TaskId,
    /// When it was due.
    pub slot: Timestamp,
    /// The first is 1.
    pub attempt: u32,
    pub started_at: Timestamp,
    pub finished_at: Option<Timestamp>,
    /// `None` while it runs.
    pub outcome: Option<RunOutcome>,
    pub result: Option<String>,
    pub error: Option<String>,
}

impl TaskRun {
    /// Whether its result went to the channel of its task, if it has one. A run succeeds only if it did, or had no news.
    pub fn is_delivered(&self) -> bool {
        self.outcome == Some(RunOutcome::Succeeded) && self.error.as_deref() != Some(NOTHING_NEW)
    }
}

impl Serialize for Task {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("prompt", &self.prompt)?;
        map.serialize_entry("schedule_type", self.schedule.spec.kind().as_str())?;
        map.serialize_entry("schedule_value", self.schedule.spec.value())?;
        map.serialize_entry("schedule", &shown_schedule(&self.schedule.spec))?;
        map.serialize_entry("timezone", self.schedule.zone.name())?;
        map.serialize_entry("agent", &self.agent)?;
        map.serialize_entry("model", &self.model)?;
        map.serialize_entry("tools", &self.tools)?;
        map.serialize_entry("first_calls", &self.first_calls)?;
        map.serialize_entry("channel", &self.deliver_to.as_ref().map(|to| &to.channel))?;
        map.serialize_entry("conversation_id", &self.deliver_to.as_ref().map(|to| &to.conversation))?;
        map.serialize_entry("retries", &self.limits.retries)?;
        map.serialize_entry("timeout", &self.limits.timeout.as_secs_f64())?;
        map.serialize_entry("missed", self.missed.as_str())?;
        map.serialize_entry("key", &self.permit.key)?;
        map.serialize_entry("status", self.status.as_str())?;
        map.serialize_entry("next_run", &self.next_run.map(|at| at.to_string()))?;
        map.serialize_entry("last_run", &self.last_run.map(|at| at.to_string()))?;
        map.serialize_entry("created_at", &self.created_at.to_string())?;
        map.serialize_entry("metadata", &self.metadata)?;
        map.end()
    }
}

impl Serialize for TaskRun {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("id", &self.id)?;
        map.serialize_entry("task_id", &self.task_id)?;
        map.serialize_entry("slot", &self.slot.to_string())?;
        map.serialize_entry("attempt", &self.attempt)?;
        map.serialize_entry("started_at", &self.started_at.to_string())?;
        map.serialize_entry("finished_at", &self.finished_at.map(|at| at.to_string()))?;
        map.serialize_entry("success", &self.outcome.map(|outcome| outcome == RunOutcome::Succeeded))?;
        map.serialize_entry("outcome", self.outcome.map_or("running", RunOutcome::as_str))?;
        map.serialize_entry("result", &self.result)?;
        map.serialize_entry("error", &self.error)?;
        map.end()
    }
}

#[cfg(test)]
#[path = "task_tests.rs"]
mod tests;
