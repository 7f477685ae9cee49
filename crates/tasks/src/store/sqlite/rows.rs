//! Tasks and runs as rows.

use std::time::Duration;

use hob_core::{Permit, Reach};
use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::{Value, json};

use crate::claim_plan::RunCause;
use crate::schedule::{Schedule, ScheduleSpec, ScheduleType, parse_zone};
use crate::task::{DeliverTo, Missed, RunOutcome, Task, TaskLimits, TaskRun};
use crate::types::{TaskId, TaskStatus};

const COLUMNS: &str = "id, prompt, schedule_type, schedule_value, timezone, agent, tools, permit, channel, conversation, retries,
    timeout_us, missed, metadata, status, next_run, last_run, created_at";

const RUN_COLUMNS: &str = "id, task_id, slot, attempt, started_at, finished_at, outcome, result, error";

pub(super) fn insert(connection: &Connection, task: &Task) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO task ({COLUMNS}, settled, due)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?18, ?16)"
    );
    connection.prepare_cached(&sql)?.execute(params![
        task.id.as_str(),
        task.prompt,
        task.schedule.spec.kind().as_str(),
        task.schedule.spec.value(),
        task.schedule.zone.name(),
        task.agent,
        task.tools.as_ref().map(|tools| json!(tools).to_string()),
        write_permit(&task.permit),
        task.deliver_to.as_ref().map(|to| &to.channel),
        task.deliver_to.as_ref().and_then(|to| to.conversation.as_ref()),
        task.limits.retries,
        hob_core::time::microseconds(task.limits.timeout),
        task.missed.as_str(),
        json!(task.metadata).to_string(),
        task.status.as_str(),
        task.next_run.map(Timestamp::as_microsecond),
        task.last_run.map(Timestamp::as_microsecond),
        task.created_at.as_microsecond(),
    ])?;
    Ok(())
}

pub(super) fn find(connection: &Connection, id: &TaskId) -> rusqlite::Result<Option<Task>> {
    let sql = format!("SELECT {COLUMNS} FROM task WHERE id = ?1");
    connection.prepare_cached(&sql)?.query_row([id.as_str()], read_task).optional()
}

pub(super) fn list(
    connection: &Connection,
    status: Option<TaskStatus>,
    limit: i64,
) -> rusqlite::Result<Vec<Task>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM task WHERE ?1 IS NULL OR status = ?1
         ORDER BY next_run IS NULL, next_run, created_at DESC, id LIMIT ?2"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    let tasks = statement.query_map(params![status.map(TaskStatus::as_str), limit], read_task)?;
    tasks.collect()
}

pub(super) fn runs(connection: &Connection, id: &TaskId, limit: i64) -> rusqlite::Result<Vec<TaskRun>> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM task_run WHERE task_id = ?1 ORDER BY id DESC LIMIT ?2");
    let mut statement = connection.prepare_cached(&sql)?;
    let runs = statement.query_map(params![id.as_str(), limit], read_run)?;
    runs.collect()
}

fn read_task(row: &Row<'_>) -> rusqlite::Result<Task> {
    let zone = parse_zone(&row.get::<_, String>(4)?).map_err(|error| unreadable(4, error))?;
    let kind = ScheduleType::parse(&row.get::<_, String>(2)?).map_err(|error| unreadable(2, error))?;
    let spec =
        ScheduleSpec::parse(kind, &row.get::<_, String>(3)?, &zone).map_err(|error| unreadable(3, error))?;
    let created_at = moment(17, row.get(17)?)?;
    let channel: Option<String> = row.get(8)?;
    let conversation = row.get(9)?;
    let tools: Option<String> = row.get(6)?;
    Ok(Task {
        id: read_id(row, 0)?,
        prompt: row.get(1)?,
        schedule: Schedule { spec, zone, anchor: created_at },
        agent: row.get(5)?,
        tools: tools.map(|tools| from_json(6, &tools)).transpose()?,
        permit: read_permit(7, &row.get::<_, String>(7)?)?,
        deliver_to: channel.map(|channel| DeliverTo { channel, conversation }),
        limits: TaskLimits {
            retries: row.get(10)?,
            timeout: Duration::from_micros(row.get::<_, i64>(11)?.unsigned_abs()),
        },
        missed: Missed::parse(&row.get::<_, String>(12)?).map_err(|error| unreadable(12, error))?,
        metadata: from_json(13, &row.get::<_, String>(13)?)?,
        status: TaskStatus::parse(&row.get::<_, String>(14)?).map_err(|error| unreadable(14, error))?,
        next_run: optional_moment(row, 15)?,
        last_run: optional_moment(row, 16)?,
        created_at,
    })
}

fn read_run(row: &Row<'_>) -> rusqlite::Result<TaskRun> {
    let outcome: Option<String> = row.get(6)?;
    Ok(TaskRun {
        id: row.get(0)?,
        task_id: read_id(row, 1)?,
        slot: moment(2, row.get(2)?)?,
        attempt: row.get(3)?,
        started_at: moment(4, row.get(4)?)?,
        finished_at: optional_moment(row, 5)?,
        outcome: outcome
            .and_then(|word| RunOutcome::ALL.into_iter().find(|outcome| outcome.as_str() == word)),
        result: row.get(7)?,
        error: row.get(8)?,
    })
}

pub(super) fn read_id(row: &Row<'_>, column: usize) -> rusqlite::Result<TaskId> {
    TaskId::parse(&row.get::<_, String>(column)?).map_err(|error| unreadable(column, error))
}

/// Only scheduled runs are retried, so an unknown value counts as manual.
pub(super) fn read_cause(row: &Row<'_>, column: usize) -> rusqlite::Result<RunCause> {
    let word: String = row.get(column)?;
    Ok(RunCause::ALL.into_iter().find(|cause| cause.as_str() == word).unwrap_or(RunCause::Manual))
}

pub(super) fn moment(column: usize, microseconds: i64) -> rusqlite::Result<Timestamp> {
    Timestamp::from_microsecond(microseconds).map_err(|error| unreadable(column, error))
}

pub(super) fn optional_moment(row: &Row<'_>, column: usize) -> rusqlite::Result<Option<Timestamp>> {
    row.get::<_, Option<i64>>(column)?.map(|microseconds| moment(column, microseconds)).transpose()
}

fn from_json<T: serde::de::DeserializeOwned>(column: usize, text: &str) -> rusqlite::Result<T> {
    serde_json::from_str(text).map_err(|error| unreadable(column, error))
}

fn write_permit(permit: &Permit) -> String {
    let Permit { most, also, only, except, tainted, key } = permit;
    json!({ "most": most.as_str(), "also": also, "only": only, "except": except, "tainted": tainted, "key": key })
        .to_string()
}

/// A permit that cannot be read permits nothing, so it is an error.
fn read_permit(column: usize, text: &str) -> rusqlite::Result<Permit> {
    let permit: Value = from_json(column, text)?;
    let most = permit["most"].as_str().and_then(Reach::parse);
    let most = most.ok_or_else(|| unreadable(column, std::io::Error::other("no reach")))?;
    let names =
        |value: &Value| serde_json::from_value(value.clone()).map_err(|error| unreadable(column, error));
    let only = match &permit["only"] {
        Value::Null => None,
        only => Some(names(only)?),
    };
    let except = match &permit["except"] {
        // Tasks of earlier versions have none.
        Value::Null => Vec::new(),
        except => names(except)?,
    };
    let tainted = permit["tainted"].as_bool().unwrap_or(false);
    let key = permit["key"].as_str().map(Into::into);
    Ok(Permit { most, also: names(&permit["also"])?, only, except, tainted, key })
}

fn unreadable(column: usize, error: impl std::error::Error + Send + Sync + 'static) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
