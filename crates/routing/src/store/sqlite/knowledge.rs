//! Knowledge as rows.

use std::collections::BTreeMap;

use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use crate::question_class::QuestionClass;
use crate::records::{ClassRecord, Knowledge, ModelRecord};

const MODEL_COLUMNS: &str = "model, weight, tries, samples, rewards, log_seconds, dollars";

pub(super) fn read_class(connection: &Connection, class: QuestionClass) -> rusqlite::Result<ClassRecord> {
    let class = class.to_string();
    let recent = connection
        .prepare_cached("SELECT recent FROM router_class WHERE class = ?1")?
        .query_row([&class], |row| read_rewards(row, 0))
        .optional()?;
    let sql = format!("SELECT {MODEL_COLUMNS} FROM router_model WHERE class = ?1");
    let mut statement = connection.prepare_cached(&sql)?;
    let models = statement.query_map([&class], |row| read_model(row, 0))?;
    Ok(ClassRecord {
        recent: recent.unwrap_or_default(),
        models: models.collect::<rusqlite::Result<BTreeMap<_, _>>>()?,
    })
}

pub(super) fn write_class(
    connection: &Connection,
    class: QuestionClass,
    record: &ClassRecord,
) -> rusqlite::Result<()> {
    let class = class.to_string();
    let sql = "INSERT OR REPLACE INTO router_class (class, recent) VALUES (?1, ?2)";
    connection.prepare_cached(sql)?.execute(params![class, json!(record.recent).to_string()])?;
    let sql = format!(
        "INSERT OR REPLACE INTO router_model (class, {MODEL_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)"
    );
    let mut statement = connection.prepare_cached(&sql)?;
    for (model, known) in &record.models {
        statement.execute(params![
            class,
            model,
            known.weight,
            known.tries.cast_signed(),
            known.samples.cast_signed(),
            known.rewards,
            known.log_seconds,
            known.dollars,
        ])?;
    }
    Ok(())
}

pub(super) fn count_try(connection: &Connection, class: QuestionClass, model: &str) -> rusqlite::Result<()> {
    let sql =
        "INSERT INTO router_model (class, model, weight, tries, samples, rewards) VALUES (?1, ?2, 0, 1, 0, 0)
        ON CONFLICT (class, model) DO UPDATE SET tries = tries + 1";
    connection.prepare_cached(sql)?.execute(params![class.to_string(), model])?;
    Ok(())
}

/// All classes with knowledge. Unknown classes are skipped.
pub(super) fn read(connection: &Connection) -> rusqlite::Result<Knowledge> {
    let mut knowledge = Knowledge::new();
    let mut statement = connection.prepare_cached("SELECT class, recent FROM router_class")?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(class) = read_name(row)? {
            knowledge.entry(class).or_default().recent = read_rewards(row, 1)?;
        }
    }
    let mut statement =
        connection.prepare_cached(&format!("SELECT class, {MODEL_COLUMNS} FROM router_model"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        if let Some(class) = read_name(row)? {
            knowledge.entry(class).or_default().models.extend([read_model(row, 1)?]);
        }
    }
    Ok(knowledge)
}

fn read_name(row: &Row<'_>) -> rusqlite::Result<Option<QuestionClass>> {
    Ok(QuestionClass::parse(row.get_ref(0)?.as_str()?))
}

fn read_rewards(row: &Row<'_>, column: usize) -> rusqlite::Result<Vec<f64>> {
    serde_json::from_str(row.get_ref(column)?.as_str()?).map_err(|_| unexpected_value(column, Type::Text))
}

/// Reads a model from the columns from `first`.
fn read_model(row: &Row<'_>, first: usize) -> rusqlite::Result<(String, ModelRecord)> {
    let known = ModelRecord {
        weight: row.get(first + 1)?,
        tries: row.get::<_, i64>(first + 2)?.unsigned_abs(),
        samples: row.get::<_, i64>(first + 3)?.unsigned_abs(),
        rewards: row.get(first + 4)?,
        log_seconds: row.get(first + 5)?,
        dollars: row.get(first + 6)?,
    };
    Ok((row.get(first)?, known))
}

/// The error for an invalid value in a row.
pub(super) fn unexpected_value(column: usize, kind: Type) -> rusqlite::Error {
    rusqlite::Error::FromSqlConversionFailure(column, kind, "not a valid value".into())
}
