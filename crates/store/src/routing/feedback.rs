//! What people say of answers.

use std::time::SystemTime;

use hob_core::time::Moment;
use hob_db::DatabaseError;
use hob_routing::{ClassRecord, Rating};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use crate::routing::{Kept, Routing, learn};

/// Ratings that are kept.
const MOST: i64 = 10_000;

/// A rating of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewRating<'a> {
    pub run: &'a str,
    pub engine: &'a str,
    pub model: &'a str,
    pub rating: Rating,
    pub rated: SystemTime,
}

/// How many answers were rated, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Ratings {
    pub good: u64,
    pub bad: u64,
}

impl Routing {
    /// Keeps what somebody says of an answer, in the place of what was said before. Where that is news, `lesson` changes what is
    /// kept of the choice and of its class; says whether there is such a choice. Only the last ten thousand are kept.
    pub fn rate(
        &self,
        new: &NewRating<'_>,
        lesson: impl FnOnce(&mut Kept, &mut ClassRecord),
    ) -> Result<bool, DatabaseError> {
        let NewRating { run, engine, model, rating, rated } = *new;
        self.database.write(|transaction| {
            let before: Option<String> = transaction
                .prepare_cached("SELECT rating FROM feedback WHERE run = ?1")?
                .query_row([run], |row| row.get(0))
                .optional()?;
            let sql = "INSERT OR REPLACE INTO feedback (run, rated, rating, engine, model) VALUES (?1, ?2, ?3, ?4, ?5)";
            let rated = Moment::of(rated).microseconds();
            let values = params![run, rated, rating.as_str(), engine, model];
            transaction.prepare_cached(sql)?.execute(values)?;
            let sql = "DELETE FROM feedback WHERE rated <
                (SELECT rated FROM feedback ORDER BY rated DESC LIMIT 1 OFFSET ?1)";
            transaction.prepare_cached(sql)?.execute([MOST - 1])?;
            // Saying the same twice does not make it truer.
            let is_news = before.as_deref() != Some(rating.as_str());
            learn(transaction, run, |kept, record| {
                if is_news {
                    lesson(kept, record);
                }
            })
        })
    }

    /// What people have said so far.
    pub fn ratings(&self) -> Result<Ratings, DatabaseError> {
        self.database.read(|connection| {
            Ok(Ratings { good: count(connection, Rating::Good)?, bad: count(connection, Rating::Bad)? })
        })
    }
}

fn count(connection: &Connection, rating: Rating) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM feedback WHERE rating = ?1";
    let count: i64 = connection.query_row(sql, [rating.as_str()], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}
