//! What people say of answers, and which answers there are to say something of.

use std::time::{Duration, SystemTime};

use hob_core::Source;
use hob_core::routing::Rating;
use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;

use crate::error::StoreError;
use crate::routing::Routing;
use crate::time::Moment;

/// Ratings that are kept.
const MOST: i64 = 10_000;

/// How long an answer of which only the telemetry knows can be rated: it is searched for row by row.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// An answer that somebody may rate.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Answer {
    pub run: String,
    pub engine: String,
    pub model: String,
    pub source: String,
    pub at: Moment,
}

/// How many answers were rated, and how.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Ratings {
    pub good: u64,
    pub bad: u64,
}

impl Routing {
    /// The answer of a run; `None` where nobody knows of one.
    pub fn answer(&self, run: &str, now: SystemTime) -> Result<Option<Answer>, StoreError> {
        self.store.read(|connection| {
            let sql = "SELECT run, engine, model, source, decided FROM router_decision WHERE run = ?1";
            if let Some(answer) = connection.prepare_cached(sql)?.query_row([run], read).optional()? {
                return Ok(Some(answer));
            }
            let sql = format!("{OF_TELEMETRY} AND run = ?2 ORDER BY started DESC LIMIT 1");
            connection.prepare_cached(&sql)?.query_row(params![oldest(now), run], read).optional()
        })
    }

    /// The last answer that somebody may have read: not that of a task or of a measurement.
    pub fn last_answer(&self, now: SystemTime) -> Result<Option<Answer>, StoreError> {
        self.store.read(|connection| {
            // Runs of the command line once shared a name, by which nobody can tell them apart.
            let asked = format!(
                "source NOT IN ('{}', '{}') AND run NOT IN ('', 'ask', 'chat')",
                Source::Scheduler.as_str(),
                Source::Bench.as_str()
            );
            let sql = format!(
                "SELECT run, engine, model, source, decided FROM router_decision WHERE decided >= ?1 AND {asked}
                 ORDER BY decided DESC LIMIT 1"
            );
            let chosen = connection.prepare_cached(&sql)?.query_row([oldest(now)], read).optional()?;
            let sql = format!("{OF_TELEMETRY} AND outcome = 'complete' AND {asked} ORDER BY started DESC LIMIT 1");
            let recorded = connection.prepare_cached(&sql)?.query_row([oldest(now)], read).optional()?;
            Ok(chosen.into_iter().chain(recorded).max_by_key(|answer: &Answer| answer.at))
        })
    }

    /// Keeps what somebody says of an answer, in the place of what was said before, and gives that. Only the last ten thousand
    /// are kept.
    pub fn rate(
        &self,
        answer: &Answer,
        rating: Rating,
        now: SystemTime,
    ) -> Result<Option<Rating>, StoreError> {
        self.store.write(|transaction| {
            let before: Option<String> = transaction
                .prepare_cached("SELECT rating FROM feedback WHERE run = ?1")?
                .query_row([&answer.run], |row| row.get(0))
                .optional()?;
            let sql = "INSERT OR REPLACE INTO feedback (run, rated, rating, engine, model) VALUES (?1, ?2, ?3, ?4, ?5)";
            let rated = Moment::of(now).microseconds();
            let values = params![answer.run, rated, rating.as_str(), answer.engine, answer.model];
            transaction.prepare_cached(sql)?.execute(values)?;
            let sql = "DELETE FROM feedback WHERE rated <
                (SELECT rated FROM feedback ORDER BY rated DESC LIMIT 1 OFFSET ?1)";
            transaction.prepare_cached(sql)?.execute([MOST - 1])?;
            Ok(before.as_deref().and_then(Rating::parse))
        })
    }

    /// What people have said so far.
    pub fn ratings(&self) -> Result<Ratings, StoreError> {
        self.store.read(|connection| {
            Ok(Ratings { good: count(connection, Rating::Good)?, bad: count(connection, Rating::Bad)? })
        })
    }
}

/// Answers of which the telemetry knows, from the moment `?1` on.
const OF_TELEMETRY: &str = "
    SELECT run, engine, model, source, started
    FROM telemetry_inference AS inference JOIN telemetry_series AS series ON series.id = inference.series
    WHERE started >= ?1";

fn oldest(now: SystemTime) -> i64 {
    Moment::of(now.checked_sub(REMEMBERED).unwrap_or(SystemTime::UNIX_EPOCH)).microseconds()
}

fn count(connection: &Connection, rating: Rating) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM feedback WHERE rating = ?1";
    let count: i64 = connection.query_row(sql, [rating.as_str()], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

fn read(row: &Row<'_>) -> rusqlite::Result<Answer> {
    Ok(Answer {
        run: row.get(0)?,
        engine: row.get(1)?,
        model: row.get(2)?,
        source: row.get(3)?,
        at: Moment::from_microseconds(row.get(4)?),
    })
}
