//! How many tokens are guessed for one answer, by how often guesses were right. Pure.

/// The bounds of a way to guess.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GuessLimits {
    /// The number of guesses at first.
    pub(crate) first: usize,
    pub(crate) most: usize,
    /// The number of tokens without guesses after wrong ones.
    pub(crate) pause: usize,
}

/// The number of guesses for one answer.
#[derive(Debug)]
pub(crate) struct GuessLength {
    limits: GuessLimits,
    length: usize,
    /// Tokens until the next attempt.
    pause: usize,
}

impl GuessLength {
    pub(crate) fn new(limits: GuessLimits) -> Self {
        GuessLength { limits, length: limits.first, pause: 0 }
    }

    /// The guesses for the next token, which counts as one of a pause.
    pub(crate) fn next(&mut self) -> usize {
        if self.pause > 0 {
            self.pause -= 1;
            return 0;
        }
        self.length
    }

    /// Learns how many of the guesses were right.
    pub(crate) fn judge(&mut self, guessed: usize, right: usize) {
        if guessed == 0 {
            return;
        }
        if right == guessed {
            self.length = (self.length * 2).min(self.limits.most);
        } else if right * 2 < guessed {
            // A step with a few more tokens takes up to twice as long, so that less than half of them is not worth it.
            self.length /= 2;
            if self.length < 2 {
                (self.length, self.pause) = (2, self.limits.pause);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn right_guesses_grow_and_wrong_ones_pause() {
        let mut length = GuessLength::new(GuessLimits { first: 4, most: 16, pause: 5 });
        let mut next = |right: fn(usize) -> usize| {
            let guessed = length.next();
            length.judge(guessed, right(guessed));
            guessed
        };
        assert_eq!([(); 4].map(|()| next(|guessed| guessed)), [4, 8, 16, 16]);
        // Half of them is enough.
        assert_eq!([(); 2].map(|()| next(|guessed| guessed / 2)), [16, 16]);
        assert_eq!([(); 4].map(|()| next(|_| 0)), [16, 8, 4, 2]);
        // Later it tries again.
        assert_eq!([(); 6].map(|()| next(|guessed| guessed)), [0, 0, 0, 0, 0, 2]);
        assert_eq!(next(|guessed| guessed), 4);
    }
}
