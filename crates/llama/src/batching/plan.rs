//! Plans one step of the model. Pure.

/// The limits of a step.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StepSize {
    /// Prompt tokens if no sequence generates.
    pub(crate) alone: usize,
    /// Prompt tokens while others generate, so that a long prompt does not delay them. If more prompts wait than answers are
    /// written, the step may be as large as without answers.
    pub(crate) beside: usize,
}

/// Prompt tokens per step. A step cannot be interrupted, so the next request waits for its end. More would be hardly faster on a
/// processor.
pub(crate) const STEP: StepSize = StepSize { alone: 128, beside: 64 };

/// The part of a step for the oldest prompt, so that shorter ones do not keep it waiting.
const OLDEST: usize = 4;

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

/// Divides a step. `waiting[i]` is the number of prompt tokens that sequence `i` must still read, zero if it generates; the oldest
/// comes first. `written` is the number of tokens of those that generate, with guesses.
///
/// A prompt that is nearly read is read before the others, because its answer can begin. Equal shares would end all prompts at the
/// same time, as late as the last one.
pub(crate) fn shares(waiting: &[usize], written: usize, size: StepSize) -> Vec<Share> {
    let answers = waiting.iter().filter(|left| **left == 0).count();
    let mut shares: Vec<Share> = Vec::with_capacity(waiting.len());
    shares.extend((0..waiting.len()).filter(|at| waiting[*at] == 0).map(|index| Share { index, tokens: 1 }));
    let mut prompts: Vec<Share> =
        (0..waiting.len()).filter(|at| waiting[*at] > 0).map(|index| Share { index, tokens: 0 }).collect();
    let mut budget = if prompts.len() > answers {
        size.alone.saturating_sub(written).max(size.beside)
    } else {
        size.beside
    };
    if let Some(oldest) = prompts.first_mut() {
        oldest.tokens = waiting[oldest.index].min(budget.div_ceil(OLDEST));
        budget -= oldest.tokens;
    }
    // Stable, so that the older of equals is first.
    prompts.sort_by_key(|share| waiting[share.index] - share.tokens);
    for share in &mut prompts {
        let more = (waiting[share.index] - share.tokens).min(budget);
        share.tokens += more;
        budget -= more;
    }
    shares.extend(prompts.into_iter().filter(|share| share.tokens > 0));
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

    /// The plan of a step without guesses.
    fn plan(waiting: &[usize], size: StepSize) -> Vec<Share> {
        shares(waiting, waiting.iter().filter(|left| **left == 0).count(), size)
    }

    /// The step at whose end each of these prompts is read, if all arrive together.
    fn steps(prompts: &[usize], size: StepSize) -> Vec<usize> {
        let mut left = prompts.to_vec();
        let mut read_at = vec![0; prompts.len()];
        for step in 1.. {
            for Share { index, tokens } in plan(&left, size) {
                if left[index] > 0 {
                    left[index] -= tokens;
                    read_at[index] = if left[index] == 0 { step } else { 0 };
                }
            }
            if !read_at.contains(&0) {
                break;
            }
        }
        read_at
    }

    #[test]
    fn a_lone_prompt_gets_the_whole_step() {
        assert_eq!(plan(&[2000], SIZE), [share(0, 512)]);
        assert_eq!(plan(&[30], SIZE), [share(0, 30)]);
    }

    #[test]
    fn a_long_prompt_does_not_stall_generation() {
        assert_eq!(plan(&[0, 5000, 0], SIZE), [share(0, 1), share(2, 1), share(1, 256)]);
        assert_eq!(plan(&[0, 5000], SIZE), [share(0, 1), share(1, 256)]);
    }

    #[test]
    fn a_short_prompt_is_read_at_once_beside_a_long_one() {
        assert_eq!(plan(&[5000, 20], SIZE), [share(1, 20), share(0, 492)]);
    }

    #[test]
    fn short_prompts_never_stop_the_oldest() {
        assert_eq!(plan(&[5000, 600, 600], SIZE), [share(1, 384), share(0, 128)]);
        assert_eq!(
            plan(&[5000, 100, 0, 0, 400], SIZE),
            [share(2, 1), share(3, 1), share(1, 100), share(4, 512 - 2 - 128 - 100), share(0, 128),]
        );
        let smallest = StepSize { alone: 1, beside: 1 };
        assert_eq!(plan(&[9, 1], smallest), [share(0, 1)]);
    }

    #[test]
    fn many_prompts_may_delay_a_few_answers() {
        assert_eq!(plan(&[0, 300, 300], SIZE), [share(0, 1), share(1, 300), share(2, 211)]);
        // With guesses the batch has less space.
        assert_eq!(shares(&[0, 300, 300], 40, SIZE), [share(0, 1), share(1, 300), share(2, 172)]);
        assert_eq!(shares(&[0, 300, 300], 500, SIZE), [share(0, 1), share(1, 256)]);
    }

    #[test]
    fn answers_begin_one_after_the_other_and_not_all_at_the_end() {
        // Equal shares would end all of them with the third step.
        assert_eq!(steps(&[40; 8], STEP), [1, 1, 1, 2, 2, 2, 3, 4]);
        assert_eq!(steps(&[40; 8], CARD_STEP), [1; 8]);
        // Equal shares would end all of them with the tenth step.
        let many = steps(&[40; 32], STEP);
        let mean = many.iter().sum::<usize>() as f64 / 32.0;
        assert!(many.is_sorted() && many[0] == 1 && mean < 8.0, "{mean}: {many:?}");
    }

    #[test]
    fn a_long_prompt_is_read_while_short_ones_keep_coming() {
        let mut long = 1000;
        let mut steps = 0;
        while long > 0 {
            // Two answers, and a new short prompt with every step.
            let plan = plan(&[long, 0, 0, 100], STEP);
            long -= plan.iter().find(|share| share.index == 0).map_or(0, |share| share.tokens);
            steps += 1;
        }
        assert!(steps <= 1000_usize.div_ceil(STEP.beside / OLDEST), "{steps}");
    }

    proptest! {
        #[test]
        fn a_step_is_never_larger_than_allowed_and_never_idle(
            waiting in prop::collection::vec(0usize..2000, 1..100),
            guesses in 0usize..16,
        ) {
            let answers = waiting.iter().filter(|left| **left == 0).count();
            let written = answers * (1 + guesses);
            // The worker guesses only so much.
            prop_assume!(guesses == 0 || written <= SIZE.alone - SIZE.beside);
            let shares = shares(&waiting, written, SIZE);
            let prompts: usize = shares.iter().filter(|s| waiting[s.index] > 0).map(|s| s.tokens).sum();
            let all: usize = waiting.iter().sum();
            prop_assert_eq!(shares.iter().filter(|s| waiting[s.index] == 0).count(), answers);
            prop_assert!(prompts >= SIZE.beside.min(all) && prompts <= SIZE.alone.min(all));
            prop_assert!(written + prompts <= SIZE.tokens_of(waiting.len()));
            prop_assert!(shares.iter().all(|s| s.tokens <= waiting[s.index].max(1)));
            let oldest = waiting.iter().position(|left| *left > 0);
            prop_assert!(oldest.is_none_or(|oldest| shares.iter().any(|s| s.index == oldest)));
        }
    }
}
