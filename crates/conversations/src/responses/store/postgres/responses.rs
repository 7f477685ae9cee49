//! Responses, and the responses that they continue.

use std::collections::HashMap;
use std::time::SystemTime;

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryResult, Row, SERVER_CLOCK, SqlText};

use super::text;
use crate::responses::limits::{MAX_CHAIN, MAX_CHAIN_BYTES};
use crate::responses::prune::number;
use crate::responses::{ResponseChain, ResponseLease, ResponseOwner, StoredResponse};

pub(super) fn save(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    response: &StoredResponse,
    now: SystemTime,
) -> QueryResult<()> {
    let StoredResponse { id, previous, body, input, lease } = response;
    transaction.execute(
        &format!(
            "INSERT INTO stored_response (id, owner, previous, body, input, lease, bytes, last_used)
             VALUES ($1, $2, $3, $4, $5, {SERVER_CLOCK} + $6, $7, $8)
             ON CONFLICT (id) DO UPDATE SET owner = excluded.owner, previous = excluded.previous, body = excluded.body,
                input = excluded.input, lease = excluded.lease, bytes = excluded.bytes, last_used = excluded.last_used"
        ),
        &[
            &SqlText(id),
            &SqlText(owner.as_str()),
            &previous.as_deref().map(SqlText),
            &SqlText(body),
            &SqlText(input),
            &lease.map(ResponseLease::microseconds),
            &number(body.len() + input.len()),
            &Moment::of(now).microseconds(),
        ],
    )?;
    Ok(())
}

/// Replaces a response that is being written; `false` if it was deleted or ended meanwhile, by this or another process.
pub(super) fn update(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    response: &StoredResponse,
    now: SystemTime,
) -> QueryResult<bool> {
    let StoredResponse { id, previous, body, input, lease } = response;
    let updated = transaction.execute(
        &format!(
            "UPDATE stored_response SET previous = $3, body = $4, input = $5, lease = {SERVER_CLOCK} + $6, bytes = $7,
                last_used = $8
             WHERE id = $1 AND owner = $2 AND lease IS NOT NULL"
        ),
        &[
            &SqlText(id),
            &SqlText(owner.as_str()),
            &previous.as_deref().map(SqlText),
            &SqlText(body),
            &SqlText(input),
            &lease.map(ResponseLease::microseconds),
            &number(body.len() + input.len()),
            &Moment::of(now).microseconds(),
        ],
    )?;
    Ok(updated > 0)
}

pub(super) fn find(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: &str,
) -> QueryResult<Option<StoredResponse>> {
    let row = transaction.query_opt(
        &format!("SELECT {} FROM stored_response WHERE owner = $1 AND id = $2", columns()),
        &[&SqlText(owner.as_str()), &SqlText(id)],
    )?;
    row.as_ref().map(response).transpose()
}

/// The columns that [`response`] reads.
fn columns() -> String {
    format!("id, previous, body, input, lease > {SERVER_CLOCK}")
}

fn response(row: &Row) -> QueryResult<StoredResponse> {
    Ok(StoredResponse {
        id: text(row, 0)?,
        previous: row.try_get::<_, Option<SqlText<String>>>(1)?.map(|previous| previous.0),
        body: text(row, 2)?,
        input: text(row, 3)?,
        lease: row.try_get::<_, Option<bool>>(4)?.map(ResponseLease::read),
    })
}

pub(super) fn chain(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: &str,
    now: SystemTime,
) -> QueryResult<ResponseChain> {
    let (ids, end) = walk(transaction, owner, id)?;
    touch(transaction, &ids, now)?;
    if let Some(end) = end {
        return Ok(end);
    }
    let rows = transaction.query(
        &format!("SELECT {} FROM stored_response WHERE owner = $1 AND id = ANY($2)", columns()),
        &[&SqlText(owner.as_str()), &keys(&ids)],
    )?;
    let mut found = HashMap::with_capacity(rows.len());
    for row in &rows {
        let response = response(row)?;
        found.insert(response.id.clone(), response);
    }
    let mut responses = Vec::with_capacity(ids.len());
    for id in ids.into_iter().rev() {
        match found.remove(&id) {
            Some(response) => responses.push(response),
            // Deleted since the walk.
            None => return Ok(ResponseChain::Missing(id)),
        }
    }
    Ok(ResponseChain::Whole(responses))
}

/// The ids of a response and of those that it continues, newest first, and why the chain is not whole.
fn walk(
    transaction: &mut PostgresTransaction<'_>,
    owner: &ResponseOwner,
    id: &str,
) -> QueryResult<(Vec<String>, Option<ResponseChain>)> {
    let rows = transaction.query(
        "WITH RECURSIVE chain (place, id, previous, total) AS (
            SELECT 1::bigint, id, previous, bytes FROM stored_response WHERE owner = $1 AND id = $2
            UNION ALL
            SELECT chain.place + 1, next.id, next.previous, chain.total + next.bytes
            FROM chain JOIN stored_response AS next ON next.id = chain.previous
            WHERE next.owner = $1 AND chain.place < $3 AND chain.total <= $4)
         SELECT id, previous, total FROM chain ORDER BY place",
        &[&SqlText(owner.as_str()), &SqlText(id), &number(MAX_CHAIN), &number(MAX_CHAIN_BYTES)],
    )?;
    let Some(last) = rows.last() else {
        return Ok((Vec::new(), Some(ResponseChain::Missing(id.to_owned()))));
    };
    let ids = rows.iter().map(|row| text(row, 0)).collect::<Result<Vec<_>, _>>()?;
    let next = last.try_get::<_, Option<SqlText<String>>>(1)?;
    let is_too_long = ids.len() >= MAX_CHAIN || last.try_get::<_, i64>(2)? > number(MAX_CHAIN_BYTES);
    let end =
        next.map(|next| if is_too_long { ResponseChain::TooLong } else { ResponseChain::Missing(next.0) });
    Ok((ids, end))
}

/// Notes the use of responses. One that another process writes now is in use anyway, so nothing waits for it.
fn touch(transaction: &mut PostgresTransaction<'_>, ids: &[String], now: SystemTime) -> QueryResult<()> {
    transaction.execute(
        "UPDATE stored_response SET last_used = $2 WHERE id IN (
            SELECT id FROM stored_response WHERE id = ANY($1) FOR NO KEY UPDATE SKIP LOCKED)",
        &[&keys(ids), &Moment::of(now).microseconds()],
    )?;
    Ok(())
}

fn keys(ids: &[String]) -> Vec<SqlText<&str>> {
    ids.iter().map(|id| SqlText(id.as_str())).collect()
}
