//! How often guesses are right, by the probabilities of the draft model. Pure.

/// The exponent at first, between an answer that always takes the most likely token and one that is drawn.
const FIRST: f32 = 0.6;

/// The bounds of the exponent.
const LEAST: f32 = 0.1;
const MOST: f32 = 3.0;

/// How fast it changes.
const RATE: f32 = 0.15;

/// The experience with one answer. A guess is right with its probability if tokens are drawn, more often if the most likely one is
/// taken, and less often if the draft model knows less than it believes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct DraftTrust {
    exponent: f32,
}

impl Default for DraftTrust {
    fn default() -> Self {
        DraftTrust { exponent: FIRST }
    }
}

impl DraftTrust {
    /// The probability that guesses are right which are all right with this probability by the draft model.
    pub(crate) fn expected(self, probability: f32) -> f32 {
        probability.powf(self.exponent)
    }

    /// Learns how many of the guesses were right. `probabilities` are those of each with all before it.
    pub(crate) fn learn(&mut self, probabilities: &[f32], right: usize) {
        // Of those after a wrong one, nothing is known.
        for (at, &probability) in probabilities.iter().enumerate().take(right + 1) {
            let was_right = if at < right { 1.0 } else { 0.0 };
            let error = self.expected(probability) - was_right;
            self.exponent = (self.exponent * (RATE * error).exp()).clamp(LEAST, MOST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The trust after many guesses of this probability, of which this part is right.
    fn learned(probability: f32, right: f32) -> f32 {
        let mut trust = DraftTrust::default();
        let mut random = fastrand::Rng::with_seed(1);
        for _ in 0..2000 {
            trust.learn(&[probability], usize::from(random.f32() < right));
        }
        trust.expected(probability)
    }

    #[test]
    fn what_is_expected_approaches_what_was_right() {
        for (probability, right) in [(0.5, 0.5), (0.5, 0.8), (0.5, 0.3), (0.9, 0.8)] {
            let expected = learned(probability, right);
            assert!((expected - right).abs() < 0.12, "{right} of guesses of {probability}: {expected}");
        }
        assert!(learned(0.3, 1.0) > 0.85, "an answer that always takes the most likely token");
    }

    #[test]
    fn guesses_after_a_wrong_one_show_nothing() {
        let (mut one, mut other) = (DraftTrust::default(), DraftTrust::default());
        one.learn(&[0.5, 0.4, 0.1], 1);
        other.learn(&[0.5, 0.4], 1);
        assert_eq!(one, other);
        one.learn(&[], 0);
        assert_eq!(one, other);
    }
}
