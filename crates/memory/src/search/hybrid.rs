//! Hybrid search: reciprocal rank fusion, which needs no comparable scores.
//!
//! Each search counts only for chunks that are relevant to it, so that a chunk must be relevant to one of them. If nothing is relevant,
//! nothing is found.
//!
//! The score of a chunk is its own: the similarity or the share of the question's words, whichever is larger. Its rank would say how it
//! compares to the others, and not whether it has to do with the question.

use std::collections::{HashMap, HashSet};

use hob_db::DbResult;

use super::vector::QuestionVector;
use super::words::WordScore;
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
    let by_words = word_search::find(snapshot, words, count.max(LEAST_BY_WORDS), share, WordScore::Share)?;
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
    Ok(Some(word_search::find_on_request(snapshot, words, count, share, WordScore::Share)?))
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
    found.extend(others.into_iter().filter(|hit| !known.contains(&hit.chunk)));
    found.truncate(count);
    Ok(Some(found))
}

/// A chunk of some lists.
struct FusedHit {
    hit: ChunkHit,
    /// More is better.
    rank: f64,
    /// The first list that has it.
    list: usize,
}

/// Fuses lists. A chunk is ranked by the sum of 1 / (60 + rank) over the lists. Ties go to the earlier list: matching words
/// are evidence, while some vector is always the nearest. Its score is the largest of the lists.
fn fuse(lists: &[Vec<ChunkHit>]) -> Vec<ChunkHit> {
    let mut known: HashMap<i64, FusedHit> = HashMap::new();
    for (list, hits) in lists.iter().enumerate() {
        for (index, hit) in hits.iter().enumerate() {
            let fused = known.entry(hit.chunk).or_insert(FusedHit { hit: *hit, rank: 0.0, list });
            fused.rank += 1.0 / (K + 1.0 + index as f64);
            fused.hit.score = fused.hit.score.max(hit.score);
        }
    }
    let mut fused: Vec<FusedHit> = known.into_values().collect();
    fused.sort_by(|one, other| {
        let by_rank = other.rank.total_cmp(&one.rank);
        by_rank.then(one.list.cmp(&other.list)).then(one.hit.chunk.cmp(&other.hit.chunk))
    });
    fused.into_iter().map(|fused| fused.hit).collect()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn list(chunks: &[i64]) -> Vec<ChunkHit> {
        chunks.iter().map(|chunk| ChunkHit { chunk: *chunk, score: 0.5 }).collect()
    }

    #[test]
    fn hits_in_both_lists_come_first() {
        let fused = fuse(&[list(&[1, 2, 3]), list(&[4, 2, 5])]);
        assert_eq!(fused.iter().map(|hit| hit.chunk).collect::<Vec<_>>(), [2, 1, 4, 3, 5]);
    }

    #[test]
    fn a_score_is_the_chunks_own_and_not_its_rank() {
        let hit = |chunk, score| ChunkHit { chunk, score };
        let fused = fuse(&[vec![hit(1, 0.6), hit(2, 0.5)], vec![hit(2, 0.7), hit(3, 0.21)]]);
        assert_eq!(fused, [hit(2, 0.7), hit(1, 0.6), hit(3, 0.21)]);
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
