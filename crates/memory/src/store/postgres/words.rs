//! Word search, best first.
//!
//! The score is BM25 with the constants of SQLite's full-text search, so that both databases rank alike. PostgreSQL's own ranks do
//! not know how rare a word is. But the rank of one word is the sum of 1/1 + 1/4 + 1/9 ... over its occurrences, divided by the
//! limit of that sum, and so it shows how often the word occurs.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use hob_db::DbResult;
use hob_db::postgres::{PostgresTransaction, QueryResult};

use super::memory_database::{PostgresMemoryStore, PostgresSnapshot, Scope, Statistics};
use super::word_vector::QueryTerm;
use crate::relevance::word_weight;
use crate::store::ChunkHit;
use crate::word_plan::{CountedTerm, MAX_RANKED, plan};
use crate::word_query::WordQuery;

/// One in this many chunks is in the sample. The index of the sample has the same number.
const SAMPLED: u64 = 64;

/// A word that is in fewer sampled chunks is counted exactly.
const LEAST_SAMPLED: u64 = 8;

/// How long the statistics of a large memory are used.
const STATISTICS_AGE: Duration = Duration::from_secs(10);

/// The lowest weight of a word, which is in most chunks.
const LEAST_WEIGHT: f64 = 1e-6;

/// In these statements `{own}` is the condition that a chunk is in the scope.
const COUNT: &str = "
    SELECT (SELECT count(*) FROM memory_words WHERE words @@ term AND {own})
    FROM unnest($1::text[]::tsquery[]) WITH ORDINALITY AS asked (term, place) ORDER BY place";

const COUNT_SAMPLED: &str = "
    SELECT (SELECT count(*) FROM memory_words WHERE words @@ term AND chunk % 64 = 0 AND {own})
    FROM unnest($1::text[]::tsquery[]) WITH ORDINALITY AS asked (term, place) ORDER BY place";

/// A hit in the title counts four times. The occurrences of a phrase are not counted: one that is there is there once.
const RANK: &str = "
    WITH term AS MATERIALIZED (
        SELECT * FROM unnest($1::text[]::tsquery[], $2::text[]::tsquery[], $3::text[]::tsquery[], $4::bool[], $5::float8[])
            AS asked (anywhere, in_title, in_text, is_phrase, weight)
    )
    SELECT chunk, sum(weight * 2.2 / (1 + 1.2 * (0.25 + 0.75 * (length / $6::float8)) / frequency)) AS score
    FROM (SELECT chunk, length, words FROM memory_words WHERE words @@ $7::text::tsquery AND chunk > $8 AND {own}) AS hit
        JOIN term ON words @@ anywhere
        CROSS JOIN LATERAL (SELECT CASE
            WHEN is_phrase THEN greatest(4 * (words @@ in_title)::int + (words @@ in_text)::int, 1)
            ELSE round(0.6079271 / (1 - ts_rank('{1, 1, 1, 1}', words, anywhere)::float8) - 0.5)
                + 3 * round(0.6079271 / (1 - ts_rank('{0, 0, 0, 1}', words, anywhere)::float8) - 0.5)
            END) AS counted (frequency)
    GROUP BY chunk ORDER BY score DESC, chunk LIMIT $9";

const WEIGHT_OF: &str = "
    SELECT chunk, sum(weight) FROM memory_words JOIN unnest($2::text[]::tsquery[], $3::float8[]) AS asked (term, weight)
        ON words @@ term
    WHERE chunk = ANY($1) GROUP BY chunk";

pub(super) fn find_words(
    snapshot: &PostgresSnapshot<'_, '_>,
    query: &WordQuery,
    count: usize,
) -> DbResult<Vec<ChunkHit>> {
    snapshot.run(|transaction| {
        let terms: Vec<QueryTerm> = terms(snapshot.store, query)?.into_iter().flatten().collect();
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let scope = &snapshot.scope;
        let statistics = statistics(snapshot.store, transaction, scope)?;
        Search { transaction, scope, terms, statistics, count }.find()
    })
}

pub(super) fn word_shares(
    snapshot: &PostgresSnapshot<'_, '_>,
    query: &WordQuery,
    hits: &[ChunkHit],
) -> DbResult<Vec<f64>> {
    let chunks: Vec<i64> = hits.iter().map(|hit| hit.chunk).collect();
    snapshot.run(|transaction| {
        let terms: Vec<QueryTerm> = terms(snapshot.store, query)?.into_iter().flatten().collect();
        let scope = &snapshot.scope;
        let statistics = statistics(snapshot.store, transaction, scope)?;
        let counted =
            Search { transaction: &mut *transaction, scope, terms, statistics, count: 0 }.counted()?;
        let weights: Vec<f64> =
            counted.iter().map(|term| word_weight(statistics.chunks, term.chunks)).collect();
        let names: Vec<String> = counted.into_iter().map(|term| term.term).collect();
        let rows = transaction.query(WEIGHT_OF, &[&chunks, &names, &weights])?;
        let found = rows
            .iter()
            .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
            .collect::<QueryResult<HashMap<i64, f64>>>()?;
        let all: f64 = weights.iter().sum();
        Ok(chunks.iter().map(|chunk| found.get(chunk).map_or(0.0, |weight| weight / all)).collect())
    })
}

/// The terms of a question; `None` for one without a word of the index.
fn terms(store: &PostgresMemoryStore, query: &WordQuery) -> QueryResult<Vec<Option<QueryTerm>>> {
    let phrases = store.tokenizer.phrases(query.terms())?;
    Ok(phrases.iter().map(|words| QueryTerm::of(words)).collect())
}

/// All of them are those of the scope, so that common words of other collections do not hide its chunks, and ranks reveal nothing about them.
/// Those of some collections, or of a small memory, are read each time.
fn statistics(
    store: &PostgresMemoryStore,
    transaction: &mut PostgresTransaction<'_>,
    scope: &Scope,
) -> QueryResult<Statistics> {
    if scope.0.is_some() {
        return scoped_statistics(transaction, scope);
    }
    if let Some((read, statistics)) = *store.statistics.lock()
        && read.elapsed() < STATISTICS_AGE
    {
        return Ok(statistics);
    }
    let row = transaction.query_one(
        "SELECT coalesce(sum(chunks), 0)::bigint, coalesce(sum(words), 0)::float8, \
             (SELECT coalesce(max(id), 0) FROM memory_chunk) FROM memory_source",
        &[],
    )?;
    let chunks = row.try_get::<_, i64>(0)?.unsigned_abs();
    let average_length = (row.try_get::<_, f64>(1)? / chunks.max(1) as f64).max(1.0);
    let statistics = Statistics { chunks, average_length, before: 0, last_chunk: row.try_get(2)? };
    *store.statistics.lock() = (chunks > MAX_RANKED).then(|| (Instant::now(), statistics));
    Ok(statistics)
}

fn scoped_statistics(transaction: &mut PostgresTransaction<'_>, scope: &Scope) -> QueryResult<Statistics> {
    let sql = format!(
        "SELECT coalesce(sum(chunks), 0)::bigint, coalesce(sum(words), 0)::float8 FROM memory_source WHERE {}",
        scope.has_source("id", "$1")
    );
    let row = transaction.query_one(&sql, &[&scope.0])?;
    let chunks = row.try_get::<_, i64>(0)?.unsigned_abs();
    let average_length = (row.try_get::<_, f64>(1)? / chunks.max(1) as f64).max(1.0);
    if chunks <= MAX_RANKED {
        // All of them are ranked, whatever their ids.
        return Ok(Statistics { chunks, average_length, before: 0, last_chunk: 0 });
    }
    let sql = format!(
        "SELECT coalesce(min(id), 1) - 1, coalesce(max(id), 0) FROM memory_chunk WHERE {}",
        scope.has_source("source", "$1")
    );
    let row = transaction.query_one(&sql, &[&scope.0])?;
    Ok(Statistics { chunks, average_length, before: row.try_get(0)?, last_chunk: row.try_get(1)? })
}

struct Search<'a, 'c> {
    transaction: &'a mut PostgresTransaction<'c>,
    scope: &'a Scope,
    terms: Vec<QueryTerm>,
    statistics: Statistics,
    count: usize,
}

impl Search<'_, '_> {
    fn find(mut self) -> QueryResult<Vec<ChunkHit>> {
        let Statistics { chunks, before, last_chunk, .. } = self.statistics;
        let mut terms = self.counted()?;
        if chunks <= MAX_RANKED {
            return self.rank(&terms, &any(&terms), 0);
        }
        let mut hits: Vec<ChunkHit> = Vec::new();
        while hits.len() < self.count && !terms.is_empty() {
            let plan = plan(terms, |selecting| self.about(&all(selecting)))?;
            let oldest = match plan.too_many {
                Some(rows) => last_chunk - share(last_chunk - before, rows),
                None => before,
            };
            // Hits of common words rank below those of rare ones.
            let worst = hits.last().map_or(f64::INFINITY, |hit| hit.score);
            let ranking: Vec<CountedTerm> =
                plan.selecting.iter().flatten().chain(&plan.helping).cloned().collect();
            for hit in self.rank(&ranking, &all(&plan.selecting), oldest)? {
                if hits.len() < self.count && hits.iter().all(|known| known.chunk != hit.chunk) {
                    hits.push(ChunkHit { score: hit.score.min(worst), ..hit });
                }
            }
            terms = plan.left;
        }
        Ok(hits)
    }

    /// The terms, with about the number of chunks that have them.
    fn counted(&mut self) -> QueryResult<Vec<CountedTerm>> {
        let names: Vec<String> = self.terms.iter().map(|term| term.anywhere.clone()).collect();
        let counts = match self.statistics.chunks {
            0..=MAX_RANKED => self.counts(COUNT, &names)?,
            _ => {
                let sampled = self.counts(COUNT_SAMPLED, &names)?;
                let is_rare = |count: &u64| *count < LEAST_SAMPLED;
                let rare: Vec<String> = names
                    .iter()
                    .zip(&sampled)
                    .filter(|(_, count)| is_rare(count))
                    .map(|(name, _)| name.clone())
                    .collect();
                let mut exact = self.counts(COUNT, &rare)?.into_iter();
                let better = |count: &u64| match is_rare(count) {
                    true => exact.next().unwrap_or(0),
                    false => count * SAMPLED,
                };
                sampled.iter().map(better).collect()
            }
        };
        Ok(names.into_iter().zip(counts).map(|(term, chunks)| CountedTerm { term, chunks }).collect())
    }

    fn counts(&mut self, sql: &str, terms: &[String]) -> QueryResult<Vec<u64>> {
        if terms.is_empty() {
            return Ok(Vec::new());
        }
        let sql = sql.replace("{own}", &self.scope.has_chunk("chunk", "$2"));
        let rows = self.transaction.query(&sql, &[&terms, &self.scope.0])?;
        rows.iter().map(|row| Ok(row.try_get::<_, i64>(0)?.unsigned_abs())).collect()
    }

    /// About the number of matching chunks.
    fn about(&mut self, expression: &str) -> QueryResult<u64> {
        let sampled = self.counts(COUNT_SAMPLED, &[expression.to_owned()])?;
        Ok(sampled.first().copied().unwrap_or(0) * SAMPLED)
    }

    fn rank(&mut self, ranking: &[CountedTerm], expression: &str, oldest: i64) -> QueryResult<Vec<ChunkHit>> {
        let terms: Vec<&QueryTerm> = ranking
            .iter()
            .filter_map(|counted| self.terms.iter().find(|term| term.anywhere == counted.term))
            .collect();
        let strings = |field: fn(&QueryTerm) -> &str| {
            terms.iter().map(|term| field(term).to_owned()).collect::<Vec<String>>()
        };
        let phrases: Vec<bool> = terms.iter().map(|term| term.is_phrase).collect();
        let weights: Vec<f64> =
            ranking.iter().map(|term| weight(self.statistics.chunks, term.chunks)).collect();
        let rows = self.transaction.query(
            &RANK.replace("{own}", &self.scope.has_chunk("chunk", "$10")),
            &[
                &strings(|term| &term.anywhere),
                &strings(|term| &term.in_title),
                &strings(|term| &term.in_text),
                &phrases,
                &weights,
                &self.statistics.average_length,
                &expression,
                &oldest,
                &(self.count as i64),
                &self.scope.0,
            ],
        )?;
        rows.iter().map(|row| Ok(ChunkHit { chunk: row.try_get(0)?, score: row.try_get(1)? })).collect()
    }
}

/// The weight of a word: the rarer, the higher.
fn weight(chunks: u64, with_word: u64) -> f64 {
    let (chunks, with_word) = (chunks.max(with_word) as f64, with_word as f64);
    let weight = ((chunks - with_word + 0.5) / (with_word + 0.5)).ln();
    if weight > 0.0 { weight } else { LEAST_WEIGHT }
}

/// The part of a range of ids with about as many chunks as can be ranked.
fn share(range: i64, rows: u64) -> i64 {
    let share = range.unsigned_abs() as f64 * MAX_RANKED as f64 / rows.max(1) as f64;
    (share as i64).min(range)
}

fn all(lists: &[Vec<CountedTerm>]) -> String {
    lists.iter().map(|terms| format!("({})", any(terms))).collect::<Vec<_>>().join(" & ")
}

fn any(terms: &[CountedTerm]) -> String {
    terms.iter().map(|term| term.term.as_str()).collect::<Vec<_>>().join(" | ")
}
