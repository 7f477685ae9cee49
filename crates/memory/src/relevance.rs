//! When a passage is relevant to a question. Every search finds something: a chunk with an unimportant word, or the nearest of distant
//! vectors. Pure.

use hob_core::defaults::{MIN_SIMILARITY, MIN_WORD_SHARE};

/// How much more of a short question a passage must contain: a single word of two or three can be there by chance.
const SHORT_QUESTION: f64 = 8.0;

/// No more than this share is required of a short question.
const MAX_SHARE_OF_SHORT: f64 = 0.5;

/// The share that a passage must contain if vectors are searched, too. They find what is said in other words.
const SHARE_BESIDE_VECTORS: f64 = 0.5;

/// A caller that searches also gets passages with this part of the share of the best one. A larger part loses right passages, and a
/// smaller one returns more that are not about the question.
const PART_OF_BEST: f64 = 0.5;

/// Of a question with one or two words, the vector says little: it is similar to any short text.
const FEW_WORDS: usize = 2;

/// The similarity that such a question requires. Words find most of what these ask for.
const SIMILARITY_TO_FEW_WORDS: f64 = 0.33;

/// How much less is required if the caller asked for passages: it sees the similarity of what it gets.
const LESS_ON_REQUEST: f64 = 0.1;

/// Chunks that are added to those of the memory. A few documents say little of how rare a word is.
const ASSUMED_CHUNKS: u64 = 100;

/// The least that makes a passage relevant; 0 for any.
///
/// `./dev bench memory quality` measures the defaults on the judged sets `known`, `held_out` and `confirming`: recall@5, and the share of
/// unrelated questions (those of the other sets) that get no passage. `docs/memory.md` has the figures. All three sets were seen when the
/// defaults were chosen.
///
/// Passages that are added unasked may miss some right ones, if most unrelated questions get none. A caller that searches sees what it
/// gets, so it gets more: passages that are less similar, and the best by words (`share_on_request`). The default similarity suits
/// all-MiniLM-L6-v2; other models need their own minimum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RelevanceFloor {
    /// The share of the question's words that a passage has, in which rare words count more.
    pub word_share: f64,
    /// The cosine similarity of question and passage.
    pub similarity: f64,
}

impl Default for RelevanceFloor {
    fn default() -> Self {
        RelevanceFloor { word_share: MIN_WORD_SHARE, similarity: MIN_SIMILARITY }
    }
}

impl RelevanceFloor {
    /// Everything is relevant.
    pub const NONE: RelevanceFloor = RelevanceFloor { word_share: 0.0, similarity: 0.0 };

    /// The share of a question with this many words that a passage must have.
    pub(crate) fn share_of(&self, words: usize) -> f64 {
        let share = self.word_share * (1.0 + SHORT_QUESTION / words.max(1) as f64);
        share.min(self.word_share.max(MAX_SHARE_OF_SHORT))
    }

    /// The same in a search by words and by meaning.
    pub(crate) fn share_beside_vectors(&self) -> f64 {
        if self.word_share > 0.0 { self.word_share.max(SHARE_BESIDE_VECTORS) } else { 0.0 }
    }

    /// The similarity to a question with this many words that a passage must have.
    pub(crate) fn similarity_to(&self, words: usize) -> f64 {
        match words <= FEW_WORDS && self.similarity > 0.0 {
            true => self.similarity.max(SIMILARITY_TO_FEW_WORDS),
            false => self.similarity,
        }
    }

    /// The same if the caller asked for passages.
    pub(crate) fn similarity_on_request(&self, words: usize) -> f64 {
        match words <= FEW_WORDS {
            true => self.similarity_to(words),
            // At least half, so that a low minimum does not become none.
            false => (self.similarity - LESS_ON_REQUEST).max(self.similarity / 2.0),
        }
    }
}

/// The share that a passage must have if the caller asked for passages: `share`, or less if the best one has less. `make bread` finds
/// the bread, even if no passage has the other word.
pub(crate) fn share_on_request(share: f64, best: f64) -> f64 {
    share.min(best * PART_OF_BEST)
}

/// The weight of a word that so many of all chunks have: the rarer, the higher. A word that no chunk has is the rarest: what the question
/// is about may be in no document.
pub(crate) fn word_weight(chunks: u64, with_word: u64) -> f64 {
    let (chunks, with_word) = ((chunks.max(with_word) + ASSUMED_CHUNKS) as f64, with_word as f64);
    ((chunks - with_word + 0.5) / (with_word + 0.5)).ln_1p()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_of_a_short_question_is_required() {
        let floor = RelevanceFloor::default();
        let shares = [1, 2, 4, 8].map(|words| (floor.share_of(words) * 100.0).round());
        assert_eq!(shares, [50.0, 50.0, 30.0, 20.0]);
        assert_eq!([1, 8].map(|words| RelevanceFloor::NONE.share_of(words)), [0.0, 0.0]);
        let strict = RelevanceFloor { word_share: 0.9, ..floor };
        assert_eq!([1, 8].map(|words| strict.share_of(words)), [0.9, 0.9]);
        assert_eq!((floor.share_beside_vectors(), strict.share_beside_vectors()), (0.5, 0.9));
    }

    #[test]
    fn more_similarity_to_a_short_question_is_required_and_less_on_request() {
        for (similarity, to_few, to_many, on_request) in
            [(0.3, 0.33, 0.3, 0.2), (0.1, 0.33, 0.1, 0.05), (0.8, 0.8, 0.8, 0.7), (0.0, 0.0, 0.0, 0.0)]
        {
            let floor = RelevanceFloor { similarity, ..RelevanceFloor::default() };
            let rounded = |value: f64| (value * 100.0).round() / 100.0;
            assert_eq!([1, 2, 3].map(|words| floor.similarity_to(words)), [to_few, to_few, to_many]);
            let found = [1, 2, 3].map(|words| rounded(floor.similarity_on_request(words)));
            assert_eq!(found, [to_few, to_few, on_request], "{similarity}");
        }
    }

    #[test]
    fn on_request_the_best_passage_is_always_enough() {
        for (share, best, required) in
            [(0.5, 0.9, 0.45), (0.2, 0.9, 0.2), (0.5, 0.4, 0.2), (0.0, 0.4, 0.0), (0.5, 0.0, 0.0)]
        {
            assert_eq!(share_on_request(share, best), required, "{share} {best}");
        }
    }

    #[test]
    fn of_two_words_the_rarer_one_makes_a_passage_relevant() {
        let (common, rare, unknown) = (word_weight(1_000, 200), word_weight(1_000, 3), word_weight(1_000, 0));
        let floor = RelevanceFloor::default().share_of(2);
        assert!(rare / (rare + common) >= floor && common / (rare + common) < floor);
        assert!(rare / (rare + unknown) < floor, "the capital of a country that no document names");
        // In a memory of one chunk, two of three words are enough.
        let (known, unknown) = (word_weight(1, 1), word_weight(1, 0));
        assert!(2.0 * known / (2.0 * known + unknown) >= RelevanceFloor::default().share_of(3));
    }
}
