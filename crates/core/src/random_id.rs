//! Ids that cannot be guessed: some of them, such as the id of a stored response, are all that a stranger needs to read it.

use std::cell::RefCell;

pub(crate) const ALPHABET: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

/// Random characters of an id, which carry about 142 bits.
const LENGTH: usize = 24;

/// Bytes that are asked of the system at once: a request needs two ids, and a call of the system costs more than both.
const POOL_BYTES: usize = 1024;

/// Random bytes of the system that are not used yet.
struct Pool {
    bytes: [u8; POOL_BYTES],
    left: usize,
}

thread_local! {
    static POOL: RefCell<Pool> = const { RefCell::new(Pool { bytes: [0; POOL_BYTES], left: 0 }) };
}

impl Pool {
    fn next(&mut self) -> u8 {
        if self.left == 0 {
            // Only a system that has just started can have none yet.
            while getrandom::fill(&mut self.bytes).is_err() {
                std::thread::yield_now();
            }
            self.left = POOL_BYTES;
        }
        self.left -= 1;
        // A byte that was used stays nowhere.
        std::mem::take(&mut self.bytes[self.left])
    }

    fn letter(&mut self) -> u8 {
        loop {
            // Six bits are 64 values, so two are drawn again.
            if let Some(letter) = ALPHABET.get(usize::from(self.next() & 63)) {
                return *letter;
            }
        }
    }
}

/// Fills `letters` with random letters and digits.
pub fn fill_random(letters: &mut [u8]) {
    POOL.with_borrow_mut(|pool| letters.fill_with(|| pool.letter()));
}

/// A new id such as `chatcmpl-3kD9…`: the prefix and 24 random letters and digits.
pub fn random_id(prefix: &str) -> String {
    let mut id = String::with_capacity(prefix.len() + LENGTH);
    id.push_str(prefix);
    POOL.with_borrow_mut(|pool| id.extend(std::iter::repeat_with(|| char::from(pool.letter())).take(LENGTH)));
    id
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn an_id_is_its_prefix_and_letters_that_never_repeat() {
        // More than one pool of bytes.
        let ids: HashSet<String> = (0..500).map(|_| random_id("resp_")).collect();
        assert_eq!(ids.len(), 500);
        for id in ids {
            let random = id.strip_prefix("resp_").unwrap_or_default();
            assert!(random.len() == 24 && random.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
        }
    }

    #[test]
    fn every_letter_is_as_likely_as_any_other() {
        let mut letters = [0; 62 * 1_000];
        fill_random(&mut letters);
        for letter in ALPHABET {
            let count = letters.iter().filter(|drawn| *drawn == letter).count();
            // Ten standard deviations.
            assert!((690..=1_310).contains(&count), "{}: {count}", char::from(*letter));
        }
    }

    #[test]
    fn a_byte_of_the_pool_is_used_once() {
        fill_random(&mut [0; 10]);
        POOL.with_borrow(|pool| {
            assert!(pool.left < POOL_BYTES && pool.bytes[pool.left..].iter().all(|byte| *byte == 0));
            assert!(pool.bytes[..pool.left].iter().any(|byte| *byte != 0));
        });
    }
}
