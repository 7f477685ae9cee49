//! Single calls: the last ones, the last of a kind, and the next ones of an export.

use hob_core::time::from_microseconds;
use hob_core::{Moment, RequestSource};
use hob_db::postgres::{PostgresTransaction, QueryError, QueryResult, Row, clean_name};

use crate::call_page::{CallCursor, CallPage, CallQuery, MAX_READ_CALLS};
use crate::call_record::{CallOutcome, CallRecord, tokens_per_second};
use crate::inference::Energy;
use crate::savings::Dollars;
use crate::store::{ExportPage, ExportPosition};

/// Calls that an export reads at once.
const PAGE_CALLS: usize = 1000;

const COLUMNS: &str = "started, run, source, engine, model, agent, streamed, prompt_tokens, completion_tokens, cached_tokens, \
    estimated, latency_us, first_token_us, outcome, finish_reason, error, cost_pico, energy_uj, id, key, end_user, \
    request_id, route, host, queue_us";

/// The column of the id.
const ID: usize = 18;

pub(super) fn first_moment(transaction: &mut PostgresTransaction<'_>) -> QueryResult<Option<Moment>> {
    let row = transaction.query_one("SELECT min(started) FROM telemetry_call", &[])?;
    Ok(row.try_get::<_, Option<i64>>(0)?.map(Moment::from_microseconds))
}

pub(super) fn recent(transaction: &mut PostgresTransaction<'_>, most: usize) -> QueryResult<Vec<CallRecord>> {
    let sql = format!("SELECT {COLUMNS} FROM telemetry_call ORDER BY started DESC, id DESC LIMIT $1");
    let most = i64::try_from(most).unwrap_or(i64::MAX);
    transaction.query(&sql, &[&most])?.iter().map(read).collect()
}

pub(super) fn call_page(
    transaction: &mut PostgresTransaction<'_>,
    query: &CallQuery,
) -> QueryResult<CallPage> {
    call_page_among(transaction, query, MAX_READ_CALLS)
}

/// A page of calls that are found among `most_read`.
pub(super) fn call_page_among(
    transaction: &mut PostgresTransaction<'_>,
    query: &CallQuery,
    most_read: usize,
) -> QueryResult<CallPage> {
    let sql = format!(
        "SELECT {COLUMNS} FROM telemetry_call
         WHERE started <= $1 AND started > $7 AND ($2::text IS NULL OR outcome = $2)
             AND ($3::text IS NULL OR model = $3) AND ($4::text IS NULL OR key = $4)
             AND ($5::text IS NULL OR run = $5 OR request_id = $5)
         ORDER BY started DESC, id DESC LIMIT $6"
    );
    let (begin, seen) = query.begin();
    // One more says whether there is another page.
    let most = query.limit() + seen + 1;
    let CallQuery { outcome, model, key, request, .. } = query;
    let is_search = outcome.is_some() || model.is_some() || key.is_some() || request.is_some();
    let end = if is_search { end_of_search(transaction, begin, most_read)? } else { None };
    let outcome = outcome.map(CallOutcome::as_str);
    let [model, key, request] =
        [model, key, request].map(|text| text.as_deref().map(|text| clean_name(text).into_owned()));
    let (limit, after) = (most as i64, end.unwrap_or(i64::MIN));
    let rows = transaction.query(&sql, &[&begin, &outcome, &model, &key, &request, &limit, &after])?;
    let found = rows.iter().map(read).collect::<Result<Vec<_>, _>>()?;
    let page = CallPage::of(query, found);
    let rest = end.map(|end| CallCursor { started: Moment::from_microseconds(end), seen: 0 });
    Ok(CallPage { next: page.next.or(rest), ..page })
}

/// The start of the first call that a search does not look at; `None` if it looks at all. Calls of the moment where it begins are looked at
/// together, so that the next search begins earlier.
fn end_of_search(
    transaction: &mut PostgresTransaction<'_>,
    begin: i64,
    most_read: usize,
) -> QueryResult<Option<i64>> {
    let sql = "SELECT started FROM telemetry_call WHERE started <= $1 ORDER BY started DESC, id DESC LIMIT 1 OFFSET $2";
    let skipped = i64::try_from(most_read).unwrap_or(i64::MAX);
    let row = transaction.query_opt(sql, &[&begin, &skipped])?;
    let end = row.map(|row| row.try_get::<_, i64>(0)).transpose()?;
    Ok(end.filter(|end| *end < begin))
}

pub(super) fn find_run(
    transaction: &mut PostgresTransaction<'_>,
    run: &str,
    since: Moment,
) -> QueryResult<Option<CallRecord>> {
    // Calls of one run are few. They are found by its index, not by their start.
    let sql = format!(
        "SELECT {COLUMNS} FROM telemetry_call WHERE run = $1 AND started >= $2 ORDER BY started DESC, id DESC LIMIT 1"
    );
    let found = transaction.query_opt(&sql, &[&clean_name(run), &since.microseconds()])?;
    found.as_ref().map(read).transpose()
}

pub(super) fn last_complete(
    transaction: &mut PostgresTransaction<'_>,
    since: Moment,
    except_sources: &[RequestSource],
    except_runs: &[&str],
) -> QueryResult<Option<CallRecord>> {
    let sql = format!(
        "SELECT {COLUMNS} FROM telemetry_call
         WHERE started >= $1 AND outcome = 'complete' AND source <> ALL ($2::text[]) AND run <> ALL ($3::text[])
         ORDER BY started DESC, id DESC LIMIT 1"
    );
    let sources: Vec<&str> = except_sources.iter().map(|source| source.as_str()).collect();
    let runs: Vec<_> = except_runs.iter().map(|run| clean_name(run)).collect();
    let found = transaction.query_opt(&sql, &[&since.microseconds(), &sources, &runs])?;
    found.as_ref().map(read).transpose()
}

/// The next calls in the order of their starts.
///
/// Ids are given before a transaction commits, so a call may appear after another one with a larger id. No call is lost by that,
/// because the position is a start and not an id: `newest` only says where an export ends. It is read from the snapshot of the
/// first page, so every call that was recorded before the export has at most this id. A call that is committed later with a
/// smaller id is either exported in its place or belongs to the next export.
pub(super) fn page_after(
    transaction: &mut PostgresTransaction<'_>,
    mut position: ExportPosition,
) -> QueryResult<ExportPage> {
    let newest = match position.newest {
        Some(newest) => newest,
        None => {
            let row = transaction.query_one("SELECT coalesce(max(id), 0) FROM telemetry_call", &[])?;
            row.try_get(0)?
        }
    };
    position.newest = Some(newest);
    let sql = format!(
        "SELECT {COLUMNS} FROM telemetry_call WHERE (started, id) > ($1, $2) AND id <= $3 ORDER BY started, id LIMIT $4"
    );
    // One more says whether there is another page.
    let limit = PAGE_CALLS as i64 + 1;
    let mut rows = transaction.query(&sql, &[&position.first_started, &position.id, &newest, &limit])?;
    let next = match rows.len() > PAGE_CALLS {
        true => rows.pop().map(|row| row.try_get(0).map(Moment::from_microseconds)).transpose()?,
        false => None,
    };
    if let Some(last) = rows.last() {
        position = ExportPosition { first_started: last.try_get(0)?, id: last.try_get(ID)?, ..position };
    }
    let calls = rows.iter().map(read).collect::<Result<_, _>>()?;
    Ok(ExportPage { calls, position, next })
}

fn read(row: &Row) -> QueryResult<CallRecord> {
    let count = |column: usize| row.try_get::<_, i64>(column).map(i64::unsigned_abs);
    let count_if_known =
        |column: usize| row.try_get::<_, Option<i64>>(column).map(|count| count.map(i64::unsigned_abs));
    let outcome: &str = row.try_get(13)?;
    let outcome = CallOutcome::parse(outcome)
        .ok_or_else(|| QueryError::unreadable("outcome", format!("'{outcome}' is unknown")))?;
    let (completion_tokens, latency) = (count(8)?, from_microseconds(row.try_get(11)?));
    let agent: String = row.try_get(5)?;
    let key: String = row.try_get(19)?;
    Ok(CallRecord {
        started: Moment::from_microseconds(row.try_get(0)?),
        run: row.try_get(1)?,
        source: row.try_get(2)?,
        engine: row.try_get(3)?,
        model: row.try_get(4)?,
        agent: Some(agent).filter(|agent| !agent.is_empty()),
        streamed: row.try_get(6)?,
        prompt_tokens: count(7)?,
        completion_tokens,
        cached_tokens: count_if_known(9)?,
        estimated: row.try_get(10)?,
        latency,
        first_token: row.try_get::<_, Option<i64>>(12)?.map(from_microseconds),
        tokens_per_second: tokens_per_second(outcome, completion_tokens, latency),
        outcome,
        finish_reason: row.try_get(14)?,
        error: row.try_get(15)?,
        cost: count_if_known(16)?.map(|pico| Dollars::from_pico(u128::from(pico))),
        energy: count_if_known(17)?.map(Energy::from_microjoules),
        key: Some(key).filter(|key| !key.is_empty()),
        end_user: row.try_get(20)?,
        request_id: row.try_get(21)?,
        route: row.try_get(22)?,
        host: row.try_get(23)?,
        queued: row.try_get::<_, Option<i64>>(24)?.map(from_microseconds),
    })
}
