//! Word search, best first.

use std::ops::RangeInclusive;

use hob_db::DbResult;
use rusqlite::{Connection, Transaction, params};

use super::memory_file::{Scope, SqliteSnapshot};
use super::small_collection;
use crate::relevance::word_weight;
use crate::store::ChunkHit;
use crate::word_plan::{CountedTerm, MAX_RANKED, TEXT_WEIGHT, TITLE_WEIGHT, WordPlan, plan};
use crate::word_query::WordQuery;

/// One in this many chunks is in the sample.
const SAMPLED: u64 = 64;

pub(super) fn find_words(
    snapshot: &SqliteSnapshot<'_>,
    query: &WordQuery,
    count: usize,
) -> DbResult<Vec<ChunkHit>> {
    snapshot.explained(|connection| Search { connection, scope: &snapshot.scope }.find(query, count))
}

pub(super) fn word_shares(
    snapshot: &SqliteSnapshot<'_>,
    query: &WordQuery,
    hits: &[ChunkHit],
) -> DbResult<Vec<f64>> {
    snapshot.explained(|connection| {
        let weights = Search { connection, scope: &snapshot.scope }.weights(query)?;
        let all: f64 = weights.iter().sum();
        hits.iter().map(|hit| Ok(weight_of(connection, query, &weights, hit.chunk)? / all)).collect()
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

/// The weight of the words of the question that a chunk has.
fn weight_of(
    connection: &Connection,
    query: &WordQuery,
    weights: &[f64],
    chunk: i64,
) -> rusqlite::Result<f64> {
    let mut statement = connection.prepare_cached(
        "SELECT EXISTS (SELECT 1 FROM memory_words WHERE memory_words MATCH ?1 AND rowid = ?2)",
    )?;
    let mut sum = 0.0;
    for (term, weight) in query.terms().iter().zip(weights) {
        if statement.query_row(params![term, chunk], |row| row.get::<_, bool>(0))? {
            sum += weight;
        }
    }
    Ok(sum)
}

/// A search in the collections of a scope.
struct Search<'a> {
    connection: &'a Connection,
    scope: &'a Scope,
}

/// The chunks that are searched.
struct Extent {
    /// About their number.
    chunks: u64,
    /// They have larger ids.
    before: i64,
    last: i64,
}

impl Search<'_> {
    /// All counts are those of the scope, so that common words of other collections do not hide its chunks: few chunks are all ranked,
    /// and of too many the newest of the scope.
    fn find(&self, query: &WordQuery, count: usize) -> rusqlite::Result<Vec<ChunkHit>> {
        let extent = self.extent()?;
        if extent.chunks <= MAX_RANKED {
            if (extent.last - extent.before).unsigned_abs() > MAX_RANKED {
                return small_collection::find_words(self.connection, self.scope, query.terms(), count);
            }
            return self.rank(&query.any(), extent.before..=extent.last, count);
        }
        let count_term = |term: &String| Ok(CountedTerm { term: term.clone(), chunks: self.about(term)? });
        let mut terms = query.terms().iter().map(count_term).collect::<rusqlite::Result<Vec<_>>>()?;
        let mut hits: Vec<ChunkHit> = Vec::new();
        while hits.len() < count && !terms.is_empty() {
            let plan = plan(terms, |selecting| self.about(&all(selecting)))?;
            let oldest = match plan.too_many {
                Some(rows) => extent.last - share(extent.last - extent.before, rows),
                None => extent.before,
            };
            // Hits of common words rank below those of rare ones.
            let worst = hits.last().map_or(f64::INFINITY, |hit| hit.score);
            for hit in self.rank(&expression(&plan), oldest..=extent.last, count)? {
                if hits.len() < count && hits.iter().all(|known| known.chunk != hit.chunk) {
                    hits.push(ChunkHit { score: hit.score.min(worst), ..hit });
                }
            }
            terms = plan.left;
        }
        Ok(hits)
    }

    /// The weights of the question's words in the scope.
    fn weights(&self, query: &WordQuery) -> rusqlite::Result<Vec<f64>> {
        let extent = self.extent()?;
        let span = (extent.last - extent.before).unsigned_abs();
        // Counting words in a few chunks among many others takes long, so all words count the same.
        if extent.chunks <= MAX_RANKED && span > MAX_RANKED {
            return Ok(vec![1.0; query.terms().len()]);
        }
        let weight = |term: &String| Ok(word_weight(extent.chunks, self.frequency(&extent, term)?));
        query.terms().iter().map(weight).collect()
    }

    /// About the number of chunks that have a word.
    fn frequency(&self, extent: &Extent, term: &str) -> rusqlite::Result<u64> {
        if extent.chunks > MAX_RANKED {
            let about = self.about(term)?;
            if about > 0 || self.scope.0.is_some() {
                return Ok(about);
            }
        }
        let sql = format!(
            "SELECT count(*) FROM (SELECT 1 FROM memory_words \
                 WHERE memory_words MATCH ?1 AND rowid > ?2 AND rowid <= ?3 AND {} LIMIT ?5)",
            self.condition("memory_words", "?4")
        );
        let most = MAX_RANKED as i64;
        let values = params![term, extent.before, extent.last, self.scope.0, most];
        let count: i64 = self.connection.prepare_cached(&sql)?.query_row(values, |row| row.get(0))?;
        Ok(count.unsigned_abs())
    }

    fn extent(&self) -> rusqlite::Result<Extent> {
        let Some(names) = &self.scope.0 else {
            // The highest id approximates the count, and is fast.
            let last: i64 = self
                .connection
                .prepare_cached("SELECT coalesce(max(id), 0) FROM memory_chunk")?
                .query_row([], |row| row.get(0))?;
            return Ok(Extent { chunks: last.unsigned_abs(), before: 0, last });
        };
        let sql = format!(
            "SELECT count(*), coalesce(min(id), 1) - 1, coalesce(max(id), 0) FROM memory_chunk WHERE {}",
            self.scope.condition("source", "?1")
        );
        self.connection.prepare_cached(&sql)?.query_row([names], |row| {
            let chunks: i64 = row.get(0)?;
            Ok(Extent { chunks: chunks.unsigned_abs(), before: row.get(1)?, last: row.get(2)? })
        })
    }

    /// The condition that the chunk of a row of the index is in the scope, which is the parameter `parameter`.
    fn condition(&self, index: &str, parameter: &str) -> String {
        let source = format!("(SELECT source FROM memory_chunk WHERE id = {index}.rowid)");
        self.scope.condition(&source, parameter)
    }

    /// About the number of matching chunks.
    fn about(&self, expression: &str) -> rusqlite::Result<u64> {
        let sql = format!(
            "SELECT count(*) FROM memory_sample WHERE memory_sample MATCH ?1 AND {}",
            self.condition("memory_sample", "?2")
        );
        let sampled: i64 = self
            .connection
            .prepare_cached(&sql)?
            .query_row(params![expression, self.scope.0], |row| row.get(0))?;
        Ok(sampled.unsigned_abs() * SAMPLED)
    }

    /// The best of the chunks after the first id, up to the last.
    fn rank(
        &self,
        expression: &str,
        ids: RangeInclusive<i64>,
        count: usize,
    ) -> rusqlite::Result<Vec<ChunkHit>> {
        let mut statement = self.connection.prepare_cached(&format!(
            "SELECT rowid, bm25(memory_words, ?4, ?5) AS distance FROM memory_words \
             WHERE memory_words MATCH ?1 AND rowid > ?2 AND rowid <= ?7 AND {} ORDER BY distance LIMIT ?3",
            self.condition("memory_words", "?6")
        ))?;
        let (after, last) = ids.into_inner();
        let found = params![expression, after, count as i64, TITLE_WEIGHT, TEXT_WEIGHT, self.scope.0, last];
        let rows = statement
            .query_map(found, |row| Ok(ChunkHit { chunk: row.get(0)?, score: -row.get::<_, f64>(1)? }))?;
        rows.collect()
    }
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

/// The part of a range of ids with about as many chunks as can be ranked.
fn share(range: i64, rows: u64) -> i64 {
    let share = range.unsigned_abs() as f64 * MAX_RANKED as f64 / rows.max(1) as f64;
    (share as i64).min(range)
}
