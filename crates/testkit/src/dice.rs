//! Random numbers that are the same for the same seed.

use std::time::Duration;

/// A generator of random numbers.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Self {
        // Small seeds would begin with small numbers. Zero would stay zero.
        let mut dice = Dice(seed.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        for _ in 0..4 {
            dice.next();
        }
        dice
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below `end`.
    pub fn below(&mut self, end: u64) -> u64 {
        (self.next() >> 11) % end
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.below(length as u64)).expect("less than a length")
    }

    pub fn one_in(&mut self, chances: u64) -> bool {
        self.below(chances) == 0
    }

    pub fn milliseconds(&mut self, most: u64) -> Duration {
        Duration::from_millis(self.below(most + 1))
    }
}
