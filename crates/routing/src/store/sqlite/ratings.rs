//! Ratings as rows.

use hob_core::Moment;
use rusqlite::{Connection, OptionalExtension, params};

use crate::records::Rating;
use crate::store::{MAX_RATINGS, NewRating, Ratings};

/// Saves a rating, and returns the one that it replaces.
pub(super) fn replace(connection: &Connection, new: &NewRating<'_>) -> rusqlite::Result<Option<String>> {
    let NewRating { run, engine, model, rating, rated } = *new;
    let before = connection
        .prepare_cached("SELECT rating FROM feedback WHERE run = ?1")?
        .query_row([run], |row| row.get(0))
        .optional()?;
    let sql =
        "INSERT OR REPLACE INTO feedback (run, rated, rating, engine, model) VALUES (?1, ?2, ?3, ?4, ?5)";
    let rated = Moment::of(rated).microseconds();
    connection.prepare_cached(sql)?.execute(params![run, rated, rating.as_str(), engine, model])?;
    Ok(before)
}

/// Deletes the oldest ratings beyond the limit.
pub(super) fn prune(connection: &Connection) -> rusqlite::Result<()> {
    let sql = "DELETE FROM feedback WHERE rated <
        (SELECT rated FROM feedback ORDER BY rated DESC LIMIT 1 OFFSET ?1)";
    connection.prepare_cached(sql)?.execute([MAX_RATINGS - 1])?;
    Ok(())
}

pub(super) fn count(connection: &Connection) -> rusqlite::Result<Ratings> {
    let of = |rating: Rating| -> rusqlite::Result<u64> {
        let sql = "SELECT count(*) FROM feedback WHERE rating = ?1";
        let count: i64 = connection.query_row(sql, [rating.as_str()], |row| row.get(0))?;
        Ok(count.unsigned_abs())
    };
    Ok(Ratings { good: of(Rating::Good)?, bad: of(Rating::Bad)? })
}
