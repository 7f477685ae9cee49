//! Ratings as rows.

use hob_core::Moment;
use hob_db::postgres::{PostgresTransaction, QueryResult, SqlText};

use crate::records::Rating;
use crate::store::{MAX_RATINGS, NewRating, Ratings};

/// Saves a rating, and returns the one that it replaces.
pub(super) fn replace(
    transaction: &mut PostgresTransaction<'_>,
    new: &NewRating<'_>,
) -> QueryResult<Option<String>> {
    let NewRating { run, engine, model, rating, rated } = *new;
    let run = SqlText(run);
    let before = transaction.query_opt("SELECT rating FROM feedback WHERE run = $1 FOR UPDATE", &[&run])?;
    let sql = "INSERT INTO feedback (run, rated, rating, engine, model) VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (run) DO UPDATE SET
            rated = excluded.rated, rating = excluded.rating, engine = excluded.engine, model = excluded.model";
    let rated = Moment::of(rated).microseconds();
    transaction.execute(sql, &[&run, &rated, &rating.as_str(), &SqlText(engine), &SqlText(model)])?;
    Ok(before.map(|row| row.try_get(0)).transpose()?)
}

/// Deletes the oldest ratings beyond the limit. Those that another process is using wait for the next time.
pub(super) fn prune(transaction: &mut PostgresTransaction<'_>) -> QueryResult<()> {
    let sql = "DELETE FROM feedback WHERE run IN (
            SELECT run FROM feedback
            WHERE rated < (SELECT rated FROM feedback ORDER BY rated DESC LIMIT 1 OFFSET $1)
            FOR UPDATE SKIP LOCKED
        )";
    transaction.execute(sql, &[&(MAX_RATINGS - 1)])?;
    Ok(())
}

pub(super) fn count(transaction: &mut PostgresTransaction<'_>) -> QueryResult<Ratings> {
    let mut ratings = Ratings::default();
    for row in transaction.query("SELECT rating, count(*) FROM feedback GROUP BY rating", &[])? {
        let count = row.try_get::<_, i64>(1)?.unsigned_abs();
        match Rating::parse(row.try_get(0)?) {
            Some(Rating::Good) => ratings.good = count,
            Some(Rating::Bad) => ratings.bad = count,
            None => {}
        }
    }
    Ok(ratings)
}
