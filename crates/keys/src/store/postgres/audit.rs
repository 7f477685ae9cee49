//! The audit log. One transaction at a time adds an entry, so that each follows the one before it.

use hob_db::postgres::{PostgresTransaction, QueryResult, Row, SqlText};

use super::rows::unreadable;
use crate::audit::{AuditActor, AuditEntry, AuditEvent, FIRST};
use crate::store::columns::{AUDIT_COLUMNS, limited, moment};

/// Held until the end of the transaction. It is the last lock that a transaction takes, so that none waits for another in a circle.
const LOCK: &str = "hob.audit";

pub(super) fn append(
    transaction: &mut PostgresTransaction<'_>,
    event: &AuditEvent,
) -> QueryResult<AuditEntry> {
    transaction.lock(LOCK)?;
    let last =
        transaction.query_opt("SELECT number, hash FROM audit_entry ORDER BY number DESC LIMIT 1", &[])?;
    let (number, previous) = match last {
        Some(row) => (row.try_get(0)?, row.try_get(1)?),
        None => (0, FIRST.to_owned()),
    };
    let entry = AuditEntry::after(number, previous, event.clone());
    let sql =
        format!("INSERT INTO audit_entry ({AUDIT_COLUMNS}) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)");
    // The hash is of the exact text, so every text is stored exactly.
    let AuditEvent { at, actor, action, subject, detail } = &entry.event;
    transaction.execute(
        &sql,
        &[
            &entry.number,
            &at.as_microsecond(),
            &SqlText(&actor.name),
            &SqlText(&actor.origin),
            &SqlText(action),
            &SqlText(subject),
            &SqlText(detail),
            &entry.previous,
            &entry.hash,
        ],
    )?;
    Ok(entry)
}

pub(super) fn after(
    transaction: &mut PostgresTransaction<'_>,
    number: i64,
    limit: usize,
) -> QueryResult<Vec<AuditEntry>> {
    let sql = format!("SELECT {AUDIT_COLUMNS} FROM audit_entry WHERE number > $1 ORDER BY number LIMIT $2");
    transaction.query(&sql, &[&number, &limited(limit)])?.iter().map(read).collect()
}

pub(super) fn latest(
    transaction: &mut PostgresTransaction<'_>,
    limit: usize,
) -> QueryResult<Vec<AuditEntry>> {
    let sql = format!("SELECT {AUDIT_COLUMNS} FROM audit_entry ORDER BY number DESC LIMIT $1");
    transaction.query(&sql, &[&limited(limit)])?.iter().map(read).collect()
}

fn read(row: &Row) -> QueryResult<AuditEntry> {
    let text = |column: usize| -> QueryResult<String> {
        let SqlText(text) = row.try_get::<_, SqlText<String>>(column)?;
        Ok(text)
    };
    Ok(AuditEntry {
        number: row.try_get(0)?,
        event: AuditEvent {
            at: moment("at", row.try_get(1)?).map_err(unreadable)?,
            actor: AuditActor { name: text(2)?, origin: text(3)? },
            action: text(4)?,
            subject: text(5)?,
            detail: text(6)?,
        },
        previous: row.try_get(7)?,
        hash: row.try_get(8)?,
    })
}
