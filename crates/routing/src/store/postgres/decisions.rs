//! Choices as rows.

use std::time::SystemTime;

use hob_core::{Moment, RequestSource};
use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult, Row, SqlText};
use serde_json::json;

use crate::question_class::QuestionClass;
use crate::records::RoutingDecision;
use crate::store::{MAX_DECISIONS, StoredDecision};

const COLUMNS: &str = "run, decided, source, policy, class, engine, model, rivals, probability, question, answered, \
    retried, implicit, reward";

pub(super) fn insert(
    transaction: &mut PostgresTransaction<'_>,
    decision: &RoutingDecision,
) -> QueryResult<()> {
    let sql = format!(
        "INSERT INTO router_decision ({COLUMNS})
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, FALSE, FALSE, NULL, NULL)
         ON CONFLICT (run) DO UPDATE SET
             decided = excluded.decided, source = excluded.source, policy = excluded.policy, class = excluded.class,
             engine = excluded.engine, model = excluded.model, rivals = excluded.rivals,
             probability = excluded.probability, question = excluded.question, answered = FALSE, retried = FALSE,
             implicit = NULL, reward = NULL"
    );
    transaction.execute(
        &sql,
        &[
            &SqlText(&*decision.run),
            &Moment::of(decision.decided).microseconds(),
            &decision.source.as_str(),
            &SqlText(&decision.policy),
            &decision.class.to_string(),
            &SqlText(&decision.engine),
            &SqlText(&decision.model),
            &json!(decision.candidates).to_string(),
            &decision.probability,
            &decision.question.map(u64::cast_signed),
        ],
    )?;
    Ok(())
}

/// Deletes the oldest choices beyond the limit. Those that another process is using wait for the next time.
pub(super) fn prune(transaction: &mut PostgresTransaction<'_>) -> QueryResult<()> {
    let sql = "DELETE FROM router_decision WHERE run IN (
            SELECT run FROM router_decision
            WHERE decided < (SELECT decided FROM router_decision ORDER BY decided DESC LIMIT 1 OFFSET $1)
            FOR UPDATE SKIP LOCKED
        )";
    transaction.execute(sql, &[&(MAX_DECISIONS - 1)])?;
    Ok(())
}

/// Waits until no other transaction changes the choice. What is read next is what they left.
pub(super) fn lock(transaction: &mut PostgresTransaction<'_>, run: &str) -> QueryResult<()> {
    let sql = "SELECT 1 FROM router_decision WHERE run = $1 FOR UPDATE";
    transaction.query_opt(sql, &[&SqlText(run)])?;
    Ok(())
}

pub(super) fn find(
    transaction: &mut PostgresTransaction<'_>,
    run: &str,
) -> QueryResult<Option<StoredDecision>> {
    let sql =
        format!("SELECT {COLUMNS}, run IN (SELECT run FROM feedback) FROM router_decision WHERE run = $1");
    transaction.query_opt(&sql, &[&SqlText(run)])?.as_ref().map(read).transpose()
}

pub(super) fn last_answered(
    transaction: &mut PostgresTransaction<'_>,
    since: Moment,
    except_sources: &[RequestSource],
    except_runs: &[&str],
) -> QueryResult<Option<StoredDecision>> {
    let sql = format!(
        "SELECT {COLUMNS}, run IN (SELECT run FROM feedback) FROM router_decision
         WHERE answered AND decided >= $1 AND source <> ALL ($2::text[]) AND run <> ALL ($3::text[])
         ORDER BY decided DESC LIMIT 1"
    );
    let sources: Vec<&str> = except_sources.iter().map(|source| source.as_str()).collect();
    let runs: Vec<_> = except_runs.iter().map(|run| SqlText(*run)).collect();
    let found = transaction.query_opt(&sql, &[&since.microseconds(), &sources, &runs])?;
    found.as_ref().map(read).transpose()
}

pub(super) fn update(transaction: &mut PostgresTransaction<'_>, stored: &StoredDecision) -> QueryResult<()> {
    let StoredDecision { decision, answered, retried, rated: _, implicit, reward } = stored;
    let sql =
        "UPDATE router_decision SET answered = $2, retried = $3, implicit = $4, reward = $5 WHERE run = $1";
    transaction.execute(sql, &[&SqlText(&*decision.run), answered, retried, implicit, reward])?;
    Ok(())
}

pub(super) fn delete(transaction: &mut PostgresTransaction<'_>, run: &str) -> QueryResult<()> {
    transaction.execute("DELETE FROM router_decision WHERE run = $1", &[&SqlText(run)])?;
    Ok(())
}

pub(super) fn asked_before(
    transaction: &mut PostgresTransaction<'_>,
    decision: &RoutingDecision,
    since: SystemTime,
) -> QueryResult<Option<String>> {
    let Some(question) = decision.question else { return Ok(None) };
    let sql =
        "SELECT run FROM router_decision WHERE question = $1 AND run <> $2 AND source = $3 AND decided >= $4
        ORDER BY decided DESC LIMIT 1";
    let since = Moment::of(since).microseconds();
    let found = transaction.query_opt(
        sql,
        &[&question.cast_signed(), &SqlText(&*decision.run), &decision.source.as_str(), &since],
    )?;
    found.map(|row| text(&row, 0)).transpose()
}

pub(super) fn count(transaction: &mut PostgresTransaction<'_>) -> QueryResult<u64> {
    let row = transaction.query_one("SELECT count(*) FROM router_decision", &[])?;
    Ok(row.try_get::<_, i64>(0)?.unsigned_abs())
}

fn text(row: &Row, column: usize) -> QueryResult<String> {
    Ok(row.try_get::<_, SqlText<String>>(column)?.0)
}

fn read(row: &Row) -> QueryResult<StoredDecision> {
    let source: &str = row.try_get(2)?;
    let class: &str = row.try_get(4)?;
    let candidates: &str = row.try_get(7)?;
    let unknown = |column, value: &str| QueryError::unreadable(column, format!("'{value}' is unknown"));
    Ok(StoredDecision {
        decision: RoutingDecision {
            run: text(row, 0)?.into(),
            decided: Moment::from_microseconds(row.try_get(1)?).time(),
            source: RequestSource::parse(source).ok_or_else(|| unknown("source", source))?,
            policy: text(row, 3)?,
            class: QuestionClass::parse(class).ok_or_else(|| unknown("class", class))?,
            engine: text(row, 5)?,
            model: text(row, 6)?,
            candidates: serde_json::from_str(candidates)
                .map_err(|error| QueryError::unreadable("rivals", error))?,
            probability: row.try_get(8)?,
            question: row.try_get::<_, Option<i64>>(9)?.map(i64::cast_unsigned),
        },
        answered: row.try_get(10)?,
        retried: row.try_get(11)?,
        implicit: row.try_get(12)?,
        reward: row.try_get(13)?,
        rated: row.try_get(14)?,
    })
}
