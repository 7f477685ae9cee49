//! Messages that were taken in: each once, and remembered until it has been dealt with.

use std::time::SystemTime;

use hob_core::Moment;
use hob_db::DatabaseError;
use rusqlite::{OptionalExtension, params};

use super::Conversations;

/// As many messages as are remembered. One that comes again after so many others is taken for a new one.
pub(crate) const REMEMBERED: i64 = 20_000;

/// A message that was taken in and not dealt with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unsettled {
    pub id: i64,
    pub message: String,
}

impl Conversations {
    /// Takes a message in and gives it a number; `None` when one of that identity was taken in before. Safe when several
    /// processes do it at once.
    pub fn take(
        &self,
        identity: Option<&str>,
        message: &str,
        now: SystemTime,
    ) -> Result<Option<i64>, DatabaseError> {
        let received = Moment::of(now).microseconds();
        self.database.write(|transaction| {
            let id: Option<i64> = transaction
                .prepare_cached(
                    "INSERT INTO channel_inbox (identity, message, received) VALUES (?1, ?2, ?3)
                     ON CONFLICT (identity) DO NOTHING RETURNING id",
                )?
                .query_row(params![identity, message, received], |row| row.get(0))
                .optional()?;
            if let Some(id) = id {
                transaction
                    .prepare_cached("DELETE FROM channel_inbox WHERE id <= ?1")?
                    .execute([id - REMEMBERED])?;
            }
            Ok(id)
        })
    }

    /// The message has been dealt with; its text is forgotten, its identity not.
    pub fn settle(&self, id: i64) -> Result<(), DatabaseError> {
        self.database.write(|transaction| {
            transaction
                .prepare_cached("UPDATE channel_inbox SET message = NULL WHERE id = ?1")?
                .execute([id])
                .map(drop)
        })
    }

    /// The message has not been dealt with after all.
    pub fn reopen(&self, id: i64, message: &str) -> Result<(), DatabaseError> {
        self.database.write(|transaction| {
            transaction
                .prepare_cached("UPDATE channel_inbox SET message = ?2 WHERE id = ?1")?
                .execute(params![id, message])
                .map(drop)
        })
    }

    /// What was taken in and not dealt with, in the order it came.
    pub fn unsettled(&self) -> Result<Vec<Unsettled>, DatabaseError> {
        self.database.read(|connection| {
            let mut statement = connection
                .prepare("SELECT id, message FROM channel_inbox WHERE message IS NOT NULL ORDER BY id")?;
            let rows =
                statement.query_map([], |row| Ok(Unsettled { id: row.get(0)?, message: row.get(1)? }))?;
            rows.collect()
        })
    }
}
