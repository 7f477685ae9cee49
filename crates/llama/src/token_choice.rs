//! Chooses the next token of one answer from the scores of the model: its sampler, within its grammar. Pure.
//!
//! Answers are independent of each other here, so that those of a step are chosen on several threads.

use thiserror::Error;

use crate::grammar::{Grammar, GrammarError};
use crate::logprobs::{TokenProbabilities, probabilities};
use crate::sampler::{Sampler, TokenCandidate};

/// Why an answer cannot continue.
#[derive(Debug, Error, PartialEq, Eq)]
pub(crate) enum Broken {
    #[error("the model has no next token to offer")]
    NoToken,
    #[error("no token of the model matches the grammar")]
    DeadEnd,
    #[error("the model ended its answer within its reasoning, before what the request requires")]
    InThought,
    #[error("the grammar is too large: {0}")]
    Grammar(#[from] GrammarError),
}

/// The next token of an answer.
#[derive(Debug, PartialEq)]
pub(crate) struct TokenChoice {
    pub(crate) token: i32,
    /// Whether it ends the text, and is no part of it.
    pub(crate) is_end: bool,
    /// Whether the grammar allows nothing after it.
    pub(crate) is_complete: bool,
    pub(crate) probabilities: Option<TokenProbabilities>,
}

/// Chooses the tokens of one answer.
pub(crate) struct TokenChooser {
    pub(crate) sampler: Sampler,
    /// The grammar that the next token must match.
    pub(crate) grammar: Option<Grammar>,
    /// Whether the text may end while there is no grammar. It may not in a thought, if what follows the thought is required.
    pub(crate) may_end: bool,
    /// The number of alternatives with their probabilities, if the caller wants probabilities.
    pub(crate) logprobs: Option<usize>,
}

impl TokenChooser {
    /// Chooses a token and advances by it. `ends_text` says whether a token ends a text.
    pub(crate) fn choose(
        &mut self,
        scores: &[f32],
        ends_text: impl Fn(i32) -> bool,
    ) -> Result<TokenChoice, Broken> {
        let token = self.pick(scores, &ends_text)?;
        if ends_text(token) {
            return Ok(TokenChoice { token, is_end: true, is_complete: false, probabilities: None });
        }
        self.sampler.accept(token);
        if let Some(grammar) = &mut self.grammar {
            grammar.accept(token)?;
        }
        Ok(TokenChoice {
            token,
            is_end: false,
            is_complete: self.grammar.as_ref().is_some_and(Grammar::is_complete),
            probabilities: self.logprobs.map(|top| probabilities(scores, token, top)),
        })
    }

    /// The next token, within the grammar if there is one.
    fn pick(&mut self, scores: &[f32], ends_text: &impl Fn(i32) -> bool) -> Result<i32, Broken> {
        let free = self.sampler.choose(scores).ok_or(Broken::NoToken)?;
        let Some(grammar) = &mut self.grammar else {
            if self.may_end || !ends_text(free) {
                return Ok(free);
            }
            return self.pick_other(scores, ends_text);
        };
        // The free choice is nearly always allowed, and checking one token is a thousand times cheaper than all.
        if grammar.allows(free)? {
            return Ok(free);
        }
        self.sampler.choose_allowed(scores, |candidates| grammar.forbid(candidates))?.ok_or(Broken::DeadEnd)
    }

    /// The next token among those that do not end the text.
    fn pick_other(&mut self, scores: &[f32], ends_text: &impl Fn(i32) -> bool) -> Result<i32, Broken> {
        let forbid = |candidates: &mut [TokenCandidate]| -> Result<(), Broken> {
            for candidate in candidates.iter_mut().filter(|candidate| ends_text(candidate.token)) {
                candidate.score = f32::NEG_INFINITY;
            }
            Ok(())
        };
        self.sampler.choose_allowed(scores, forbid)?.ok_or(Broken::NoToken)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::grammar::{GrammarText, Spelling, Vocabulary};
    use crate::sampler::SamplingParams;
    use crate::sampling_threads::SamplingThreads;
    use crate::schema::Enforceable;

    /// The token that ends a text.
    const END: i32 = 2;

    fn chooser(params: SamplingParams) -> TokenChooser {
        TokenChooser { sampler: Sampler::new(params), grammar: None, may_end: true, logprobs: None }
    }

    fn choose(chooser: &mut TokenChooser, scores: &[f32]) -> Result<i32, Broken> {
        chooser.choose(scores, |token| token == END).map(|choice| choice.token)
    }

    #[test]
    fn scores_that_are_not_numbers_break_the_answer() {
        for temperature in [0.0, 1.0] {
            let mut chooser = chooser(SamplingParams::new(temperature, 1));
            assert_eq!(choose(&mut chooser, &[f32::NAN; 8]), Err(Broken::NoToken));
            assert_eq!(choose(&mut chooser, &[f32::NEG_INFINITY; 8]), Err(Broken::NoToken));
            assert_eq!(choose(&mut chooser, &[f32::NAN, 1.0, f32::NAN]), Ok(1));
        }
    }

    #[test]
    fn a_grammar_without_a_next_token_breaks_the_answer() {
        // A model that cannot write what the schema wants.
        let tokens = [Spelling::Text(b"t"), Spelling::Text(b"x"), Spelling::Control(b"end")];
        let vocabulary = Arc::new(Vocabulary::new(tokens.into_iter(), vec![2]).expect("a vocabulary"));
        let schema = Enforceable::read(&json!({"type": "boolean"})).expect("a schema");
        let grammar = vocabulary.start(GrammarText::of_schema(schema)).expect("a grammar");
        let mut chooser = TokenChooser { grammar: Some(grammar), ..chooser(SamplingParams::new(0.0, 1)) };
        let scores = [0.0, 2.0, 1.0];
        // It begins a word, and nothing can continue it.
        assert_eq!(choose(&mut chooser, &scores), Ok(0));
        assert_eq!(choose(&mut chooser, &scores), Err(Broken::DeadEnd));
    }

    #[test]
    fn a_text_that_may_not_end_continues_with_another_token() {
        for temperature in [0.0, 1.0] {
            let params = SamplingParams::new(temperature, 1);
            let mut chooser = TokenChooser { may_end: false, ..chooser(params) };
            assert_eq!(choose(&mut chooser, &[0.0, f32::NEG_INFINITY, 9.0]), Ok(0));
            assert_eq!(choose(&mut chooser, &[f32::NEG_INFINITY, f32::NAN, 9.0]), Err(Broken::NoToken));
            chooser.may_end = true;
            assert_eq!(choose(&mut chooser, &[0.0, f32::NEG_INFINITY, 90.0]), Ok(END));
        }
    }

    #[test]
    fn the_token_that_ends_a_text_has_no_probabilities_and_no_penalty() {
        let params = SamplingParams { presence_penalty: 5.0, ..SamplingParams::new(0.0, 1) };
        let mut chooser = TokenChooser { logprobs: Some(0), ..chooser(params) };
        let ends = TokenChoice { token: END, is_end: true, is_complete: false, probabilities: None };
        for _ in 0..2 {
            assert_eq!(chooser.choose(&[0.0, 0.0, 1.0], |token| token == END).as_ref(), Ok(&ends));
        }
        let word = chooser.choose(&[4.0, 0.0, 1.0], |token| token == END).expect("a token");
        let chosen = word.probabilities.map(|probabilities| probabilities.chosen.0);
        assert_eq!((word.token, word.is_end, chosen), (0, false, Some(0)));
        assert_eq!(choose(&mut chooser, &[4.0, 0.0, 1.0]), Ok(END), "the first one has a penalty now");
    }

    /// Five tokens of each of 32 answers with their own settings, chosen with so many threads.
    fn answers(threads: usize) -> Vec<Vec<i32>> {
        const VOCABULARY: usize = 8_192;
        let mut random = fastrand::Rng::with_seed(7);
        let rows: Vec<Vec<f32>> =
            (0..32).map(|_| (0..VOCABULARY).map(|_| random.f32() * 12.0).collect()).collect();
        let settings = |seed: u64| SamplingParams {
            top_k: [0, 1, 40][(seed % 3) as usize],
            presence_penalty: if seed.is_multiple_of(2) { 1.5 } else { 0.0 },
            bias: if seed.is_multiple_of(5) { vec![(100, f32::NEG_INFINITY), (7, 3.0)] } else { Vec::new() },
            ..SamplingParams::new([0.0, 0.8, 1.5, 3.0][(seed % 4) as usize], seed)
        };
        let mut choosers: Vec<TokenChooser> = (0..32).map(|seed| chooser(settings(seed))).collect();
        let mut helpers = SamplingThreads::new(threads, 1 << 20);
        let mut chosen = vec![Vec::new(); 32];
        for _ in 0..5 {
            let mut tasks: Vec<(&mut TokenChooser, &[f32], Option<i32>)> = choosers
                .iter_mut()
                .zip(&rows)
                .map(|(chooser, scores)| (chooser, scores.as_slice(), None))
                .collect();
            // As many scores as make threads worthwhile.
            helpers.run(&mut tasks, 1 << 20, |(chooser, scores, token)| {
                *token = choose(chooser, scores).ok();
            });
            for (tokens, (_, _, token)) in chosen.iter_mut().zip(tasks) {
                tokens.extend(token);
            }
        }
        chosen
    }

    #[test]
    fn several_threads_choose_the_same_tokens_as_one() {
        let alone = answers(1);
        assert!(alone.iter().all(|tokens| tokens.len() == 5));
        assert_eq!(answers(2), alone);
        assert_eq!(answers(8), alone);
    }
}
