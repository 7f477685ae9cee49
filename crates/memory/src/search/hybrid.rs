//! Hybrid search: reciprocal rank fusion, which needs no comparable scores.
//!
//! Each search counts only for chunks that are relevant to it, so that a chunk must be relevant to one of them. If nothing is relevant,
//! nothing is found.

use std::collections::{HashMap, HashSet};

use hob_db::DbResult;

use super::vector::QuestionVector;
use super::{vector, words as word_search};
use crate::relevance::RelevanceFloor;
use crate::store::{ChunkHit, MemorySnapshot};
use crate::word_query::WordQuery;

/// The constant of rank fusion, which flattens the first ranks.
const K: f64 = 60.0;

/// The number of hits of each list that take part.
const LEAST_BY_MEANING: usize = 50;
const LEAST_BY_WORDS: usize = 20;

/// The relevant chunks. `None` if no chunk has a vector of this model.
pub(super) fn find(
    snapshot: &dyn MemorySnapshot,
    words: Option<&WordQuery>,
    question: &QuestionVector,
    count: usize,
    floor: RelevanceFloor,
) -> DbResult<Option<Vec<ChunkHit>>> {
    let by_meaning = vector::find(snapshot, question, count.max(LEAST_BY_MEANING), floor.similarity)?;
    let Some(by_meaning) = by_meaning else { return Ok(None) };
    let share = floor.share_beside_vectors();
    let by_words = word_search::find(snapshot, words, count.max(LEAST_BY_WORDS), share)?;
    let mut fused = fuse(&[by_words, by_meaning]);
    fused.truncate(count);
    Ok(Some(fused))
}

/// The relevant chunks. If there are none, the caller that asked for them gets the best by words.
pub(super) fn find_on_request(
    snapshot: &dyn MemorySnapshot,
    words: Option<&WordQuery>,
    question: &QuestionVector,
    count: usize,
    floor: RelevanceFloor,
) -> DbResult<Option<Vec<ChunkHit>>> {
    let Some(found) = find(snapshot, words, question, count, floor)? else { return Ok(None) };
    if !found.is_empty() {
        return Ok(Some(found));
    }
    let share = floor.share_beside_vectors();
    Ok(Some(fuse(&[word_search::find_on_request(snapshot, words, count, share)?])))
}

/// The relevant chunks, and then the others.
pub(super) fn find_all(
    snapshot: &dyn MemorySnapshot,
    words: Option<&WordQuery>,
    question: &QuestionVector,
    count: usize,
    floor: RelevanceFloor,
) -> DbResult<Option<Vec<ChunkHit>>> {
    let Some(mut found) = find(snapshot, words, question, count, floor)? else { return Ok(None) };
    let others = find(snapshot, words, question, count, RelevanceFloor::NONE)?.unwrap_or_default();
    let known: HashSet<i64> = found.iter().map(|hit| hit.chunk).collect();
    let worst = found.last().map_or(f64::INFINITY, |hit| hit.score);
    let others = others.into_iter().filter(|hit| !known.contains(&hit.chunk));
    found.extend(others.map(|hit| ChunkHit { score: hit.score.min(worst), ..hit }));
    found.truncate(count);
    Ok(Some(found))
}

/// Fuses lists. The score of a chunk is the sum of 1 / (60 + rank) over the lists. Ties go to the earlier list: matching words
/// are evidence, while some vector is always the nearest.
fn fuse(lists: &[Vec<ChunkHit>]) -> Vec<ChunkHit> {
    let mut known: HashMap<i64, (f64, usize)> = HashMap::new();
    for (list, hits) in lists.iter().enumerate() {
        for (index, hit) in hits.iter().enumerate() {
            let (score, _) = known.entry(hit.chunk).or_insert((0.0, list));
            *score += 1.0 / (K + 1.0 + index as f64);
        }
    }
    let mut fused: Vec<(ChunkHit, usize)> =
        known.into_iter().map(|(chunk, (score, list))| (ChunkHit { chunk, score }, list)).collect();
    fused.sort_by(|(one, in_one), (other, in_other)| {
        other.score.total_cmp(&one.score).then(in_one.cmp(in_other)).then(one.chunk.cmp(&other.chunk))
    });
    fused.into_iter().map(|(hit, _)| hit).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(chunks: &[i64]) -> Vec<ChunkHit> {
        chunks.iter().map(|chunk| ChunkHit { chunk: *chunk, score: 1.0 }).collect()
    }

    #[test]
    fn hits_in_both_lists_come_first() {
        let fused = fuse(&[list(&[1, 2, 3]), list(&[4, 2, 5])]);
        assert_eq!(fused.iter().map(|hit| hit.chunk).collect::<Vec<_>>(), [2, 1, 4, 3, 5]);
        assert_eq!(fused[0].score, 2.0 / 62.0);
    }

    #[test]
    fn ties_go_to_the_word_search() {
        let fused = fuse(&[list(&[9, 8]), list(&[1, 2])]);
        assert_eq!(fused.iter().map(|hit| hit.chunk).collect::<Vec<_>>(), [9, 1, 8, 2]);
    }

    proptest! {
        #[test]
        fn no_hit_is_lost_or_duplicated(
            one in prop::collection::hash_set(0_i64..50, 0..20), other in prop::collection::hash_set(0_i64..50, 0..20)
        ) {
            let lists = [&one, &other].map(|set| list(&set.iter().copied().collect::<Vec<_>>()));
            let mut chunks: Vec<i64> = fuse(&lists).iter().map(|hit| hit.chunk).collect();
            chunks.sort_unstable();
            let mut expected: Vec<i64> = one.union(&other).copied().collect();
            expected.sort_unstable();
            prop_assert_eq!(chunks, expected);
        }
    }
}
