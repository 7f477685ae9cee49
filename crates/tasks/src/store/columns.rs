//! Tasks as columns, the same in every database. Knows no SQL.

use std::borrow::Cow;
use std::time::Duration;

use hob_core::{Permit, Reach};
use hob_db::UnreadableColumn;
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::claim_plan::RunCause;
use crate::missed_runs::Missed;
use crate::schedule::{Schedule, ScheduleSpec, ScheduleType, parse_zone};
use crate::task::{DeliverTo, RunOutcome, Task, TaskLimits};
use crate::types::{TaskId, TaskStatus};

/// The columns of [`TaskColumns`], in their order.
pub(super) const TASK_COLUMNS: &str = "id, prompt, schedule_type, schedule_value, timezone, agent, tools, permit, channel, \
    conversation, retries, timeout_us, missed, metadata, status, next_run, last_run, created_at, model, first_calls";

pub(super) const RUN_COLUMNS: &str =
    "id, task_id, slot, attempt, started_at, finished_at, outcome, result, error";

/// A task as it is stored. Times are microseconds.
pub(super) struct TaskColumns {
    pub(super) id: String,
    pub(super) prompt: String,
    pub(super) schedule_type: String,
    pub(super) schedule_value: String,
    pub(super) timezone: String,
    pub(super) agent: String,
    pub(super) tools: Option<String>,
    pub(super) permit: String,
    pub(super) channel: Option<String>,
    pub(super) conversation: Option<String>,
    pub(super) retries: i64,
    pub(super) timeout_us: i64,
    pub(super) missed: String,
    pub(super) metadata: String,
    pub(super) status: String,
    pub(super) next_run: Option<i64>,
    pub(super) last_run: Option<i64>,
    pub(super) created_at: i64,
    pub(super) model: Option<String>,
    pub(super) first_calls: Option<String>,
}

impl TaskColumns {
    pub(super) fn of(task: &Task) -> Self {
        TaskColumns {
            id: task.id.to_string(),
            prompt: task.prompt.clone(),
            schedule_type: task.schedule.spec.kind().as_str().to_owned(),
            schedule_value: task.schedule.spec.value().to_owned(),
            timezone: task.schedule.zone.name().to_owned(),
            agent: task.agent.clone(),
            tools: task.tools.as_ref().map(|tools| json!(tools).to_string()),
            permit: write_permit(&task.permit),
            channel: task.deliver_to.as_ref().map(|to| to.channel.clone()),
            conversation: task.deliver_to.as_ref().and_then(|to| to.conversation.clone()),
            retries: task.limits.retries.into(),
            timeout_us: hob_core::time::microseconds(task.limits.timeout),
            missed: task.missed.as_str().to_owned(),
            metadata: json!(task.metadata).to_string(),
            status: task.status.as_str().to_owned(),
            next_run: task.next_run.map(Timestamp::as_microsecond),
            last_run: task.last_run.map(Timestamp::as_microsecond),
            created_at: task.created_at.as_microsecond(),
            model: task.model.clone(),
            first_calls: (!task.first_calls.is_empty()).then(|| json!(task.first_calls).to_string()),
        }
    }

    pub(super) fn read(self) -> Result<Task, UnreadableColumn> {
        let zone = parse_zone(&self.timezone).map_err(|error| UnreadableColumn::new("timezone", error))?;
        let kind = ScheduleType::parse(&self.schedule_type)
            .map_err(|error| UnreadableColumn::new("schedule_type", error))?;
        let spec = ScheduleSpec::parse(kind, &self.schedule_value, &zone)
            .map_err(|error| UnreadableColumn::new("schedule_value", error))?;
        let created_at = moment("created_at", self.created_at)?;
        let conversation = self.conversation;
        Ok(Task {
            id: task_id("id", &self.id)?,
            prompt: self.prompt,
            schedule: Schedule { spec, zone, anchor: created_at },
            agent: self.agent,
            model: self.model,
            tools: self.tools.map(|tools| from_json("tools", &tools)).transpose()?,
            first_calls: self
                .first_calls
                .map(|calls| from_json("first_calls", &calls))
                .transpose()?
                .unwrap_or_default(),
            permit: read_permit(&self.permit)?,
            deliver_to: self.channel.map(|channel| DeliverTo { channel, conversation }),
            limits: TaskLimits {
                retries: number("retries", self.retries)?,
                timeout: Duration::from_micros(self.timeout_us.unsigned_abs()),
            },
            missed: Missed::parse(&self.missed).map_err(|error| UnreadableColumn::new("missed", error))?,
            metadata: from_json("metadata", &self.metadata)?,
            status: TaskStatus::parse(&self.status)
                .map_err(|error| UnreadableColumn::new("status", error))?,
            next_run: optional_moment("next_run", self.next_run)?,
            last_run: optional_moment("last_run", self.last_run)?,
            created_at,
        })
    }
}

pub(super) fn task_id(column: &'static str, id: &str) -> Result<TaskId, UnreadableColumn> {
    TaskId::parse(id).map_err(|error| UnreadableColumn::new(column, error))
}

pub(super) fn moment(column: &'static str, microseconds: i64) -> Result<Timestamp, UnreadableColumn> {
    Timestamp::from_microsecond(microseconds).map_err(|error| UnreadableColumn::new(column, error))
}

pub(super) fn optional_moment(
    column: &'static str,
    microseconds: Option<i64>,
) -> Result<Option<Timestamp>, UnreadableColumn> {
    microseconds.map(|microseconds| moment(column, microseconds)).transpose()
}

pub(super) fn number(column: &'static str, value: i64) -> Result<u32, UnreadableColumn> {
    u32::try_from(value).map_err(|error| UnreadableColumn::new(column, error))
}

/// Only scheduled runs are retried, so an unknown value counts as manual.
pub(super) fn run_cause(word: &str) -> RunCause {
    RunCause::ALL.into_iter().find(|cause| cause.as_str() == word).unwrap_or(RunCause::Manual)
}

pub(super) fn run_outcome(word: Option<&str>) -> Option<RunOutcome> {
    word.and_then(RunOutcome::parse)
}

fn from_json<T: serde::de::DeserializeOwned>(
    column: &'static str,
    text: &str,
) -> Result<T, UnreadableColumn> {
    serde_json::from_str(text).map_err(|error| UnreadableColumn::new(column, error))
}

/// The text that the permit of a task has if the task belongs to a key, or to none. In names and rules, quotes are escaped.
pub(super) fn permit_of_key(key: Option<&str>) -> String {
    format!("\"key\":{}", json!(key))
}

fn write_permit(permit: &Permit) -> String {
    // The collections are those of the key at each run, and the zone is that of the task.
    let Permit { most, also, only, except, tainted, key, rule, memory: _, zone: _ } = permit;
    json!({
        "most": most.as_str(), "also": also, "only": only, "except": except, "tainted": tainted, "key": key, "rule": rule,
    })
    .to_string()
}

/// A permit that cannot be read permits nothing, so it is an error.
fn read_permit(text: &str) -> Result<Permit, UnreadableColumn> {
    let permit: Value = from_json("permit", text)?;
    let most = permit["most"].as_str().and_then(Reach::parse);
    let most = most.ok_or_else(|| UnreadableColumn::new("permit", "no reach"))?;
    let names = |value: &Value| -> Result<Vec<String>, UnreadableColumn> {
        serde_json::from_value(value.clone()).map_err(|error| UnreadableColumn::new("permit", error))
    };
    let only = match &permit["only"] {
        Value::Null => None,
        only => Some(names(only)?),
    };
    let except: Cow<'static, [Cow<'static, str>]> = match &permit["except"] {
        // Tasks of earlier versions have none.
        Value::Null => Cow::default(),
        except => names(except)?.into_iter().map(Cow::Owned).collect(),
    };
    let tainted = permit["tainted"].as_bool().unwrap_or(false);
    let key = permit["key"].as_str().map(Into::into);
    let rule = permit["rule"].as_str().map(Into::into);
    Ok(Permit { also: names(&permit["also"])?, only, except, tainted, key, rule, ..Permit::up_to(most) })
}
