//! Knowledge as rows.

use std::collections::BTreeMap;

use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult, Row, SqlText};
use serde_json::json;

use crate::question_class::QuestionClass;
use crate::records::{ClassRecord, Knowledge, ModelRecord};

const MODEL_COLUMNS: &str = "model, weight, tries, samples, rewards, log_seconds, dollars";

/// Locks a class until the end of the transaction, and returns its last rewards. Whatever changes the models of a class does this
/// first.
pub(super) fn lock_class(
    transaction: &mut PostgresTransaction<'_>,
    class: QuestionClass,
) -> QueryResult<Vec<f64>> {
    // The update changes nothing, but it also locks a row that another transaction has just inserted.
    let sql = "INSERT INTO router_class (class, recent) VALUES ($1, '[]')
        ON CONFLICT (class) DO UPDATE SET class = excluded.class RETURNING recent";
    read_rewards(&transaction.query_one(sql, &[&class.to_string()])?, 0)
}

/// Also locks the class.
pub(super) fn read_class(
    transaction: &mut PostgresTransaction<'_>,
    class: QuestionClass,
) -> QueryResult<ClassRecord> {
    let recent = lock_class(transaction, class)?;
    let sql = format!("SELECT {MODEL_COLUMNS} FROM router_model WHERE class = $1");
    let rows = transaction.query(&sql, &[&class.to_string()])?;
    let models = rows.iter().map(|row| read_model(row, 0)).collect::<Result<BTreeMap<_, _>, _>>()?;
    Ok(ClassRecord { recent, models })
}

pub(super) fn write_class(
    transaction: &mut PostgresTransaction<'_>,
    class: QuestionClass,
    record: &ClassRecord,
) -> QueryResult<()> {
    let class = class.to_string();
    let sql = "UPDATE router_class SET recent = $2 WHERE class = $1";
    transaction.execute(sql, &[&class, &json!(record.recent).to_string()])?;
    let sql = format!(
        "INSERT INTO router_model (class, {MODEL_COLUMNS})
         SELECT $1, * FROM unnest(
             $2::text[], $3::float8[], $4::bigint[], $5::bigint[], $6::float8[], $7::float8[], $8::float8[]
         )
         ON CONFLICT (class, model) DO UPDATE SET
             weight = excluded.weight, tries = excluded.tries, samples = excluded.samples, rewards = excluded.rewards,
             log_seconds = excluded.log_seconds, dollars = excluded.dollars"
    );
    let models = &record.models;
    let names: Vec<SqlText<&str>> = models.keys().map(|model| SqlText(model.as_str())).collect();
    let count = |of: fn(&ModelRecord) -> u64| -> Vec<i64> {
        models.values().map(|known| of(known).cast_signed()).collect()
    };
    let number =
        |of: fn(&ModelRecord) -> Option<f64>| -> Vec<Option<f64>> { models.values().map(of).collect() };
    transaction.execute(
        &sql,
        &[
            &class,
            &names,
            &number(|known| Some(known.weight)),
            &count(|known| known.tries),
            &count(|known| known.samples),
            &number(|known| Some(known.rewards)),
            &number(|known| known.log_seconds),
            &number(|known| known.dollars),
        ],
    )?;
    Ok(())
}

/// The class must be locked.
pub(super) fn count_try(
    transaction: &mut PostgresTransaction<'_>,
    class: QuestionClass,
    model: &str,
) -> QueryResult<()> {
    let sql =
        "INSERT INTO router_model AS old (class, model, weight, tries, samples, rewards) VALUES ($1, $2, 0, 1, 0, 0)
        ON CONFLICT (class, model) DO UPDATE SET tries = old.tries + 1";
    transaction.execute(sql, &[&class.to_string(), &SqlText(model)])?;
    Ok(())
}

/// All classes with knowledge. Unknown classes are skipped.
pub(super) fn read(transaction: &mut PostgresTransaction<'_>) -> QueryResult<Knowledge> {
    let mut knowledge = Knowledge::new();
    for row in transaction.query("SELECT class, recent FROM router_class", &[])? {
        if let Some(class) = QuestionClass::parse(row.try_get(0)?) {
            knowledge.entry(class).or_default().recent = read_rewards(&row, 1)?;
        }
    }
    for row in transaction.query(&format!("SELECT class, {MODEL_COLUMNS} FROM router_model"), &[])? {
        if let Some(class) = QuestionClass::parse(row.try_get(0)?) {
            knowledge.entry(class).or_default().models.extend([read_model(&row, 1)?]);
        }
    }
    Ok(knowledge)
}

fn read_rewards(row: &Row, column: usize) -> QueryResult<Vec<f64>> {
    let text: &str = row.try_get(column)?;
    serde_json::from_str(text).map_err(|error| QueryError::unreadable("recent", error))
}

/// Reads a model from the columns from `first`.
fn read_model(row: &Row, first: usize) -> QueryResult<(String, ModelRecord)> {
    let known = ModelRecord {
        weight: row.try_get(first + 1)?,
        tries: row.try_get::<_, i64>(first + 2)?.unsigned_abs(),
        samples: row.try_get::<_, i64>(first + 3)?.unsigned_abs(),
        rewards: row.try_get(first + 4)?,
        log_seconds: row.try_get(first + 5)?,
        dollars: row.try_get(first + 6)?,
    };
    Ok((row.try_get::<_, SqlText<String>>(first)?.0, known))
}
