//! Deletes what is beyond the limits.

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryResult, SqlText};

use crate::responses::ResponseOwner;
use crate::responses::limits::StoredLimits;
use crate::responses::prune::Stored;

/// Deletes what is beyond the limits of a caller, and of all callers like it: what was not used for the longest time goes first. What
/// another process uses or deletes now is skipped, so that two that do this at once never wait for each other.
pub(super) fn prune(
    transaction: &mut PostgresTransaction<'_>,
    stored: Stored,
    owner: &ResponseOwner,
    newest: &str,
    now: SystemTime,
) -> QueryResult<()> {
    let (limits, all) = (StoredLimits::of(owner), StoredLimits::of_all_like(owner));
    let oldest = now.checked_sub(limits.age).map_or(0, |oldest| Moment::of(oldest).microseconds());
    let ([rows, bytes], [all_rows, all_bytes]) = (stored.most(&limits), stored.most(&all));
    let [first, last] = owner.all_like();
    let table = stored.table();
    transaction.execute(
        &format!(
            "DELETE FROM {table} WHERE id IN (
                SELECT id FROM {table} WHERE owner BETWEEN $1 AND $2 AND id <> $3 AND (last_used < $4 OR id IN (
                    SELECT id FROM (
                        SELECT id,
                            row_number() OVER own AS place,
                            sum(bytes) OVER own AS total,
                            row_number() OVER every AS place_of_all,
                            sum(bytes) OVER every AS total_of_all
                        FROM {table} WHERE owner BETWEEN $1 AND $2
                        WINDOW own AS (PARTITION BY owner ORDER BY last_used DESC, id DESC),
                            every AS (ORDER BY last_used DESC, id DESC)) AS places
                    WHERE place > $5 OR total > $6::bigint OR place_of_all > $7 OR total_of_all > $8::bigint))
                FOR UPDATE SKIP LOCKED)"
        ),
        &[&first, &last, &SqlText(newest), &oldest, &rows, &bytes, &all_rows, &all_bytes],
    )?;
    Ok(())
}
