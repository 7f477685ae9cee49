//! The audit log.

use rusqlite::{Connection, OptionalExtension, Row, Transaction, params};

use super::rows::unreadable;
use crate::audit::{AuditActor, AuditEntry, AuditEvent, FIRST};
use crate::store::columns::{AUDIT_COLUMNS, limited, moment};

pub(super) fn append(transaction: &Transaction<'_>, event: &AuditEvent) -> rusqlite::Result<AuditEntry> {
    let last: Option<(i64, String)> = transaction
        .prepare_cached("SELECT number, hash FROM audit_entry ORDER BY number DESC LIMIT 1")?
        .query_row([], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let (number, previous) = last.unwrap_or_else(|| (0, FIRST.to_owned()));
    let entry = AuditEntry::after(number, previous, event.clone());
    transaction
        .prepare_cached(&format!(
            "INSERT INTO audit_entry ({AUDIT_COLUMNS}) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)"
        ))?
        .execute(params![
            entry.number,
            entry.event.at.as_microsecond(),
            entry.event.actor.name,
            entry.event.actor.origin,
            entry.event.action,
            entry.event.subject,
            entry.event.detail,
            entry.previous,
            entry.hash,
        ])?;
    Ok(entry)
}

pub(super) fn after(connection: &Connection, number: i64, limit: usize) -> rusqlite::Result<Vec<AuditEntry>> {
    let sql = format!("SELECT {AUDIT_COLUMNS} FROM audit_entry WHERE number > ?1 ORDER BY number LIMIT ?2");
    connection.prepare_cached(&sql)?.query_map(params![number, limited(limit)], read)?.collect()
}

pub(super) fn latest(connection: &Connection, limit: usize) -> rusqlite::Result<Vec<AuditEntry>> {
    let sql = format!("SELECT {AUDIT_COLUMNS} FROM audit_entry ORDER BY number DESC LIMIT ?1");
    connection.prepare_cached(&sql)?.query_map(params![limited(limit)], read)?.collect()
}

fn read(row: &Row<'_>) -> rusqlite::Result<AuditEntry> {
    let at = moment("at", row.get(1)?).map_err(unreadable)?;
    Ok(AuditEntry {
        number: row.get(0)?,
        event: AuditEvent {
            at,
            actor: AuditActor { name: row.get(2)?, origin: row.get(3)? },
            action: row.get(4)?,
            subject: row.get(5)?,
            detail: row.get(6)?,
        },
        previous: row.get(7)?,
        hash: row.get(8)?,
    })
}
