//! `/v1/tasks`: prompts that run at set times. The owner sees all of them. A member sees its own, which have the rights of its key.
//! A change counts as a request of its key, because each adds an entry to the audit log.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{Extensions, StatusCode};
use hob_core::{CallerRole, Permit, RunEvents};
use hob_keys::AuditActor;
use hob_tasks::{
    DeliverTo, FirstCall, Missed, NewTask, PlainSchedule, Scheduler, Task, TaskChange, TaskError, TaskField,
    TaskId, TaskLimits, TaskRun, TaskStatus, parse_zone,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use super::audit;
use super::key_request::begin_request;
use crate::content_type::require_json;
use crate::error::{ApiError, ApiResult};
use crate::json::{check_model_name, read};
use crate::limits::read_body::read_json;
use crate::pages::changes::{Audience, Topic};
use crate::request_context::RequestContext;
use crate::state::{ServerState, SharedState};
use crate::whole_number::WholeNumber;

const PATH: &str = "/v1/tasks";

/// The number of runs without `limit`.
const DEFAULT_LOGS: usize = 20;

/// Next runs that are shown.
const SHOWN_RUNS: usize = 5;

/// The id in the path.
type Id = Result<Path<String>, PathRejection>;

/// A task before it is checked.
#[derive(Deserialize)]
struct TaskBody {
    prompt: String,
    schedule_type: String,
    schedule_value: ScheduleValue,
    timezone: Option<String>,
    agent: Option<String>,
    model: Option<String>,
    tools: Option<Vec<String>>,
    first_calls: Option<Vec<FirstCall>>,
    channel: Option<String>,
    conversation_id: Option<String>,
    retries: Option<WholeNumber>,
    timeout: Option<f64>,
    missed: Option<String>,
    key: Option<String>,
    #[serde(default)]
    metadata: Map<String, Value>,
}

/// Some clients write seconds as a number.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a string")]
enum ScheduleValue {
    Text(String),
    Number(Number),
}

#[derive(Deserialize)]
pub(crate) struct TaskFilter {
    status: Option<String>,
}

#[derive(Deserialize)]
pub(crate) struct LogsQuery {
    limit: Option<usize>,
}

/// A schedule of a task that does not exist yet.
#[derive(Deserialize)]
struct PreviewBody {
    schedule_type: String,
    schedule_value: ScheduleValue,
    timezone: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct TaskList {
    tasks: Vec<Task>,
    /// What a new task may name.
    agents: Vec<String>,
    /// The zone of a new task that names none.
    timezone: String,
    /// Whether the caller may send results to channels.
    may_deliver: bool,
}

/// A task with its next runs.
#[derive(Serialize)]
pub(crate) struct ShownTask {
    #[serde(flatten)]
    task: Task,
    upcoming: Vec<String>,
}

#[derive(Serialize)]
pub(crate) struct TaskPreview {
    timezone: String,
    runs: Vec<String>,
}

/// A run, and where its answer went besides the log.
#[derive(Serialize)]
struct LoggedRun {
    #[serde(flatten)]
    run: TaskRun,
    delivered_to: Option<String>,
}

#[derive(Serialize)]
pub(crate) struct TaskLogs {
    logs: Vec<LoggedRun>,
}

#[derive(Serialize)]
pub(crate) struct DeletedTask {
    id: TaskId,
    deleted: bool,
}

pub(crate) async fn list(
    State(state): SharedState,
    filter: Result<Query<TaskFilter>, QueryRejection>,
    request: Request,
) -> ApiResult<Json<TaskList>> {
    let caller = TaskCaller::of(&state, request.extensions())?;
    let Query(TaskFilter { status }) = filter.map_err(unreadable)?;
    let status = status.as_deref().map(TaskStatus::parse).transpose()?;
    let mut tasks = caller.scheduler.tasks().list(status).await?;
    tasks.retain(|task| caller.owns(task));
    let (agents, zone) = caller.scheduler.tasks().choices();
    let timezone = zone.name().to_owned();
    Ok(Json(TaskList { tasks, agents, timezone, may_deliver: caller.is_owner }))
}

/// The next runs of a schedule. Creates nothing.
pub(crate) async fn preview(State(state): SharedState, request: Request) -> ApiResult<Json<TaskPreview>> {
    let caller = TaskCaller::of(&state, request.extensions())?;
    let body = read_json(request, &state.body_reader).await?;
    let PreviewBody { schedule_type, schedule_value, timezone } = read(&body)?;
    let PlainSchedule { kind, value } = PlainSchedule::read(&schedule_type, schedule_value.into_text())?;
    let zone = timezone.as_deref().map(parse_zone).transpose()?;
    let tasks = caller.scheduler.tasks();
    let timezone = zone.as_ref().unwrap_or(tasks.choices().1).name().to_owned();
    let runs = tasks.preview(kind, &value, zone, SHOWN_RUNS)?;
    // With the offset of the zone.
    let runs = runs.iter().map(|at| at.strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()).collect();
    Ok(Json(TaskPreview { timezone, runs }))
}

pub(crate) async fn create(
    State(state): SharedState,
    request: Request,
) -> ApiResult<(StatusCode, Json<Task>)> {
    let caller = TaskCaller::of(&state, request.extensions())?;
    let actor = RequestContext::actor(request.extensions());
    let rights = RequestContext::rights(request.extensions());
    let body = read_json(request, &state.body_reader).await?;
    let task = parse(&body, caller.permit.clone())?;
    caller.check_delivery(&task)?;
    if let Some(model) = &task.model {
        check_model_name(model)?;
        if !rights.may_use_model(model) {
            let message =
                format!("this key may not use the model '{model}'. GET /v1/models lists its models");
            return Err(ApiError::model_not_allowed(message));
        }
    }
    caller.check_key(&task, &state)?;
    // Checked now, because the task runs when no one is watching.
    let selection = Permit { only: task.tools.clone(), ..caller.permit.clone() };
    if let Err(unknown) = state.system.tools().for_run(selection, RunEvents::without_subscribers()) {
        return Err(ApiError::invalid("tools", unknown.to_string()));
    }
    let first = task.first_calls.iter().map(|call| call.tool.clone()).collect();
    let selection = Permit { only: Some(first), ..caller.permit.clone() };
    if let Err(unknown) = state.system.tools().for_run(selection, RunEvents::without_subscribers()) {
        return Err(ApiError::invalid("first_calls", unknown.to_string()));
    }
    let _running = begin_request(rights.key.as_ref()).await?;
    let task = caller.scheduler.tasks().create(task).await?;
    note(&state, actor, "task.create", &task).await;
    Ok((StatusCode::CREATED, Json(task)))
}

pub(crate) async fn show(State(state): SharedState, id: Id, request: Request) -> ApiResult<Json<ShownTask>> {
    let caller = TaskCaller::of(&state, request.extensions())?;
    let task = caller.task(&read_id(id)?).await?;
    // The first may be past, if it waits for its turn.
    let later = task
        .next_run
        .into_iter()
        .flat_map(|first| std::iter::once(first).chain(task.schedule.upcoming(first)).take(SHOWN_RUNS));
    let upcoming = later.map(|at| at.to_string()).collect();
    Ok(Json(ShownTask { task, upcoming }))
}

pub(crate) async fn delete(
    State(state): SharedState,
    id: Id,
    request: Request,
) -> ApiResult<Json<DeletedTask>> {
    let caller = TaskCaller::of(&state, request.extensions())?;
    let actor = RequestContext::actor(request.extensions());
    let key = RequestContext::rights(request.extensions()).key;
    let task = caller.task(&read_id(id)?).await?;
    let _running = begin_request(key.as_ref()).await?;
    caller.scheduler.tasks().delete(&task.id).await?;
    note(&state, actor, "task.delete", &task).await;
    Ok(Json(DeletedTask { id: task.id, deleted: true }))
}

pub(crate) async fn pause(state: SharedState, id: Id, request: Request) -> ApiResult<Json<Task>> {
    change(&state, request, id, (TaskChange::Pause, "task.pause")).await
}

pub(crate) async fn resume(state: SharedState, id: Id, request: Request) -> ApiResult<Json<Task>> {
    change(&state, request, id, (TaskChange::Resume, "task.resume")).await
}

pub(crate) async fn cancel(state: SharedState, id: Id, request: Request) -> ApiResult<Json<Task>> {
    change(&state, request, id, (TaskChange::Cancel, "task.cancel")).await
}

async fn change(
    state: &ServerState,
    request: Request,
    id: Id,
    (change, action): (TaskChange, &'static str),
) -> ApiResult<Json<Task>> {
    let caller = TaskCaller::for_change(state, &request)?;
    let actor = RequestContext::actor(request.extensions());
    let key = RequestContext::rights(request.extensions()).key;
    drop(request);
    let id = caller.task(&read_id(id)?).await?.id;
    let _running = begin_request(key.as_ref()).await?;
    let task = caller.scheduler.tasks().change(&id, change).await?;
    note(state, actor, action, &task).await;
    Ok(Json(task))
}

/// Notes a change in the audit log, and tells the open pages.
async fn note(state: &ServerState, actor: AuditActor, action: &'static str, task: &Task) {
    audit::note(state, actor, action, task.id.to_string()).await;
    state.changes.publish(Topic::Tasks, &Audience::of_key(task.permit.key.as_ref()));
}

/// Starts a run. Its result is in the logs.
pub(crate) async fn run(
    State(state): SharedState,
    id: Id,
    request: Request,
) -> ApiResult<(StatusCode, Json<TaskRun>)> {
    let caller = TaskCaller::for_change(&state, &request)?;
    let id = caller.task(&read_id(id)?).await?.id;
    let run = caller.scheduler.run_now(&id).await?;
    Ok((StatusCode::ACCEPTED, Json(run)))
}

pub(crate) async fn logs(
    State(state): SharedState,
    id: Id,
    length: Result<Query<LogsQuery>, QueryRejection>,
    request: Request,
) -> ApiResult<Json<TaskLogs>> {
    let caller = TaskCaller::of(&state, request.extensions())?;
    let Query(LogsQuery { limit }) = length.map_err(unreadable)?;
    let task = caller.task(&read_id(id)?).await?;
    let runs = caller.scheduler.tasks().runs(&task.id, limit.unwrap_or(DEFAULT_LOGS)).await?;
    let target = |run: &TaskRun| {
        let to = task.deliver_to.as_ref().filter(|_| run.is_delivered())?;
        Some(match &to.conversation {
            Some(conversation) => format!("{} {conversation}", to.channel),
            None => to.channel.clone(),
        })
    };
    let logs = runs.into_iter().map(|run| LoggedRun { delivered_to: target(&run), run }).collect();
    Ok(Json(TaskLogs { logs }))
}

/// A caller who may have tasks, and the scheduler.
struct TaskCaller<'a> {
    scheduler: &'a Arc<Scheduler>,
    /// What its tasks may use.
    permit: Permit,
    is_owner: bool,
}

impl ScheduleValue {
    fn into_text(self) -> String {
        match self {
            ScheduleValue::Text(text) => text,
            ScheduleValue::Number(number) => number.to_string(),
        }
    }
}

impl<'a> TaskCaller<'a> {
    fn of(state: &'a ServerState, extensions: &Extensions) -> ApiResult<Self> {
        let role = RequestContext::role(extensions);
        if !matches!(role, CallerRole::Owner | CallerRole::Member) {
            return Err(ApiError::owner_only(PATH));
        }
        let scheduler = state.scheduler.as_ref().ok_or_else(ApiError::no_tasks)?;
        let permit = RequestContext::permit(extensions);
        Ok(TaskCaller { scheduler, permit, is_owner: role == CallerRole::Owner })
    }

    /// The same for a change that has no body.
    fn for_change(state: &'a ServerState, request: &Request) -> ApiResult<Self> {
        let caller = TaskCaller::of(state, request.extensions())?;
        require_json(request.headers())?;
        Ok(caller)
    }

    /// Whether the caller may see a task.
    fn owns(&self, task: &Task) -> bool {
        self.is_owner || task.permit.key == self.permit.key
    }

    /// A task that the caller may see. To others it does not exist.
    async fn task(&self, id: &TaskId) -> ApiResult<Task> {
        let task = self.scheduler.tasks().get(id).await?;
        match self.owns(&task) {
            true => Ok(task),
            false => Err(TaskError::NotFound { id: id.to_string() }.into()),
        }
    }

    /// The refusal of what only the owner may do.
    fn refused(&self, what: &str) -> ApiError {
        match self.permit.key.as_deref() {
            Some(key) => ApiError::not_for_members(key, what),
            None => ApiError::owner_only(what),
        }
    }

    /// The channels are the owner's.
    fn check_delivery(&self, task: &NewTask) -> ApiResult<()> {
        match &task.deliver_to {
            Some(_) if !self.is_owner => Err(self.refused("Sending results to a channel")),
            _ => Ok(()),
        }
    }

    /// The owner may let any valid key pay; a member pays itself.
    fn check_key(&self, task: &NewTask, state: &ServerState) -> ApiResult<()> {
        let Some(name) = task.permit.key.as_deref() else { return Ok(()) };
        if self.permit.key.as_deref() == Some(name) {
            return Ok(());
        }
        if !self.is_owner {
            return Err(self.refused("Naming another key"));
        }
        match state.keys.as_ref().and_then(|keys| keys.valid(name)) {
            Some(_) => Ok(()),
            None => {
                let shown: String = name.chars().take(60).collect();
                let reason =
                    format!("there is no valid key '{shown}'. 'hob key list' and GET /v1/keys show the keys");
                Err(ApiError::invalid("key", reason))
            }
        }
    }
}

fn read_id(id: Id) -> ApiResult<TaskId> {
    let Path(id) = id.map_err(|_| ApiError::malformed("the task's id in the path is not valid UTF-8"))?;
    Ok(TaskId::parse(&id)?)
}

fn unreadable(rejection: QueryRejection) -> ApiError {
    ApiError::malformed(format!("the query string cannot be read: {}", rejection.body_text()))
}

fn parse(body: &[u8], permit: Permit) -> ApiResult<NewTask> {
    let typed: TaskBody = read(body)?;
    let schedule = PlainSchedule::read(&typed.schedule_type, typed.schedule_value.into_text())?;
    let PlainSchedule { kind, value } = schedule;
    let permit = match typed.key {
        // Another key than the caller's own is a named one, which has no rule.
        Some(key) if permit.key.as_deref() != Some(key.as_str()) => {
            Permit { key: Some(key.into()), rule: None, ..permit }
        }
        Some(_) | None => permit,
    };
    let usual = NewTask::new(typed.prompt, kind, value, permit);
    Ok(NewTask {
        timezone: typed.timezone.as_deref().map(parse_zone).transpose()?,
        agent: NewTask::agent_for(typed.agent, typed.tools.as_deref()),
        model: typed.model,
        tools: typed.tools,
        first_calls: typed.first_calls.unwrap_or_default(),
        deliver_to: deliver_to(typed.channel, typed.conversation_id)?,
        limits: TaskLimits {
            // A number that is out of range stays out of range, and is refused later.
            retries: typed.retries.map_or(usual.limits.retries, |WholeNumber(retries)| {
                u32::try_from(retries).unwrap_or(u32::MAX)
            }),
            timeout: typed.timeout.map_or(usual.limits.timeout, seconds),
        },
        missed: typed.missed.as_deref().map_or(Ok(Missed::default()), Missed::parse)?,
        metadata: typed.metadata,
        ..usual
    })
}

fn deliver_to(channel: Option<String>, conversation: Option<String>) -> Result<Option<DeliverTo>, TaskError> {
    match (channel, conversation) {
        (Some(channel), conversation) => Ok(Some(DeliverTo { channel, conversation })),
        (None, None) => Ok(None),
        (None, Some(_)) => Err(TaskError::invalid(TaskField::Channel, "conversation_id needs a channel")),
    }
}

fn seconds(seconds: f64) -> Duration {
    // Numbers that are too large or negative become zero, which is refused later.
    Duration::try_from_secs_f64(seconds).unwrap_or(Duration::ZERO)
}

#[cfg(test)]
mod tests {
    use hob_core::Reach;
    use serde_json::json;

    use super::*;

    #[test]
    fn a_task_that_another_key_pays_for_does_not_have_the_rule_of_its_creator() {
        let boss = Permit {
            key: Some("identity:boss".into()),
            rule: Some("groups=admins".into()),
            ..Permit::up_to(Reach::Act)
        };
        let payer = |key: &str| {
            let body =
                json!({ "prompt": "hi", "schedule_type": "interval", "schedule_value": "60", "key": key });
            let permit = parse(body.to_string().as_bytes(), boss.clone()).unwrap().permit;
            (permit.key, permit.rule)
        };
        assert_eq!(payer("ci"), (Some("ci".into()), None));
        assert_eq!(payer("identity:boss"), (boss.key.clone(), boss.rule.clone()));
    }
}
