//! Word search: BM25, with titles counting more than text.

use hob_db::DbResult;

use crate::relevance::share_on_request;
use crate::store::{ChunkHit, MemorySnapshot};
use crate::word_query::WordQuery;

/// What the score of a found chunk is. The order is by BM25.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WordScore {
    Bm25,
    /// The share of the question's words that the chunk has.
    Share,
}

/// The best chunks that have at least this share of the question's words.
pub(super) fn find(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    count: usize,
    share: f64,
    score: WordScore,
) -> DbResult<Vec<ChunkHit>> {
    find_relevant(snapshot, query, count, score, |_| share)
}

/// Like [`find`], for a caller that asked for passages: the best chunk is among them, whatever its share.
pub(super) fn find_on_request(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    count: usize,
    share: f64,
    score: WordScore,
) -> DbResult<Vec<ChunkHit>> {
    find_relevant(snapshot, query, count, score, |best| share_on_request(share, best))
}

/// `required` returns the least share if the largest share of a found chunk is this.
fn find_relevant(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    count: usize,
    score: WordScore,
    required: impl Fn(f64) -> f64,
) -> DbResult<Vec<ChunkHit>> {
    let Some(query) = query else { return Ok(Vec::new()) };
    let hits = snapshot.find_words(query, count)?;
    let needs_shares = score == WordScore::Share || required(1.0) > 0.0;
    if !needs_shares || hits.is_empty() {
        return Ok(hits);
    }
    let shares = snapshot.word_shares(query, &hits)?;
    let best = shares.iter().copied().fold(0.0, f64::max);
    // Sums of the same numbers in another order may differ a little.
    let least = required(best) - 1e-9;
    let relevant = hits.into_iter().zip(shares).filter(|(_, has)| *has >= least);
    let scored = relevant.map(|(hit, share)| match score {
        WordScore::Bm25 => hit,
        WordScore::Share => ChunkHit { score: share, ..hit },
    });
    Ok(scored.collect())
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::store::StoredPassage;

    /// Two chunks, which have 0.8 and 0.3 of any question. Counts how often their shares are read.
    #[derive(Default)]
    struct TwoChunks {
        reads: Cell<usize>,
    }

    impl MemorySnapshot for TwoChunks {
        fn find_words(&self, _: &WordQuery, _: usize) -> DbResult<Vec<ChunkHit>> {
            Ok(vec![ChunkHit { chunk: 1, score: 7.0 }, ChunkHit { chunk: 2, score: 5.0 }])
        }

        fn word_shares(&self, _: &WordQuery, hits: &[ChunkHit]) -> DbResult<Vec<f64>> {
            self.reads.set(self.reads.get() + 1);
            Ok(hits.iter().map(|hit| if hit.chunk == 1 { 0.8 } else { 0.3 }).collect())
        }

        fn find_vectors(&self, _: &str, _: &[f32], _: usize) -> DbResult<Option<Vec<ChunkHit>>> {
            Ok(None)
        }

        fn passages(&self, _: &[i64], _: Option<&WordQuery>) -> DbResult<Vec<StoredPassage>> {
            Ok(Vec::new())
        }
    }

    #[test]
    fn shares_are_read_at_most_once() {
        let query = WordQuery::of("boiler pressure");
        for (share, score, expected, reads) in [
            (0.5, WordScore::Share, vec![(1, 0.8)], 1),
            (0.5, WordScore::Bm25, vec![(1, 7.0)], 1),
            (0.0, WordScore::Share, vec![(1, 0.8), (2, 0.3)], 1),
            (0.0, WordScore::Bm25, vec![(1, 7.0), (2, 5.0)], 0),
        ] {
            let snapshot = TwoChunks::default();
            let found = find(&snapshot, query.as_ref(), 5, share, score).unwrap();
            let found: Vec<(i64, f64)> = found.into_iter().map(|hit| (hit.chunk, hit.score)).collect();
            assert_eq!((found, snapshot.reads.get()), (expected, reads), "{share} {score:?}");
        }
    }
}
