//! Tasks and runs as rows.

use hob_db::UnreadableColumn;
use jiff::Timestamp;
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::claim_plan::RunCause;
use crate::store::columns::{self, RUN_COLUMNS, TASK_COLUMNS, TaskColumns};
use crate::task::{Task, TaskRun};
use crate::types::{TaskId, TaskStatus};

pub(super) fn insert(connection: &Connection, task: &Task) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT INTO task ({TASK_COLUMNS}, settled, due)
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16, ?17, ?18, ?19, ?20, ?18, ?16)"
    );
    let columns = TaskColumns::of(task);
    connection.prepare_cached(&sql)?.execute(params![
        columns.id,
        columns.prompt,
        columns.schedule_type,
        columns.schedule_value,
        columns.timezone,
        columns.agent,
        columns.tools,
        columns.permit,
        columns.channel,
        columns.conversation,
        columns.retries,
        columns.timeout_us,
        columns.missed,
        columns.metadata,
        columns.status,
        columns.next_run,
        columns.last_run,
        columns.created_at,
        columns.model,
        columns.first_calls,
    ])?;
    Ok(())
}

/// Returns `false` if the key has too many tasks that have not ended.
pub(super) fn insert_of_key(
    connection: &Connection,
    task: &Task,
    key: &str,
    most: usize,
) -> rusqlite::Result<bool> {
    let (permit, most) = (columns::permit_of_key(Some(key)), i64::try_from(most).unwrap_or(i64::MAX));
    let open: i64 = connection.query_row(
        "SELECT count(*) FROM task WHERE instr(permit, ?1) > 0 AND status IN ('active', 'paused')",
        [&permit],
        |row| row.get(0),
    )?;
    if open >= most {
        return Ok(false);
    }
    connection.execute(
        "DELETE FROM task WHERE id IN (
             SELECT id FROM task WHERE instr(permit, ?1) > 0 AND status IN ('completed', 'cancelled')
             ORDER BY coalesce(last_run, created_at) DESC, id LIMIT -1 OFFSET ?2)
         AND NOT EXISTS (SELECT 1 FROM task_run WHERE task_id = task.id AND finished_at IS NULL)",
        params![permit, most],
    )?;
    insert(connection, task)?;
    Ok(true)
}

pub(super) fn find(connection: &Connection, id: &TaskId) -> rusqlite::Result<Option<Task>> {
    let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE id = ?1");
    connection.prepare_cached(&sql)?.query_row([id.as_str()], read_task).optional()
}

pub(super) fn list(
    connection: &Connection,
    status: Option<TaskStatus>,
    limit: i64,
) -> rusqlite::Result<Vec<Task>> {
    let sql = format!(
        "SELECT {TASK_COLUMNS} FROM task WHERE ?1 IS NULL OR status = ?1
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
    let columns = TaskColumns {
        id: row.get(0)?,
        prompt: row.get(1)?,
        schedule_type: row.get(2)?,
        schedule_value: row.get(3)?,
        timezone: row.get(4)?,
        agent: row.get(5)?,
        tools: row.get(6)?,
        permit: row.get(7)?,
        channel: row.get(8)?,
        conversation: row.get(9)?,
        retries: row.get(10)?,
        timeout_us: row.get(11)?,
        missed: row.get(12)?,
        metadata: row.get(13)?,
        status: row.get(14)?,
        next_run: row.get(15)?,
        last_run: row.get(16)?,
        created_at: row.get(17)?,
        model: row.get(18)?,
        first_calls: row.get(19)?,
    };
    columns.read().map_err(|error| unreadable(0, error))
}

fn read_run(row: &Row<'_>) -> rusqlite::Result<TaskRun> {
    Ok(TaskRun {
        id: row.get(0)?,
        task_id: read_id(row, 1)?,
        slot: moment(2, row.get(2)?)?,
        attempt: row.get(3)?,
        started_at: moment(4, row.get(4)?)?,
        finished_at: row.get::<_, Option<i64>>(5)?.map(|time| moment(5, time)).transpose()?,
        outcome: columns::run_outcome(row.get::<_, Option<String>>(6)?.as_deref()),
        result: row.get(7)?,
        error: row.get(8)?,
    })
}

pub(super) fn read_id(row: &Row<'_>, column: usize) -> rusqlite::Result<TaskId> {
    columns::task_id("id", &row.get::<_, String>(column)?).map_err(|error| unreadable(column, error))
}

pub(super) fn read_cause(row: &Row<'_>, column: usize) -> rusqlite::Result<RunCause> {
    Ok(columns::run_cause(&row.get::<_, String>(column)?))
}

pub(super) fn moment(column: usize, microseconds: i64) -> rusqlite::Result<Timestamp> {
    columns::moment("time", microseconds).map_err(|error| unreadable(column, error))
}

fn unreadable(column: usize, error: UnreadableColumn) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, Type::Text, Box::new(error))
}
