//! What servers have taken of the limits.

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use crate::limits::Period;
use crate::store::columns::signed;
use crate::store::{Lease, QuotaWindow};

pub(super) fn taken(connection: &Connection, window: &QuotaWindow) -> rusqlite::Result<u64> {
    let QuotaWindow { key, quota, window } = window;
    let taken: Option<i64> = connection
        .prepare_cached("SELECT taken FROM api_key_quota WHERE key = ?1 AND quota = ?2 AND begins_at = ?3")?
        .query_row(params![key, quota, window], |row| row.get(0))
        .optional()?;
    Ok(taken.and_then(|taken| u64::try_from(taken).ok()).unwrap_or(0))
}

pub(super) fn lease(
    transaction: &Transaction<'_>,
    window: &QuotaWindow,
    wanted: u64,
    limit: u64,
) -> rusqlite::Result<Lease> {
    let lease = Lease::of(wanted, taken(transaction, window)?, limit);
    if lease.granted > 0 {
        add(transaction, window, signed(lease.granted))?;
    }
    Ok(lease)
}

pub(super) fn charge(
    transaction: &Transaction<'_>,
    window: &QuotaWindow,
    amount: u64,
) -> rusqlite::Result<()> {
    add(transaction, window, signed(amount))
}

pub(super) fn give_back(
    transaction: &Transaction<'_>,
    window: &QuotaWindow,
    amount: u64,
) -> rusqlite::Result<()> {
    add(transaction, window, -signed(amount))
}

fn add(transaction: &Transaction<'_>, window: &QuotaWindow, amount: i64) -> rusqlite::Result<()> {
    let QuotaWindow { key, quota, window } = window;
    // SQLite turns a sum that overflows into a float; `min` limits it to the largest integer.
    transaction
        .prepare_cached(
            "INSERT INTO api_key_quota (key, quota, begins_at, taken)
             VALUES (?1, ?2, ?3, max(?4, 0))
             ON CONFLICT DO UPDATE SET taken = max(min(taken + ?4, 9223372036854775807), 0)",
        )?
        .execute(params![key, quota, window, amount])
        .map(drop)
}

/// Deletes the windows of this period that began before a moment.
pub(super) fn forget(transaction: &Transaction<'_>, period: Period, before: i64) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("DELETE FROM api_key_quota WHERE begins_at < ?1 AND quota LIKE '%/' || ?2")?
        .execute(params![before, period.as_str()])
        .map(drop)
}
