//! Tasks and runs as rows.

use hob_db::UnreadableColumn;
use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult, Row, SqlText, ToSql, Type};
use jiff::Timestamp;

use crate::store::columns::{self, RUN_COLUMNS, TASK_COLUMNS, TaskColumns};
use crate::task::{Task, TaskRun};
use crate::types::{TaskId, TaskStatus};

/// The types of `TASK_COLUMNS`, `settled` and `due`.
const TASK_TYPES: [Type; 22] = [
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
    Type::INT8,
    Type::TEXT,
    Type::TEXT,
    Type::INT8,
    Type::INT8,
];

pub(super) fn insert_all(transaction: &mut PostgresTransaction<'_>, tasks: &[Task]) -> QueryResult<()> {
    let rows: Vec<TaskColumns> = tasks.iter().map(TaskColumns::of).collect();
    let texts: Vec<_> = rows.iter().map(TaskTexts::of).collect();
    let rows = rows.iter().zip(&texts).map(|(columns, texts)| -> Vec<&(dyn ToSql + Sync)> {
        vec![
            &columns.id,
            &texts.prompt,
            &columns.schedule_type,
            &columns.schedule_value,
            &columns.timezone,
            &texts.agent,
            &columns.tools,
            &columns.permit,
            &texts.channel,
            &texts.conversation,
            &columns.retries,
            &columns.timeout_us,
            &columns.missed,
            &columns.metadata,
            &columns.status,
            &columns.next_run,
            &columns.last_run,
            &columns.created_at,
            &texts.model,
            &columns.first_calls,
            &columns.created_at,
            &columns.next_run,
        ]
    });
    let sql = format!("COPY task ({TASK_COLUMNS}, settled, due) FROM STDIN BINARY");
    transaction.copy_in(&sql, &TASK_TYPES, rows).map(|_| ())
}

/// Returns `false` if the key has too many tasks that have not ended.
pub(super) fn insert_of_key(
    transaction: &mut PostgresTransaction<'_>,
    task: &Task,
    key: &str,
    most: usize,
) -> QueryResult<bool> {
    // Other processes count the tasks of the key at the same time.
    transaction.lock(&format!("tasks of the key {key}"))?;
    let (permit, most) = (columns::permit_of_key(Some(key)), i64::try_from(most).unwrap_or(i64::MAX));
    let sql = "SELECT count(*) FROM task WHERE strpos(permit, $1) > 0 AND status IN ('active', 'paused')";
    let open: i64 = transaction.query_one(sql, &[&permit])?.try_get(0)?;
    if open >= most {
        return Ok(false);
    }
    transaction.execute(
        "DELETE FROM task WHERE id IN (
             SELECT id FROM task WHERE strpos(permit, $1) > 0 AND status IN ('completed', 'cancelled')
             ORDER BY coalesce(last_run, created_at) DESC, id COLLATE \"C\" OFFSET $2)
         AND NOT EXISTS (SELECT 1 FROM task_run WHERE task_id = task.id AND finished_at IS NULL)",
        &[&permit, &most],
    )?;
    insert_all(transaction, std::slice::from_ref(task))?;
    Ok(true)
}

/// The columns that may have any character.
struct TaskTexts<'a> {
    prompt: SqlText<&'a str>,
    agent: SqlText<&'a str>,
    channel: Option<SqlText<&'a str>>,
    conversation: Option<SqlText<&'a str>>,
    model: Option<SqlText<&'a str>>,
}

impl<'a> TaskTexts<'a> {
    fn of(columns: &'a TaskColumns) -> Self {
        TaskTexts {
            prompt: SqlText(&columns.prompt),
            agent: SqlText(&columns.agent),
            channel: columns.channel.as_deref().map(SqlText),
            conversation: columns.conversation.as_deref().map(SqlText),
            model: columns.model.as_deref().map(SqlText),
        }
    }
}

fn text(row: &Row, column: usize) -> QueryResult<String> {
    Ok(row.try_get::<_, SqlText<String>>(column)?.0)
}

fn optional_text(row: &Row, column: usize) -> QueryResult<Option<String>> {
    Ok(row.try_get::<_, Option<SqlText<String>>>(column)?.map(|text| text.0))
}

pub(super) fn find(transaction: &mut PostgresTransaction<'_>, id: &TaskId) -> QueryResult<Option<Task>> {
    let sql = format!("SELECT {TASK_COLUMNS} FROM task WHERE id = $1");
    let row = transaction.query_opt(&sql, &[&id.as_str()])?;
    row.as_ref().map(read_task).transpose()
}

/// The same, and no other transaction changes it until this one ends. Also returns up to when its slots are settled.
pub(super) fn find_to_change(
    transaction: &mut PostgresTransaction<'_>,
    id: &TaskId,
) -> QueryResult<Option<(Task, Timestamp)>> {
    let sql = format!("SELECT {TASK_COLUMNS}, settled FROM task WHERE id = $1 FOR UPDATE");
    let Some(row) = transaction.query_opt(&sql, &[&id.as_str()])? else { return Ok(None) };
    Ok(Some((read_task(&row)?, moment("settled", row.try_get("settled")?)?)))
}

pub(super) fn list(
    transaction: &mut PostgresTransaction<'_>,
    status: Option<TaskStatus>,
    limit: i64,
) -> QueryResult<Vec<Task>> {
    let sql = format!(
        "SELECT {TASK_COLUMNS} FROM task WHERE $1::text IS NULL OR status = $1
         ORDER BY next_run IS NULL, next_run, created_at DESC, id COLLATE \"C\" LIMIT $2"
    );
    let rows = transaction.query(&sql, &[&status.map(TaskStatus::as_str), &limit])?;
    rows.iter().map(read_task).collect()
}

pub(super) fn runs(
    transaction: &mut PostgresTransaction<'_>,
    id: &TaskId,
    limit: i64,
) -> QueryResult<Vec<TaskRun>> {
    let sql = format!("SELECT {RUN_COLUMNS} FROM task_run WHERE task_id = $1 ORDER BY id DESC LIMIT $2");
    let rows = transaction.query(&sql, &[&id.as_str(), &limit])?;
    rows.iter().map(read_run).collect()
}

pub(super) fn read_task(row: &Row) -> QueryResult<Task> {
    let columns = TaskColumns {
        id: row.try_get(0)?,
        prompt: text(row, 1)?,
        schedule_type: row.try_get(2)?,
        schedule_value: row.try_get(3)?,
        timezone: row.try_get(4)?,
        agent: text(row, 5)?,
        tools: row.try_get(6)?,
        permit: row.try_get(7)?,
        channel: optional_text(row, 8)?,
        conversation: optional_text(row, 9)?,
        retries: row.try_get(10)?,
        timeout_us: row.try_get(11)?,
        missed: row.try_get(12)?,
        metadata: row.try_get(13)?,
        status: row.try_get(14)?,
        next_run: row.try_get(15)?,
        last_run: row.try_get(16)?,
        created_at: row.try_get(17)?,
        model: optional_text(row, 18)?,
        first_calls: row.try_get(19)?,
    };
    columns.read().map_err(unreadable)
}

fn read_run(row: &Row) -> QueryResult<TaskRun> {
    Ok(TaskRun {
        id: row.try_get(0)?,
        task_id: task_id(row.try_get(1)?)?,
        slot: moment("slot", row.try_get(2)?)?,
        attempt: number("attempt", row.try_get(3)?)?,
        started_at: moment("started_at", row.try_get(4)?)?,
        finished_at: optional_moment("finished_at", row.try_get(5)?)?,
        outcome: columns::run_outcome(row.try_get(6)?),
        result: optional_text(row, 7)?,
        error: optional_text(row, 8)?,
    })
}

pub(super) fn task_id(id: &str) -> QueryResult<TaskId> {
    columns::task_id("id", id).map_err(unreadable)
}

pub(super) fn moment(column: &'static str, microseconds: i64) -> QueryResult<Timestamp> {
    columns::moment(column, microseconds).map_err(unreadable)
}

pub(super) fn optional_moment(
    column: &'static str,
    microseconds: Option<i64>,
) -> QueryResult<Option<Timestamp>> {
    columns::optional_moment(column, microseconds).map_err(unreadable)
}

pub(super) fn number(column: &'static str, value: i64) -> QueryResult<u32> {
    columns::number(column, value).map_err(unreadable)
}

fn unreadable(error: UnreadableColumn) -> QueryError {
    QueryError::unreadable(error.column, error)
}
