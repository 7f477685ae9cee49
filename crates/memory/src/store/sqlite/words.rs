//! Word search, best first.

use hob_db::DatabaseError;
use rusqlite::{Connection, Transaction, params};

use super::memory_file::SqliteSnapshot;
use crate::store::ChunkHit;
use crate::word_plan::{CountedTerm, MAX_RANKED, WordPlan, plan};
use crate::word_query::WordQuery;

/// One in this many chunks is in the sample.
const SAMPLED: u64 = 64;

/// The weights of a hit in the title and in the text.
const TITLE_WEIGHT: f64 = 4.0;
const TEXT_WEIGHT: f64 = 1.0;

pub(super) fn find_words(
    snapshot: &SqliteSnapshot<'_>,
    query: &WordQuery,
    count: usize,
) -> Result<Vec<ChunkHit>, DatabaseError> {
    snapshot.explained(|connection| find(connection, query, count))
}

pub(super) fn covering(
    snapshot: &SqliteSnapshot<'_>,
    query: &WordQuery,
    hits: &[ChunkHit],
    share: f64,
) -> Result<Vec<ChunkHit>, DatabaseError> {
    snapshot.explained(|connection| {
        let mut covering = Vec::with_capacity(hits.len());
        for hit in hits {
            if covers(connection, query, hit.chunk, share)? {
                covering.push(*hit);
            }
        }
        Ok(covering)
    })
}

/// Adds a chunk to the word index. Triggers remove it.
pub(super) fn insert(
    transaction: &Transaction<'_>,
    chunk: i64,
    title: &str,
    text: &str,
) -> rusqlite::Result<()> {
    transaction
        .prepare_cached("INSERT INTO memory_words (rowid, title, text) VALUES (?1, ?2, ?3)")?
        .execute(params![chunk, title, text])?;
    if chunk.unsigned_abs().is_multiple_of(SAMPLED) {
        transaction
            .prepare_cached("INSERT INTO memory_sample (rowid, title, text) VALUES (?1, ?2, ?3)")?
            .execute(params![chunk, title, text])?;
    }
    Ok(())
}

fn covers(connection: &Connection, query: &WordQuery, chunk: i64, share: f64) -> rusqlite::Result<bool> {
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM memory_words WHERE memory_words MATCH ?1 AND rowid = ?2)",
    )?;
    let mut missing = ((query.terms().len() as f64 * share).ceil() as usize).max(1);
    for term in query.terms() {
        if statement.query_row(params![term, chunk], |row| row.get::<_, bool>(0))? {
            missing -= 1;
        }
        if missing == 0 {
            return Ok(true);
        }
    }
    Ok(false)
}

fn find(connection: &Connection, query: &WordQuery, count: usize) -> rusqlite::Result<Vec<ChunkHit>> {
    // The highest id approximates the count, and is fast.
    let last: i64 =
        connection.query_row("SELECT coalesce(max(id), 0) FROM memory_chunk", [], |row| row.get(0))?;
    if last.unsigned_abs() <= MAX_RANKED {
        return rank(connection, &query.any(), 0, count);
    }
    let count_term = |term: &String| Ok(CountedTerm { term: term.clone(), chunks: about(connection, term)? });
    let mut terms = query.terms().iter().map(count_term).collect::<rusqlite::Result<Vec<_>>>()?;
    let mut hits: Vec<ChunkHit> = Vec::new();
    while hits.len() < count && !terms.is_empty() {
        let plan = plan(terms, |selecting| about(connection, &all(selecting)))?;
        let oldest = match plan.too_many {
            Some(rows) => last - share(last, rows),
            None => 0,
        };
        // Hits of common words rank below those of rare ones.
        let worst = hits.last().map_or(f64::INFINITY, |hit| hit.score);
        for hit in rank(connection, &expression(&plan), oldest, count)? {
            if hits.len() < count && hits.iter().all(|known| known.chunk != hit.chunk) {
                hits.push(ChunkHit { score: hit.score.min(worst), ..hit });
            }
        }
        terms = plan.left;
    }
    Ok(hits)
}

/// The expression of a plan. Words that only help to rank must be in it, too: a rank counts the words of the expression.
fn expression(plan: &WordPlan) -> String {
    match (plan.selecting.as_slice(), plan.helping.as_slice()) {
        ([choosing], helping @ [_, ..]) => {
            format!("({} OR {}) AND ({})", any(choosing), any(helping), any(choosing))
        }
        (selecting, _) => all(selecting),
    }
}

fn all(lists: &[Vec<CountedTerm>]) -> String {
    lists.iter().map(|terms| format!("({})", any(terms))).collect::<Vec<_>>().join(" AND ")
}

fn any(terms: &[CountedTerm]) -> String {
    terms.iter().map(|term| term.term.as_str()).collect::<Vec<_>>().join(" OR ")
}

/// The range of ids with about as many chunks as can be ranked.
fn share(last: i64, rows: u64) -> i64 {
    let share = last.unsigned_abs() as f64 * MAX_RANKED as f64 / rows.max(1) as f64;
    (share as i64).min(last)
}

/// About the number of matching chunks.
fn about(connection: &Connection, expression: &str) -> rusqlite::Result<u64> {
    let sampled: i64 = connection
        .prepare_cached("SELECT count(*) FROM memory_sample WHERE memory_sample MATCH ?1")?
        .query_row([expression], |row| row.get(0))?;
    Ok(sampled.unsigned_abs() * SAMPLED)
}

fn rank(
    connection: &Connection,
    expression: &str,
    oldest: i64,
    count: usize,
) -> rusqlite::Result<Vec<ChunkHit>> {
    let mut statement = connection.prepare_cached(
        "SELECT rowid, bm25(memory_words, ?4, ?5) AS distance FROM memory_words \
         WHERE memory_words MATCH ?1 AND rowid > ?2 ORDER BY distance LIMIT ?3",
    )?;
    let found = params![expression, oldest, count as i64, TITLE_WEIGHT, TEXT_WEIGHT];
    let rows = statement
        .query_map(found, |row| Ok(ChunkHit { chunk: row.get(0)?, score: -row.get::<_, f64>(1)? }))?;
    rows.collect()
}
