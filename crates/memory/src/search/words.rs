//! Word search: BM25, with titles counting more than text.

use hob_db::DbResult;

use crate::relevance::share_on_request;
use crate::store::{ChunkHit, MemorySnapshot};
use crate::word_query::WordQuery;

/// The best chunks that have at least this share of the question's words.
pub(super) fn find(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    count: usize,
    share: f64,
) -> DbResult<Vec<ChunkHit>> {
    find_relevant(snapshot, query, count, |_| share)
}

/// Like [`find`], for a caller that asked for passages: the best chunk is among them, whatever its share.
pub(super) fn find_on_request(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    count: usize,
    share: f64,
) -> DbResult<Vec<ChunkHit>> {
    find_relevant(snapshot, query, count, |best| share_on_request(share, best))
}

/// The same hits, with the share of the question's words that each has as its score.
pub(super) fn scored_by_share(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    hits: Vec<ChunkHit>,
) -> DbResult<Vec<ChunkHit>> {
    let Some(query) = query.filter(|_| !hits.is_empty()) else { return Ok(hits) };
    let shares = snapshot.word_shares(query, &hits)?;
    Ok(hits.into_iter().zip(shares).map(|(hit, share)| ChunkHit { score: share, ..hit }).collect())
}

/// `required` returns the least share if the largest share of a found chunk is this.
fn find_relevant(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    count: usize,
    required: impl Fn(f64) -> f64,
) -> DbResult<Vec<ChunkHit>> {
    let Some(query) = query else { return Ok(Vec::new()) };
    let hits = snapshot.find_words(query, count)?;
    if required(1.0) <= 0.0 || hits.is_empty() {
        return Ok(hits);
    }
    let shares = snapshot.word_shares(query, &hits)?;
    let best = shares.iter().copied().fold(0.0, f64::max);
    // Sums of the same numbers in another order may differ a little.
    let least = required(best) - 1e-9;
    Ok(hits.into_iter().zip(shares).filter(|(_, has)| *has >= least).map(|(hit, _)| hit).collect())
}
