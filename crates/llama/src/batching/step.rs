//! One step of a worker: a batch goes through the model, the next tokens are chosen, and their text is sent.
//!
//! A graphics card computes by itself until the scores are needed. So the text of a token is sent after the next step has begun,
//! and the tokens of all answers are chosen on several threads, because the card waits for them.

use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::Worker;
use super::batch::{ScoredRow, StepRows, fill};
use super::draft::MeasuredStep;
use super::plan::shares;
use crate::context_memory::{copy, remove};
use crate::prompt_lookup::MAX_GUESSES;
use crate::sequence::{Outcome, Sequence, Stage};
use crate::token_choice::{Broken, TokenChoice, TokenChooser};

/// The most answers in progress for which tokens are guessed.
const MAX_GUESSING: usize = 4;

/// A token to choose.
struct ChoiceTask<'a> {
    /// The sequence that it is for.
    at: usize,
    chooser: &'a mut TokenChooser,
    scores: &'a [f32],
    chosen: Option<Result<TokenChoice, Broken>>,
}

/// Guesses that were read in a step.
struct ReadGuesses {
    /// The sequence that they are for.
    at: usize,
    /// The row of the token before them. Their own follow.
    row: usize,
    tokens: Vec<i32>,
}

impl Worker<'_> {
    /// One pass of the model.
    pub(super) fn step(&mut self) {
        let measured = self.guess();
        self.read_picture();
        let Some(rows) = self.decode() else { return };
        // A card computes now. What the text means for an answer is known before its next token is chosen.
        self.send_texts();
        let right = self.choose(&rows);
        if let Some(step) = measured {
            self.measure(&step, right);
        }
        if !self.loaded.offload.is_whole {
            // The next step would end before the text is sent.
            self.send_texts();
        }
        self.arrange_memory();
        self.sweep();
    }

    /// Sends the text of the tokens that were chosen.
    pub(super) fn send_texts(&mut self) {
        for sequence in &mut self.alive {
            sequence.send_text(self.loaded);
        }
    }

    /// Begins a pass of the model; returns the rows of scores that it gives. `None` if there is nothing to compute, or if it fails.
    fn decode(&mut self) -> Option<StepRows> {
        let context = self.context.as_mut()?;
        let active: Vec<usize> = (0..self.alive.len()).filter(|&at| self.alive[at].has_tokens()).collect();
        if active.is_empty() {
            return None;
        }
        let left: Vec<usize> = active.iter().map(|&at| self.alive[at].next_to_read()).collect();
        let answers = active.iter().zip(&left).filter(|(_, left)| **left == 0);
        let written: usize = answers.map(|(&at, _)| self.alive[at].next_tokens(1).0.len()).sum();
        let plan = shares(&left, written, self.loaded.step());

        let rows = fill(&mut self.batch, &self.slots, &self.alive, &active, &plan);
        if let Err(error) = context.decode(&mut self.batch) {
            self.fail_all(error);
            return None;
        }
        let computed = u64::try_from(self.batch.n_tokens()).unwrap_or(0);
        self.loaded.computed.fetch_add(computed, Ordering::Relaxed);
        for share in &plan {
            let sequence = &mut self.alive[active[share.index]];
            let slot = sequence.slot;
            for &token in sequence.advance(share.tokens) {
                self.slots.append(slot, token);
            }
        }
        Some(rows)
    }

    /// Chooses the next tokens from the scores of the step. Returns how many guesses were right.
    fn choose(&mut self, rows: &StepRows) -> usize {
        let (Some(context), loaded) = (&self.context, self.loaded) else { return 0 };
        let step = rows.scores(context);
        for row in &rows.used {
            if let Some(position) = row.position {
                self.alive[row.at].score_prompt(position, step.row(row.row), loaded);
            }
        }
        let ends: Vec<&ScoredRow> = rows.used.iter().filter(|row| row.position.is_none()).collect();
        let mut scores: Vec<Option<&[f32]>> = vec![None; self.alive.len()];
        for row in &ends {
            scores[row.at] = Some(step.row(row.row));
        }
        for (at, follower) in self.alive.iter().enumerate() {
            if !matches!(follower.stage, Stage::Following) {
                continue;
            }
            // The other answers of a request begin after its prompt.
            let leader = ends.iter().find(|row| Rc::ptr_eq(&self.alive[row.at].shared, &follower.shared));
            if let Some(leader) = leader {
                let from = self.alive[leader.at].slot;
                scores[at] = scores[leader.at];
                self.slots.copied(from, follower.slot);
                self.copies.push((from, follower.slot));
            }
        }
        let guessed: Vec<ReadGuesses> = ends
            .iter()
            .map(|row| ReadGuesses { at: row.at, row: row.row, tokens: self.alive[row.at].guesses() })
            .filter(|guesses| !guesses.tokens.is_empty())
            .collect();

        let mut tasks: Vec<ChoiceTask<'_>> = self
            .alive
            .iter_mut()
            .zip(scores)
            .enumerate()
            .filter_map(|(at, (sequence, scores))| {
                let scores = scores?;
                if !sequence.needs_token() {
                    return None;
                }
                Some(ChoiceTask { at, chooser: &mut sequence.chooser, scores, chosen: None })
            })
            .collect();
        let vocabulary = tasks.first().map_or(0, |task| task.scores.len());
        self.sampling.run(&mut tasks, vocabulary, |task| {
            task.chosen = Some(task.chooser.choose(task.scores, |token| loaded.ends_text(token)));
        });
        let chosen: Vec<_> = tasks.into_iter().filter_map(|task| Some((task.at, task.chosen?))).collect();
        for (at, choice) in chosen {
            self.alive[at].take(choice);
        }
        self.check_guesses(rows, guessed)
    }

    /// Continues with the guesses that are right, and chooses the token after each. Returns how many there are.
    fn check_guesses(&mut self, rows: &StepRows, guessed: Vec<ReadGuesses>) -> usize {
        let (Some(context), loaded) = (&self.context, self.loaded) else { return 0 };
        if guessed.is_empty() {
            return 0;
        }
        let step = rows.scores(context);
        let mut all_right = 0;
        for ReadGuesses { at, row: before, tokens } in guessed {
            let sequence = &mut self.alive[at];
            // The text decides whether the answer continues.
            sequence.send_text(loaded);
            let mut right = 0;
            for (row, &guess) in (before + 1..).zip(&tokens) {
                if !sequence.continues_with(guess) {
                    break;
                }
                right += 1;
                self.slots.append(sequence.slot, guess);
                let choice = sequence.chooser.choose(step.row(row), |token| loaded.ends_text(token));
                sequence.take(choice);
                sequence.send_text(loaded);
            }
            let is_drafted = sequence.judge_guesses(tokens.len(), right);
            loaded.guessed.fetch_add(right as u64, Ordering::Relaxed);
            if let Some(draft) = loaded.draft.as_ref().filter(|_| is_drafted) {
                draft.right.fetch_add(right as u64, Ordering::Relaxed);
            }
            if right < tokens.len() {
                self.wrong.push(sequence.slot);
            }
            all_right += right;
        }
        all_right
    }

    /// Removes wrong guesses, and copies prompts for the other answers of their requests.
    fn arrange_memory(&mut self) {
        let Some(context) = &mut self.context else { return };
        for slot in self.wrong.drain(..) {
            remove(context, slot, self.slots.position(slot, self.slots.len(slot)));
        }
        for (from, to) in self.copies.drain(..) {
            remove(context, to, 0);
            copy(context, from, to, None);
        }
    }

    /// Guesses the next tokens: of answers that repeat earlier text, and if there are none, with a draft model.
    fn guess(&mut self) -> Option<MeasuredStep> {
        let began = Instant::now();
        self.look_up();
        self.draft(began)
    }

    /// Guesses the next tokens of answers that repeat earlier text, if the step is small: a full one is hardly faster per token.
    fn look_up(&mut self) {
        let is_writing = |sequence: &&Sequence| matches!(sequence.stage, Stage::Writing(_));
        let writing = self.alive.iter().filter(is_writing).count();
        let may = self.loaded.prompt_lookup && self.drops_guesses;
        if !may || writing == 0 || writing > MAX_GUESSING {
            return;
        }
        let step = self.loaded.step();
        // The batch has space for a token and the guesses of each answer beside the prompts.
        let most = ((step.alone - step.beside).saturating_sub(writing) / writing).min(MAX_GUESSES);
        for sequence in &mut self.alive {
            sequence.guess(self.slots.tokens(sequence.slot), most);
        }
    }

    /// Releases finished sequences.
    fn sweep(&mut self) {
        let (slots, loaded) = (&mut self.slots, self.loaded);
        self.alive.retain_mut(|sequence| {
            if sequence.outcome.is_some() {
                // The last text may change how the answer ends.
                sequence.send_text(loaded);
            }
            let Some(outcome) = sequence.outcome.take() else {
                return true;
            };
            slots.release(sequence.slot);
            match outcome {
                Outcome::Finished(reason) => sequence.finish(reason),
                Outcome::Broken(broken) => sequence.break_off(&broken, &loaded.id),
                Outcome::Gone => {}
            }
            false
        });
    }
}
