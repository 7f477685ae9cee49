//! Guesses the next tokens of an answer that repeats earlier text, such as code that is edited. Pure.
//!
//! The model reads the guesses in the same step as the chosen token, which takes less time than a step for each. A guess counts
//! only if the sampler chooses the same token, so that the answer is the same as without guesses.

use crate::guess_length::{GuessLength, GuessLimits};
use crate::prefix_cache::Token;

/// The number of last tokens that must occur earlier. Two are too common in prose.
const MATCHED: usize = 3;

/// The most guesses. More would hardly be faster: the time of a step grows with its tokens.
pub(crate) const MAX_GUESSES: usize = 16;

const LIMITS: GuessLimits = GuessLimits { first: 4, most: MAX_GUESSES, pause: 64 };

/// Guesses for one answer. Adapts to how often they are right.
#[derive(Debug)]
pub(crate) struct PromptLookup {
    /// Learns from how many of them are right.
    pub(crate) length: GuessLength,
}

impl PromptLookup {
    pub(crate) fn new() -> Self {
        PromptLookup { length: GuessLength::new(LIMITS) }
    }

    /// Up to `room` tokens that followed the last occurrence of the end of the text: the tokens that were read, and the next one.
    pub(crate) fn guess<'a>(&mut self, read: &'a [Token], next: Token, room: usize) -> &'a [Token] {
        let length = self.length.next();
        if length == 0 {
            return &[];
        }
        let [earlier @ .., a, b] = read else { return &[] };
        // An occurrence must be followed by a token at least.
        let Some(searched) = read.get(..earlier.len() + 1) else { return &[] };
        let wanted: [Token; MATCHED] = [*a, *b, next];
        let Some(at) = searched.windows(MATCHED).rposition(|tokens| tokens == wanted) else { return &[] };
        let followed = &read[at + MATCHED..];
        &followed[..followed.len().min(length).min(room)]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_followed_the_last_occurrence_is_guessed() {
        let mut lookup = PromptLookup::new();
        let read = [1, 2, 3, 9, 9, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2];
        assert_eq!(lookup.guess(&read, 3, 100), [4, 5, 6, 7]);
        assert_eq!(lookup.guess(&read, 3, 2), [4, 5]);
        assert!(lookup.guess(&read, 4, 100).is_empty());
    }

    #[test]
    fn a_text_that_repeats_itself_is_continued() {
        assert_eq!(PromptLookup::new().guess(&[7, 7, 7, 7], 7, 100), [7]);
        assert_eq!(PromptLookup::new().guess(&[1, 2, 1, 2, 1, 2], 1, 100), [2]);
    }

    #[test]
    fn a_short_text_has_no_guesses() {
        for read in [&[][..], &[1], &[1, 1], &[1, 1, 1]] {
            assert!(PromptLookup::new().guess(read, 1, 100).is_empty(), "{read:?}");
        }
    }

    #[test]
    fn right_guesses_grow_and_wrong_ones_pause() {
        let read: Vec<Token> = (0..100).chain(0..2).collect();
        let mut lookup = PromptLookup::new();
        let mut lengths = Vec::new();
        for _ in 0..4 {
            let guessed = lookup.guess(&read, 2, 100).len();
            lookup.length.judge(guessed, guessed);
            lengths.push(guessed);
        }
        assert_eq!(lengths, [4, 8, 16, 16]);
        lengths.clear();
        for _ in 0..5 {
            let guessed = lookup.guess(&read, 2, 100).len();
            lookup.length.judge(guessed, 0);
            lengths.push(guessed);
        }
        assert_eq!(lengths, [16, 8, 4, 2, 0]);
        // Later it tries again.
        for _ in 1..LIMITS.pause {
            assert!(lookup.guess(&read, 2, 100).is_empty());
        }
        assert_eq!(lookup.guess(&read, 2, 100), [3, 4]);
    }
}
