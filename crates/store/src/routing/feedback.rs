//! What people say of answers, and which answers there are to say something of.

use std::time::{Duration, SystemTime};

use hob_core::RequestSource;
use hob_db::DatabaseError;
use hob_routing::{ClassRecord, Rating};
use rusqlite::{Connection, OptionalExtension, params};
use serde::Serialize;

use crate::routing::{Kept, Routing, learn};
use crate::telemetry::{Outcome, Row, Search, newest};
use crate::time::Moment;

/// Ratings that are kept.
const MOST: i64 = 10_000;

/// How long an answer of which only the telemetry knows can be rated: it is searched for page by page.
const REMEMBERED: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// Who asks for answers that nobody reads.
const UNREAD: [RequestSource; 2] = [RequestSource::Scheduler, RequestSource::Bench];

/// Runs of the command line once shared a name, by which nobody can tell them apart.
const NAMELESS: [&str; 3] = ["", "ask", "chat"];

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
    pub fn answer(&self, run: &str, now: SystemTime) -> Result<Option<Answer>, DatabaseError> {
        self.database.read(|connection| {
            let sql = "SELECT run, engine, model, source, decided FROM router_decision WHERE run = ?1";
            if let Some(answer) = connection.prepare_cached(sql)?.query_row([run], read).optional()? {
                return Ok(Some(answer));
            }
            let quoted = serde_json::Value::from(run).to_string();
            let search = Search { since: oldest(now), text: &quoted };
            let recorded = newest(connection, &search, |inference, _| inference.run == run)?;
            Ok(recorded.map(Answer::from))
        })
    }

    /// The last answer that somebody may have read: not that of a task or of a measurement.
    pub fn last_answer(&self, now: SystemTime) -> Result<Option<Answer>, DatabaseError> {
        self.database.read(|connection| {
            let since = oldest(now);
            let sql = format!(
                "SELECT run, engine, model, source, decided FROM router_decision
                 WHERE answered AND decided >= ?1 AND source NOT IN ('{}') AND run NOT IN ('{}') ORDER BY decided DESC LIMIT 1",
                UNREAD.map(RequestSource::as_str).join("', '"),
                NAMELESS.join("', '"),
            );
            let chosen = connection.prepare_cached(&sql)?.query_row([since.microseconds()], read).optional()?;
            let search = Search { since, text: "\"complete\"" };
            let recorded = newest(connection, &search, |inference, name| {
                inference.outcome == Outcome::Complete
                    && !UNREAD.iter().any(|source| source.as_str() == name.source)
                    && !NAMELESS.contains(&&*inference.run)
            })?;
            Ok(chosen.into_iter().chain(recorded.map(Answer::from)).max_by_key(|answer: &Answer| answer.at))
        })
    }

    /// Keeps what somebody says of an answer, in the place of what was said before. Where that is news, `lesson` changes what is
    /// kept of the choice and of its class; says whether there is such a choice. Only the last ten thousand are kept.
    pub fn rate(
        &self,
        answer: &Answer,
        rating: Rating,
        now: SystemTime,
        lesson: impl FnOnce(&mut Kept, &mut ClassRecord),
    ) -> Result<bool, DatabaseError> {
        self.database.write(|transaction| {
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
            // Saying the same twice does not make it truer.
            let is_news = before.as_deref() != Some(rating.as_str());
            learn(transaction, &answer.run, |kept, record| {
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

fn oldest(now: SystemTime) -> Moment {
    Moment::of(now.checked_sub(REMEMBERED).unwrap_or(SystemTime::UNIX_EPOCH))
}

fn count(connection: &Connection, rating: Rating) -> rusqlite::Result<u64> {
    let sql = "SELECT count(*) FROM feedback WHERE rating = ?1";
    let count: i64 = connection.query_row(sql, [rating.as_str()], |row| row.get(0))?;
    Ok(count.unsigned_abs())
}

impl From<Row> for Answer {
    fn from(recorded: Row) -> Self {
        let Row { run, engine, model, source, started, .. } = recorded;
        Answer { run, engine, model, source, at: started }
    }
}

fn read(row: &rusqlite::Row<'_>) -> rusqlite::Result<Answer> {
    Ok(Answer {
        run: row.get(0)?,
        engine: row.get(1)?,
        model: row.get(2)?,
        source: row.get(3)?,
        at: Moment::from_microseconds(row.get(4)?),
    })
}
