//! Word search: BM25, with titles counting more than text.

use hob_db::DatabaseError;

use crate::store::{ChunkHit, MemorySnapshot};
use crate::word_query::WordQuery;

/// The best chunks that have at least this share of the question's words.
pub(super) fn find(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    count: usize,
    share: f64,
) -> Result<Vec<ChunkHit>, DatabaseError> {
    let Some(query) = query else { return Ok(Vec::new()) };
    let hits = snapshot.find_words(query, count)?;
    if share <= 0.0 || hits.is_empty() {
        return Ok(hits);
    }
    let shares = snapshot.word_shares(query, &hits)?;
    // Sums of the same numbers in another order may differ a little.
    let is_relevant = |has: f64| has >= share - 1e-9;
    Ok(hits.into_iter().zip(shares).filter(|(_, has)| is_relevant(*has)).map(|(hit, _)| hit).collect())
}
