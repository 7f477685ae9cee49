//! The memory of a draft model, and its guesses for several answers at once.

use std::sync::atomic::Ordering;

use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use super::costs::{DraftCosts, StepTimes};
use super::slots::{DraftSlots, Rewind};
use super::trust::DraftTrust;
use crate::context_memory::{copy, read_memory, remove, seq_id, write_memory};
use crate::error::plain_message;
use crate::loaded_model::DraftModel;
use crate::options::DraftUse;
use crate::prefix_cache::Token;

/// Tokens that are so much less likely than the most likely one hardly change its probability.
const NEGLIGIBLE: f32 = 10.0;

/// Tokens of text that are read for each token of the answer so far. An answer that ends soon gains nothing from a long prompt that is
/// read twice, and one that is long already will mostly be longer.
const READ_FOR_EACH: usize = 32;

/// An answer that wants guesses.
#[derive(Debug, Clone)]
pub(crate) struct DraftTask<'a> {
    pub(crate) slot: usize,
    /// The tokens that the target has read.
    pub(crate) text: &'a [Token],
    /// The token that it reads next.
    pub(crate) next: Token,
    /// The most guesses.
    pub(crate) most: usize,
    /// Tokens of the answer so far.
    pub(crate) written: usize,
    pub(crate) trust: DraftTrust,
}

/// What a draft model did in a step.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Drafts {
    /// The guesses of each task, in order.
    pub(crate) guesses: Vec<Vec<Token>>,
    /// The probability of each guess with all before it.
    pub(crate) probabilities: Vec<Vec<f32>>,
    /// Passes of the model.
    pub(crate) rounds: usize,
    /// Whether it also read text that it had not followed, which takes longer than usual.
    pub(crate) caught_up: bool,
}

/// A token that is expected, and its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Expected {
    token: Token,
    probability: f32,
}

/// A task whose next token is asked for.
struct Asked {
    task: usize,
    /// The place in the batch of the token before it.
    row: i32,
    /// The probability of all guesses so far.
    probability: f32,
}

/// Guesses for the answers of one target.
pub(crate) struct Drafter<'model> {
    model: &'model DraftModel,
    context: LlamaContext<'model>,
    batch: LlamaBatch<'static>,
    /// Tokens of a batch.
    batch_size: usize,
    slots: DraftSlots,
    costs: DraftCosts,
    /// The size of the vocabulary that both models have.
    vocabulary: Token,
    /// A capacity for which there was no memory.
    refused: Option<u32>,
}

impl<'model> Drafter<'model> {
    /// Allocates the memory, and runs the model once so that a card has all that it needs. `vocabulary` is the size of the target's.
    pub(crate) fn new(model: &'model DraftModel, vocabulary: i32) -> Result<Self, String> {
        let loaded = &model.loaded;
        let cells = loaded.first_cells();
        let mut context = loaded.writing_context(cells).map_err(plain_message)?;
        let batch_size = loaded.step().tokens_of(loaded.parallel);
        let mut batch = LlamaBatch::new(batch_size, 1);
        for (position, at) in (0..).zip(0..loaded.warm_up_tokens()) {
            // The batch is large enough for a step.
            let _ = batch.add(LlamaToken(0), position, &[0], at < loaded.parallel);
        }
        context.decode(&mut batch).map_err(|error| error.to_string())?;
        if !remove(&mut context, 0, 1) {
            return Err("it cannot take tokens back".to_owned());
        }
        context.clear_kv_cache();
        model.cells.store(cells, Ordering::Relaxed);
        Ok(Drafter {
            model,
            context,
            batch,
            batch_size,
            slots: DraftSlots::new(loaded.parallel, cells as usize),
            costs: DraftCosts::default(),
            vocabulary: vocabulary.min(loaded.model.n_vocab()),
            refused: None,
        })
    }

    /// The probability that guesses need in a step with so many answers; `None` for a step without drafts.
    pub(crate) fn plan(&self, streams: usize) -> Option<f32> {
        match self.model.when {
            DraftUse::Always => Some(0.0),
            DraftUse::Faster => self.costs.plan(streams),
        }
    }

    /// Learns from a step with so many answers.
    pub(crate) fn learn(&mut self, streams: usize, step: &StepTimes) {
        self.costs.learn(streams, step);
    }

    /// The cells for these tasks, if the memory should grow for them and may.
    pub(crate) fn wanted_cells(&self, tasks: &[DraftTask<'_>]) -> Option<u32> {
        let most = self.model.loaded.context_size.cells;
        let now = u32::try_from(self.slots.cells()).unwrap_or(u32::MAX);
        let more = |task: &DraftTask<'_>| {
            (task.text.len() + 1 + task.most).saturating_sub(self.slots.len(task.slot))
        };
        let followed = tasks.iter().filter(|task| self.is_followed(task));
        let wanted = u32::try_from(self.slots.wanted(followed.map(more).sum())).unwrap_or(u32::MAX);
        if wanted <= now || now >= most {
            return None;
        }
        let mut cells = now.max(1);
        while cells < wanted {
            cells = cells.saturating_mul(2);
        }
        let cells = cells.min(most);
        self.refused.is_none_or(|refused| cells < refused).then_some(cells)
    }

    /// There is no memory for so many cells. Longer conversations are not drafted.
    pub(crate) fn refuse(&mut self, cells: u32) {
        self.refused = Some(cells);
    }

    /// Replaces the memory by one with so many cells. After a failure, this drafter must not be used.
    pub(crate) fn enlarge(&mut self, cells: u32) -> Result<(), String> {
        let held = match self.slots.held() {
            0 => Vec::new(),
            _ => read_memory(&self.context).ok_or("its memory cannot be copied")?,
        };
        let mut larger = self.model.loaded.writing_context(cells).map_err(plain_message)?;
        if !held.is_empty() && !write_memory(&mut larger, &held) {
            return Err("its memory cannot be copied".to_owned());
        }
        self.context = larger;
        self.slots.grow(cells as usize);
        Ok(())
    }

    /// Lets the next long text exceed the memory.
    #[cfg(test)]
    pub(crate) fn forget_its_limit(&mut self) {
        self.slots.grow(1 << 20);
    }

    /// Guesses for all tasks together, until the guesses of each are less likely than `least`. `ends_text` says whether a token ends
    /// a text; it is never a guess. A long text that was not followed is read over several steps. The slots `alive`, of all answers in
    /// progress, are not cleared for others.
    pub(crate) fn draft(
        &mut self,
        tasks: &[DraftTask<'_>],
        alive: &[usize],
        least: f32,
        ends_text: impl Fn(Token) -> bool,
    ) -> Result<Drafts, String> {
        let mut drafts = Drafts {
            guesses: vec![Vec::new(); tasks.len()],
            probabilities: vec![Vec::new(); tasks.len()],
            ..Drafts::default()
        };
        let mut asked = self.follow(tasks, alive, &mut drafts);
        while self.batch.n_tokens() > 0 {
            self.context.decode(&mut self.batch).map_err(|error| error.to_string())?;
            drafts.rounds += 1;
            self.batch.clear();
            for mut one in std::mem::take(&mut asked) {
                let (task, guesses) = (&tasks[one.task], &mut drafts.guesses[one.task]);
                let Some(expected) = most_likely(self.context.get_logits_ith(one.row)) else { continue };
                one.probability *= expected.probability;
                let token = expected.token;
                if task.trust.expected(one.probability) < least
                    || token >= self.vocabulary
                    || ends_text(token)
                {
                    continue;
                }
                guesses.push(token);
                drafts.probabilities[one.task].push(one.probability);
                if guesses.len() < task.most {
                    one.row = add(&mut self.batch, &mut self.slots, task.slot, &[token], true);
                    asked.push(one);
                }
            }
        }
        Ok(drafts)
    }

    /// Puts what the memory does not have of the tasks' texts into the batch, the shortest first. Returns those whose text ends there.
    fn follow(&mut self, tasks: &[DraftTask<'_>], alive: &[usize], drafts: &mut Drafts) -> Vec<Asked> {
        self.batch.clear();
        let others = alive.iter().filter(|slot| tasks.iter().all(|task| task.slot != **slot));
        let busy: Vec<usize> = tasks.iter().map(|task| task.slot).chain(others.copied()).collect();
        tasks.iter().for_each(|task| self.rewind(task));
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        order.sort_by_key(|&at| self.unread(&tasks[at]).len());
        let mut asked = Vec::new();
        let mut room = self.batch_size;
        // Cells for the guesses of the tasks before.
        let mut promised = 0;
        for at in order {
            let task = &tasks[at];
            if room == 0 || !self.is_followed(task) {
                continue;
            }
            let new = self.unread(task);
            let more = promised + new.len() + 1 + task.most;
            let Some(cleared) = self.slots.make_room(more, &busy) else { continue };
            for slot in cleared {
                remove(&mut self.context, slot, 0);
            }
            promised += task.most;
            // After a step in which all guesses were right, the last of them is new.
            drafts.caught_up |= new.len() > 1;
            if new.len() < room {
                room -= new.len() + 1;
                add(&mut self.batch, &mut self.slots, task.slot, new, false);
                let row = add(&mut self.batch, &mut self.slots, task.slot, &[task.next], true);
                asked.push(Asked { task: at, row, probability: 1.0 });
            } else {
                add(&mut self.batch, &mut self.slots, task.slot, &new[..room], false);
                room = 0;
            }
        }
        asked
    }

    /// The part of a text that the memory does not have.
    fn unread<'text>(&self, task: &DraftTask<'text>) -> &'text [Token] {
        task.text.get(self.slots.len(task.slot)..).unwrap_or_default()
    }

    /// Whether there will be guesses for a task. Not for a text that can be too long for the memory, or that is long while its answer is
    /// short; nor if it has a picture, or a token that only the target has.
    fn is_followed(&self, task: &DraftTask<'_>) -> bool {
        let new = self.unread(task);
        let is_known = |token: &Token| (0..self.vocabulary).contains(token);
        let is_early = self.model.when == DraftUse::Faster && new.len() > READ_FOR_EACH * (task.written + 1);
        let fits = task.text.len() + 1 + task.most <= self.model.loaded.context_size.cells as usize;
        fits && !is_early && new.iter().chain([&task.next]).all(is_known)
    }

    /// Removes from the memory of a task what does not belong to its text, and copies what another slot has of it. The next token is
    /// always read, because its scores are needed.
    fn rewind(&mut self, task: &DraftTask<'_>) {
        match self.slots.rewind(task.slot, task.text) {
            Rewind::Keep(length) => {
                remove(&mut self.context, task.slot, length);
            }
            Rewind::Copy { from, length } => {
                remove(&mut self.context, task.slot, 0);
                copy(&mut self.context, from, task.slot, Some(length));
            }
        }
    }
}

/// Adds tokens of a slot to a batch, and returns the place of the last one there.
fn add(
    batch: &mut LlamaBatch<'_>,
    slots: &mut DraftSlots,
    slot: usize,
    tokens: &[Token],
    scored: bool,
) -> i32 {
    for (position, &token) in (slots.len(slot)..).zip(tokens) {
        let position = i32::try_from(position).unwrap_or(i32::MAX);
        // The caller knows the room of the batch.
        let _ = batch.add(LlamaToken(token), position, &[seq_id(slot)], scored);
    }
    slots.append(slot, tokens);
    batch.n_tokens() - 1
}

/// The most likely token; `None` if no score is a number.
fn most_likely(scores: &[f32]) -> Option<Expected> {
    let best = scores.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    if !best.is_finite() {
        return None;
    }
    let at = scores.iter().position(|score| *score == best)?;
    let near = scores.iter().filter(|score| **score > best - NEGLIGIBLE);
    let sum: f32 = near.map(|score| (score - best).exp()).sum();
    Some(Expected { token: Token::try_from(at).ok()?, probability: 1.0 / sum })
}

#[cfg(test)]
#[path = "drafter_tests.rs"]
mod tests;
