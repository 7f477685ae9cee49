//! Word search: BM25, with titles counting more than text.

use hob_db::DatabaseError;

use crate::store::{ChunkHit, MemorySnapshot};
use crate::word_query::WordQuery;

/// The share of the question's words that an unasked passage must have. Lower than in `hybrid`, because the vector search is
/// missing. Estimated as in `vector`: on `known`, `held_out` and `confirming` the share of questions with a right file among the
/// first five falls from 0.87, 0.81 and 0.88 to 0.76, 0.75 and 0.82, and an unrelated question gets 1.3, 3.1 and 1.1 passages
/// instead of 2.3, 4.2 and 2.3. At a half it would fall to 0.55, 0.62 and 0.62.
const LEAST_SHARE_UNASKED: f64 = 0.25;

pub(super) fn find(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    count: usize,
) -> Result<Vec<ChunkHit>, DatabaseError> {
    query.map_or(Ok(Vec::new()), |query| snapshot.find_words(query, count))
}

/// Without irrelevant passages.
pub(super) fn find_relevant(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    count: usize,
) -> Result<Vec<ChunkHit>, DatabaseError> {
    find_covering(snapshot, query, count, LEAST_SHARE_UNASKED)
}

/// Without passages that have less than this share of the question's words.
pub(super) fn find_covering(
    snapshot: &dyn MemorySnapshot,
    query: Option<&WordQuery>,
    count: usize,
    share: f64,
) -> Result<Vec<ChunkHit>, DatabaseError> {
    let Some(query) = query else { return Ok(Vec::new()) };
    snapshot.covering(query, &snapshot.find_words(query, count)?, share)
}
