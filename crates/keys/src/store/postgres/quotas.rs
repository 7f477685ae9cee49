//! What servers have taken of the limits. Servers that take shares of one limit wait for each other at its row.

use hob_db::postgres::{PostgresTransaction, QueryResult};

use crate::limits::Period;
use crate::store::columns::signed;
use crate::store::{Lease, QuotaWindow};

const TAKEN: &str = "SELECT taken FROM api_key_quota WHERE key = $1 AND quota = $2 AND begins_at = $3";

pub(super) fn taken(transaction: &mut PostgresTransaction<'_>, window: &QuotaWindow) -> QueryResult<u64> {
    find(transaction, TAKEN, window).map(|taken| taken.unwrap_or(0))
}

fn find(
    transaction: &mut PostgresTransaction<'_>,
    sql: &str,
    window: &QuotaWindow,
) -> QueryResult<Option<u64>> {
    let row = transaction.query_opt(sql, &[&key_of(window), &window.quota, &window.window])?;
    let taken = row.map(|row| row.try_get::<_, i64>(0)).transpose()?;
    Ok(taken.map(|taken| u64::try_from(taken).unwrap_or(0)))
}

fn key_of(window: &QuotaWindow) -> &str {
    &window.key
}

pub(super) fn lease(
    transaction: &mut PostgresTransaction<'_>,
    window: &QuotaWindow,
    wanted: u64,
    limit: u64,
) -> QueryResult<Lease> {
    let lease = Lease::of(wanted, taken_and_locked(transaction, window)?, limit);
    if lease.granted > 0 {
        add(transaction, window, signed(lease.granted))?;
    }
    Ok(lease)
}

/// The same as `taken`, and no other transaction changes it until this one ends.
fn taken_and_locked(transaction: &mut PostgresTransaction<'_>, window: &QuotaWindow) -> QueryResult<u64> {
    let locked = format!("{TAKEN} FOR UPDATE");
    if let Some(taken) = find(transaction, &locked, window)? {
        return Ok(taken);
    }
    // The first lease of a window. Of several at once, one makes the row, and the others wait for it.
    let sql = "
        INSERT INTO api_key_quota (key, quota, begins_at, taken) VALUES ($1, $2, $3, 0)
        ON CONFLICT (key, quota, begins_at) DO NOTHING";
    transaction.execute(sql, &[&key_of(window), &window.quota, &window.window])?;
    find(transaction, &locked, window).map(|taken| taken.unwrap_or(0))
}

/// Adds to what was taken, or takes from it.
pub(super) fn add(
    transaction: &mut PostgresTransaction<'_>,
    window: &QuotaWindow,
    amount: i64,
) -> QueryResult<()> {
    // Calculated with numbers of any size, because a sum may be larger than the column can store.
    let sql = "
        INSERT INTO api_key_quota (key, quota, begins_at, taken) VALUES ($1, $2, $3, greatest($4::bigint, 0))
        ON CONFLICT (key, quota, begins_at) DO UPDATE
        SET taken = greatest(least(api_key_quota.taken::numeric + $4::bigint, 9223372036854775807), 0)::bigint";
    transaction.execute(sql, &[&key_of(window), &window.quota, &window.window, &amount]).map(drop)
}

/// Deletes the windows of this period that began before a moment.
pub(super) fn forget(
    transaction: &mut PostgresTransaction<'_>,
    period: Period,
    before: i64,
) -> QueryResult<()> {
    let sql = "DELETE FROM api_key_quota WHERE begins_at < $1 AND quota LIKE '%/' || $2::text";
    transaction.execute(sql, &[&before, &period.as_str()]).map(drop)
}
