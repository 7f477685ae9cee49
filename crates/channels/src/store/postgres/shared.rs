//! Which process is connected to a channel, and the requests of the others to it. All times are those of the server.

use std::time::Duration;

use hob_db::postgres::{PostgresTransaction, QueryResult, Row, SERVER_CLOCK, SqlText};

use crate::store::{LeaseClaim, LeaseOutcome, MAX_WAITING_REQUESTS, NewRequest, RequestState, TakenRequest};

/// Announces requests and answers.
pub(super) const TOPIC: &str = "channel_requests";

fn microseconds(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Takes the lease if it is free, has ended, or is the holder's own already.
pub(super) fn hold(
    transaction: &mut PostgresTransaction<'_>,
    claim: &LeaseClaim<'_>,
) -> QueryResult<LeaseOutcome> {
    let LeaseClaim { channel, holder, lease, status, problem } = *claim;
    let held = transaction.execute(
        &format!(
            "INSERT INTO channel_lease AS lease (channel, holder, ends, status, problem)
             VALUES ($1, $2, {SERVER_CLOCK} + $3, $4, $5)
             ON CONFLICT (channel) DO UPDATE
                SET holder = excluded.holder, ends = excluded.ends, status = excluded.status, problem = excluded.problem
                WHERE lease.holder = excluded.holder OR lease.ends < {SERVER_CLOCK}"
        ),
        &[&channel, &holder, &microseconds(lease), &status, &problem.map(SqlText)],
    )?;
    if held > 0 {
        return Ok(LeaseOutcome::Held);
    }
    let other =
        transaction.query_opt("SELECT status, problem FROM channel_lease WHERE channel = $1", &[&channel])?;
    match other {
        Some(row) => Ok(LeaseOutcome::HeldByOther { status: row.try_get(0)?, problem: optional(&row, 1)? }),
        // Given back since then.
        None => Ok(LeaseOutcome::HeldByOther { status: String::new(), problem: None }),
    }
}

pub(super) fn release(
    transaction: &mut PostgresTransaction<'_>,
    channel: &str,
    holder: &str,
) -> QueryResult<()> {
    transaction
        .execute("DELETE FROM channel_lease WHERE channel = $1 AND holder = $2", &[&channel, &holder])
        .map(drop)
}

pub(super) fn ask_holder(
    transaction: &mut PostgresTransaction<'_>,
    channel: &str,
    request: NewRequest<'_>,
) -> QueryResult<bool> {
    let row = transaction
        .query_one("SELECT count(*) FROM channel_outbox WHERE channel = $1 AND reply IS NULL", &[&channel])?;
    if row.try_get::<_, i64>(0)? >= MAX_WAITING_REQUESTS {
        return Ok(false);
    }
    transaction.execute(
        &format!(
            "INSERT INTO channel_outbox (channel, key, request, ends) VALUES ($1, $2, $3, {SERVER_CLOCK} + $4)
             ON CONFLICT (key) DO NOTHING"
        ),
        &[&channel, &SqlText(request.key), &SqlText(request.request), &microseconds(request.wait)],
    )?;
    transaction.notify(TOPIC)?;
    Ok(true)
}

pub(super) fn request_state(
    transaction: &mut PostgresTransaction<'_>,
    key: &str,
) -> QueryResult<RequestState> {
    let row = transaction
        .query_opt("SELECT reply, holder IS NOT NULL FROM channel_outbox WHERE key = $1", &[&SqlText(key)])?;
    let Some(row) = row else { return Ok(RequestState::Gone) };
    if let Some(reply) = optional(&row, 0)? {
        transaction.execute("DELETE FROM channel_outbox WHERE key = $1", &[&SqlText(key)])?;
        return Ok(RequestState::Answered(reply));
    }
    Ok(if row.try_get(1)? { RequestState::Taken } else { RequestState::Waiting })
}

pub(super) fn withdraw(transaction: &mut PostgresTransaction<'_>, key: &str) -> QueryResult<bool> {
    let deleted = transaction
        .execute("DELETE FROM channel_outbox WHERE key = $1 AND holder IS NULL", &[&SqlText(key)])?;
    Ok(deleted > 0)
}

pub(super) fn take_requests(
    transaction: &mut PostgresTransaction<'_>,
    channel: &str,
    holder: &str,
    most: usize,
) -> QueryResult<Vec<TakenRequest>> {
    transaction.execute(
        &format!(
            "DELETE FROM channel_outbox WHERE id IN (
                SELECT id FROM channel_outbox WHERE ends < {SERVER_CLOCK} FOR UPDATE SKIP LOCKED)"
        ),
        &[],
    )?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    let rows = transaction.query(
        "UPDATE channel_outbox SET holder = $2 WHERE id IN (
            SELECT id FROM channel_outbox
            WHERE channel = $1 AND reply IS NULL AND (holder IS NULL OR holder <> $2)
            ORDER BY id LIMIT $3 FOR UPDATE SKIP LOCKED)
         RETURNING id, request",
        &[&channel, &holder, &most],
    )?;
    let mut taken = rows
        .iter()
        .map(|row| {
            let request: SqlText<String> = row.try_get(1)?;
            Ok(TakenRequest { id: row.try_get(0)?, request: request.0 })
        })
        .collect::<QueryResult<Vec<_>>>()?;
    taken.sort_unstable_by_key(|request| request.id);
    Ok(taken)
}

pub(super) fn answer(transaction: &mut PostgresTransaction<'_>, id: i64, reply: &str) -> QueryResult<()> {
    transaction.execute("UPDATE channel_outbox SET reply = $2 WHERE id = $1", &[&id, &SqlText(reply)])?;
    transaction.notify(TOPIC)
}

fn optional(row: &Row, column: usize) -> QueryResult<Option<String>> {
    Ok(row.try_get::<_, Option<SqlText<String>>>(column)?.map(|text| text.0))
}
