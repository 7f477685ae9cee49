//! Stand-ins: the numbers that take the place of vectors in a list of tokens. Pure.
//!
//! They are negative, so no token of a model is one. They come from the content of the file, so the prefix cache finds a
//! picture that is in the memory, and never takes one picture for another.

use sha2::{Digest, Sha256};

/// Set in a stand-in that does not advance the position: a picture of rows and columns takes fewer positions than vectors.
const SILENT: i32 = 1 << 30;

/// The bits that come from the content.
const CONTENT: u32 = (1 << 30) - 1;

/// Stand-ins from one digest.
const PER_DIGEST: usize = 8;

/// The stand-ins of the chunk `chunk` of the file with this digest. The first `positions` advance the position.
pub(super) fn stand_ins(digest: &[u8; 32], chunk: usize, length: usize, positions: usize) -> Vec<i32> {
    let mut numbers = Vec::with_capacity(length + PER_DIGEST);
    for block in 0..length.div_ceil(PER_DIGEST) {
        let mut hasher = Sha256::new();
        hasher.update(digest);
        hasher.update((chunk as u64).to_le_bytes());
        hasher.update((block as u64).to_le_bytes());
        let words = hasher.finalize();
        numbers.extend(words.as_slice().chunks_exact(4).map(|word| {
            let number = word.iter().fold(0_u32, |number, byte| number << 8 | u32::from(*byte));
            i32::MIN | (number & CONTENT).cast_signed()
        }));
    }
    numbers.truncate(length);
    numbers.iter_mut().skip(positions).for_each(|number| *number |= SILENT);
    numbers
}

pub(crate) fn is_stand_in(token: i32) -> bool {
    token < 0
}

/// The number of positions that these tokens take.
pub(crate) fn positions(tokens: &[i32]) -> usize {
    tokens.iter().filter(|token| **token >= 0 || **token & SILENT == 0).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stand_ins_depend_on_the_content_and_are_no_tokens() {
        let (one, other) = ([1; 32], [2; 32]);
        let picture = stand_ins(&one, 0, 100, 10);
        assert_eq!(picture, stand_ins(&one, 0, 100, 10));
        assert!(picture.iter().all(|number| is_stand_in(*number)));
        assert_ne!(picture[..4], stand_ins(&other, 0, 100, 10)[..4]);
        assert_ne!(picture[..4], stand_ins(&one, 1, 100, 10)[..4]);
    }

    #[test]
    fn a_picture_takes_the_positions_that_it_is_given() {
        let picture = stand_ins(&[7; 32], 0, 100, 10);
        let tokens: Vec<i32> = [5, 6].into_iter().chain(picture).chain([7]).collect();
        assert_eq!(positions(&tokens), 2 + 10 + 1);
        assert_eq!(positions(&tokens[..2]), 2);
        assert_eq!(positions(&tokens[..7]), 7);
    }
}
