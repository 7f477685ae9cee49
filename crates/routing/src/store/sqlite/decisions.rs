//! Choices as rows.

use std::time::SystemTime;

use hob_core::{Moment, RequestSource};
use rusqlite::types::Type;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde_json::json;

use super::knowledge::unexpected_value;
use crate::question_class::QuestionClass;
use crate::records::RoutingDecision;
use crate::store::{MAX_DECISIONS, StoredDecision};

const COLUMNS: &str = "run, decided, source, policy, class, engine, model, rivals, probability, question, answered, \
    retried, implicit, reward";

pub(super) fn insert(connection: &Connection, decision: &RoutingDecision) -> rusqlite::Result<()> {
    let sql = format!(
        "INSERT OR REPLACE INTO router_decision ({COLUMNS})
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, FALSE, FALSE, NULL, NULL)"
    );
    connection.prepare_cached(&sql)?.execute(params![
        &*decision.run,
        Moment::of(decision.decided).microseconds(),
        decision.source.as_str(),
        decision.policy,
        decision.class.to_string(),
        decision.engine,
        decision.model,
        json!(decision.candidates).to_string(),
        decision.probability,
        decision.question.map(u64::cast_signed),
    ])?;
    Ok(())
}

/// Deletes the oldest choices beyond the limit.
pub(super) fn prune(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM router_decision WHERE decided <
        (SELECT decided FROM router_decision ORDER BY decided DESC LIMIT 1 OFFSET ?1)";
    connection.prepare_cached(sql)?.execute([MAX_DECISIONS - 1])?;
    Ok(())
}

pub(super) fn find(connection: &Connection, run: &str) -> rusqlite::Result<Option<StoredDecision>> {
    let sql =
        format!("SELECT {COLUMNS}, run IN (SELECT run FROM feedback) FROM router_decision WHERE run = ?1");
    connection.prepare_cached(&sql)?.query_row([run], read).optional()
}

pub(super) fn last_answered(
    connection: &Connection,
    since: Moment,
    except_sources: &[RequestSource],
    except_runs: &[&str],
) -> rusqlite::Result<Option<StoredDecision>> {
    let sql = format!(
        "SELECT {COLUMNS}, run IN (SELECT run FROM feedback) FROM router_decision
         WHERE answered AND decided >= ?1 AND source NOT IN (SELECT value FROM json_each(?2))
             AND run NOT IN (SELECT value FROM json_each(?3))
         ORDER BY decided DESC LIMIT 1"
    );
    let sources: Vec<&str> = except_sources.iter().map(|source| source.as_str()).collect();
    let values = params![since.microseconds(), json!(sources).to_string(), json!(except_runs).to_string()];
    connection.prepare_cached(&sql)?.query_row(values, read).optional()
}

pub(super) fn update(connection: &Connection, stored: &StoredDecision) -> rusqlite::Result<()> {
    let StoredDecision { decision, answered, retried, rated: _, implicit, reward } = stored;
    let sql =
        "UPDATE router_decision SET answered = ?2, retried = ?3, implicit = ?4, reward = ?5 WHERE run = ?1";
    connection.prepare_cached(sql)?.execute(params![&*decision.run, answered, retried, implicit, reward])?;
    Ok(())
}

pub(super) fn delete(connection: &Connection, run: &str) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM router_decision WHERE run = ?1")?.execute([run])?;
    Ok(())
}

pub(super) fn asked_before(
    connection: &Connection,
    decision: &RoutingDecision,
    since: SystemTime,
) -> rusqlite::Result<Option<String>> {
    let Some(question) = decision.question else { return Ok(None) };
    let sql =
        "SELECT run FROM router_decision WHERE question = ?1 AND run <> ?2 AND source = ?3 AND decided >= ?4
        ORDER BY decided DESC LIMIT 1";
    let since = Moment::of(since).microseconds();
    let values = params![question.cast_signed(), &*decision.run, decision.source.as_str(), since];
    connection.prepare_cached(sql)?.query_row(values, |row| row.get(0)).optional()
}

pub(super) fn count(connection: &Connection) -> rusqlite::Result<u64> {
    let count: i64 = connection.query_row("SELECT count(*) FROM router_decision", [], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

fn read(row: &Row<'_>) -> rusqlite::Result<StoredDecision> {
    let source: String = row.get(2)?;
    let class: String = row.get(4)?;
    let candidates: String = row.get(7)?;
    let run: String = row.get(0)?;
    Ok(StoredDecision {
        decision: RoutingDecision {
            run: run.into(),
            decided: Moment::from_microseconds(row.get(1)?).time(),
            source: RequestSource::parse(&source).ok_or_else(|| unexpected_value(2, Type::Text))?,
            policy: row.get(3)?,
            class: QuestionClass::parse(&class).ok_or_else(|| unexpected_value(4, Type::Text))?,
            engine: row.get(5)?,
            model: row.get(6)?,
            candidates: serde_json::from_str(&candidates).map_err(|_| unexpected_value(7, Type::Text))?,
            probability: row.get(8)?,
            question: row.get::<_, Option<i64>>(9)?.map(i64::cast_unsigned),
        },
        answered: row.get(10)?,
        retried: row.get(11)?,
        implicit: row.get(12)?,
        reward: row.get(13)?,
        rated: row.get(14)?,
    })
}
