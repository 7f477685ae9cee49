//! Plans one step of the model. Pure.

/// The limits of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepSize {
    /// Prompt tokens if no sequence generates.
    pub(crate) alone: usize,
    /// Prompt tokens while others generate, so that a long prompt does not delay them.
    pub(crate) beside: usize,
}

/// Prompt tokens per step. A step cannot be interrupted, so the next request waits for its end. More would be hardly faster on a
/// processor.
pub(crate) const STEP: StepSize = StepSize { alone: 128, beside: 64 };

/// A graphics card is fast enough for more.
pub(crate) const CARD_STEP: StepSize = StepSize { alone: 512, beside: 256 };

impl StepSize {
    /// The most tokens of a step over this many sequences: prompts alone, or one token of each sequence beside prompts. Guesses
    /// use what is left.
    pub(crate) fn tokens_of(self, sequences: usize) -> usize {
        self.alone.max(self.beside + sequences)
    }
}

/// The share of one sequence in a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Share {
    pub(crate) index: usize,
    pub(crate) tokens: usize,
}

/// Divides a step. `waiting[i]` is the number of prompt tokens that sequence `i` must still read, zero if it generates. Every
/// generating sequence gets one token; prompts share the rest evenly, starting with `turn`, so that a short one is done soon.
pub(crate) fn shares(waiting: &[usize], size: StepSize, turn: usize) -> Vec<Share> {
    let mut shares: Vec<Share> = Vec::with_capacity(waiting.len());
    let writing = |left: &&usize| **left == 0;
    shares.extend(
        waiting
            .iter()
            .enumerate()
            .filter(|(_, left)| writing(left))
            .map(|(index, _)| Share { index, tokens: 1 }),
    );
    let mut budget = if shares.is_empty() { size.alone } else { size.beside };
    let mut open: Vec<Share> = waiting
        .iter()
        .enumerate()
        .filter(|(_, left)| !writing(left))
        .map(|(index, _)| Share { index, tokens: 0 })
        .collect();
    if open.is_empty() {
        return shares;
    }
    let first = turn % open.len();
    open.rotate_left(first);
    // Repeated, because a short prompt leaves a part of its share.
    while budget > 0 {
        let hungry = open.iter().filter(|share| share.tokens < waiting[share.index]).count();
        if hungry == 0 {
            break;
        }
        let even = (budget / hungry).max(1);
        for share in &mut open {
            let more = even.min(waiting[share.index] - share.tokens).min(budget);
            share.tokens += more;
            budget -= more;
        }
    }
    shares.extend(open.into_iter().filter(|share| share.tokens > 0));
    shares
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SIZE: StepSize = StepSize { alone: 512, beside: 256 };

    fn share(index: usize, tokens: usize) -> Share {
        Share { index, tokens }
    }

    #[test]
    fn a_lone_prompt_gets_the_whole_step() {
        assert_eq!(shares(&[2000], SIZE, 0), [share(0, 512)]);
        assert_eq!(shares(&[30], SIZE, 0), [share(0, 30)]);
    }

    #[test]
    fn a_long_prompt_does_not_stall_generation() {
        assert_eq!(shares(&[0, 5000, 0], SIZE, 0), [share(0, 1), share(2, 1), share(1, 256)]);
    }

    #[test]
    fn a_short_prompt_is_read_at_once_beside_a_long_one() {
        assert_eq!(shares(&[5000, 20], SIZE, 0), [share(0, 492), share(1, 20)]);
    }

    #[test]
    fn prompts_take_turns_at_being_first() {
        let size = StepSize { alone: 1, beside: 1 };
        assert_eq!(shares(&[9, 9], size, 0), [share(0, 1)]);
        assert_eq!(shares(&[9, 9], size, 1), [share(1, 1)]);
    }

    proptest! {
        #[test]
        fn a_step_is_never_larger_than_allowed_and_never_idle(
            waiting in prop::collection::vec(0usize..2000, 1..10),
            turn in 0usize..20,
        ) {
            let shares = shares(&waiting, SIZE, turn);
            let writing = waiting.iter().filter(|left| **left == 0).count();
            let prompts: usize = shares.iter().filter(|s| waiting[s.index] > 0).map(|s| s.tokens).sum();
            let budget = if writing == 0 { SIZE.alone } else { SIZE.beside };
            prop_assert_eq!(shares.iter().filter(|s| waiting[s.index] == 0).count(), writing);
            prop_assert_eq!(prompts, budget.min(waiting.iter().sum()));
            prop_assert!(shares.iter().all(|s| s.tokens <= waiting[s.index].max(1)));
        }
    }
}
