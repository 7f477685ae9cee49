//! `/v1/tasks`: prompts that run at set times. For the owner only, because a task can use all tools.

use std::sync::Arc;
use std::time::Duration;

use axum::Json;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, Request, State};
use axum::http::{Extensions, StatusCode};
use hob_core::{Permit, Reach, RunEvents};
use hob_tasks::{
    DeliverTo, Missed, NewTask, ScheduleType, Scheduler, Task, TaskChange, TaskError, TaskField, TaskId,
    TaskLimits, TaskRun, TaskStatus, parse_zone,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Number, Value};

use crate::content_type::require_json;
use crate::error::ApiError;
use crate::json::read;
use crate::limits::body::read_json;
use crate::request_context::RequestContext;
use crate::state::ServerState;
use crate::whole_number::WholeNumber;

const PATH: &str = "/v1/tasks";

/// The number of runs without `limit`.
const DEFAULT_LOGS: usize = 20;

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
    tools: Option<Vec<String>>,
    channel: Option<String>,
    conversation_id: Option<String>,
    retries: Option<WholeNumber>,
    timeout: Option<f64>,
    missed: Option<String>,
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

#[derive(Serialize)]
pub(crate) struct TaskList {
    tasks: Vec<Task>,
}

#[derive(Serialize)]
pub(crate) struct TaskLogs {
    logs: Vec<TaskRun>,
}

#[derive(Serialize)]
pub(crate) struct DeletedTask {
    id: TaskId,
    deleted: bool,
}

pub(crate) async fn list(
    State(state): State<Arc<ServerState>>,
    filter: Result<Query<TaskFilter>, QueryRejection>,
    request: Request,
) -> Result<Json<TaskList>, ApiError> {
    let scheduler = scheduler_for_owner(&state, request.extensions())?;
    let Query(TaskFilter { status }) = filter.map_err(unreadable)?;
    let status = status.as_deref().map(TaskStatus::parse).transpose()?;
    Ok(Json(TaskList { tasks: scheduler.tasks().list(status).await? }))
}

pub(crate) async fn create(
    State(state): State<Arc<ServerState>>,
    request: Request,
) -> Result<(StatusCode, Json<Task>), ApiError> {
    let scheduler = scheduler_for_owner(&state, request.extensions())?;
    let body = read_json(request, &state.body_reader).await?;
    let task = parse(&body)?;
    // Checked now, because the task runs when no one is watching.
    let selection = Permit { only: task.tools.clone(), ..Permit::up_to(Reach::Act) };
    if let Err(unknown) = state.system.tools().for_run(selection, RunEvents::without_subscribers()) {
        return Err(ApiError::invalid("tools", unknown.to_string()));
    }
    Ok((StatusCode::CREATED, Json(scheduler.tasks().create(task).await?)))
}

pub(crate) async fn show(
    State(state): State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Json<Task>, ApiError> {
    let scheduler = scheduler_for_owner(&state, request.extensions())?;
    Ok(Json(scheduler.tasks().get(&read_id(id)?).await?))
}

pub(crate) async fn delete(
    State(state): State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Json<DeletedTask>, ApiError> {
    let scheduler = scheduler_for_owner(&state, request.extensions())?;
    let id = read_id(id)?;
    scheduler.tasks().delete(&id).await?;
    Ok(Json(DeletedTask { id, deleted: true }))
}

pub(crate) async fn pause(
    state: State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Json<Task>, ApiError> {
    change(scheduler_for_change(&state, &request)?, id, TaskChange::Pause).await
}

pub(crate) async fn resume(
    state: State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Json<Task>, ApiError> {
    change(scheduler_for_change(&state, &request)?, id, TaskChange::Resume).await
}

pub(crate) async fn cancel(
    state: State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<Json<Task>, ApiError> {
    change(scheduler_for_change(&state, &request)?, id, TaskChange::Cancel).await
}

async fn change(scheduler: &Scheduler, id: Id, change: TaskChange) -> Result<Json<Task>, ApiError> {
    Ok(Json(scheduler.tasks().change(&read_id(id)?, change).await?))
}

/// Starts a run. Its result is in the logs.
pub(crate) async fn run(
    State(state): State<Arc<ServerState>>,
    id: Id,
    request: Request,
) -> Result<(StatusCode, Json<TaskRun>), ApiError> {
    let scheduler = scheduler_for_change(&state, &request)?;
    let run = scheduler.run_now(&read_id(id)?).await?;
    Ok((StatusCode::ACCEPTED, Json(run)))
}

pub(crate) async fn logs(
    State(state): State<Arc<ServerState>>,
    id: Id,
    length: Result<Query<LogsQuery>, QueryRejection>,
    request: Request,
) -> Result<Json<TaskLogs>, ApiError> {
    let scheduler = scheduler_for_owner(&state, request.extensions())?;
    let Query(LogsQuery { limit }) = length.map_err(unreadable)?;
    let logs = scheduler.tasks().runs(&read_id(id)?, limit.unwrap_or(DEFAULT_LOGS)).await?;
    Ok(Json(TaskLogs { logs }))
}

/// Returns the scheduler if the caller is the owner.
fn scheduler_for_owner<'a>(
    state: &'a ServerState,
    extensions: &Extensions,
) -> Result<&'a Arc<Scheduler>, ApiError> {
    if !RequestContext::is_owner(extensions) {
        return Err(ApiError::owner_only(PATH));
    }
    state.scheduler.as_ref().ok_or_else(ApiError::no_tasks)
}

/// Returns the scheduler for a change that has no body.
fn scheduler_for_change<'a>(
    state: &'a ServerState,
    request: &Request,
) -> Result<&'a Arc<Scheduler>, ApiError> {
    let scheduler = scheduler_for_owner(state, request.extensions())?;
    require_json(request.headers())?;
    Ok(scheduler)
}

fn read_id(id: Id) -> Result<TaskId, ApiError> {
    let Path(id) = id.map_err(|_| ApiError::malformed("the task's id in the path is not valid UTF-8"))?;
    Ok(TaskId::parse(&id)?)
}

fn unreadable(rejection: QueryRejection) -> ApiError {
    ApiError::malformed(format!("the query string cannot be read: {}", rejection.body_text()))
}

fn parse(body: &[u8]) -> Result<NewTask, ApiError> {
    let typed: TaskBody = read(body)?;
    let value = match typed.schedule_value {
        ScheduleValue::Text(text) => text,
        ScheduleValue::Number(number) => number.to_string(),
    };
    let owner = Permit::up_to(Reach::Act);
    let usual = NewTask::new(typed.prompt, ScheduleType::parse(&typed.schedule_type)?, value, owner);
    Ok(NewTask {
        timezone: typed.timezone.as_deref().map(parse_zone).transpose()?,
        agent: typed.agent.unwrap_or_else(|| usual.agent.clone()),
        tools: typed.tools,
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
