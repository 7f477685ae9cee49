//! The draft model of a worker: the answers that it guesses for, its memory, its times, and its end if it fails.
//!
//! It guesses only in steps that read no prompts: those are full, and a prompt should not wait for guesses.

use std::sync::atomic::Ordering;
use std::time::Instant;

use super::{GrowthNeed, Worker};
use crate::draft::{DRAFT_LIMITS, DraftTask, Drafter, Drafts, MAX_DRAFTING, StepTimes};
use crate::loaded_model::DraftModel;
use crate::sequence::{Sequence, Stage};

/// A step whose time shows whether drafts are worth it.
pub(super) struct MeasuredStep {
    began: Instant,
    streams: usize,
    rounds: usize,
}

/// An answer to guess for.
struct Wanted {
    /// The sequence.
    at: usize,
    next: i32,
    most: usize,
}

impl<'model> Worker<'model> {
    /// The drafts of a model that has them, if its memory can drop wrong guesses.
    pub(super) fn start_drafter(&mut self) {
        let Some(draft) = &self.loaded.draft else { return };
        let made = match self.drops_guesses {
            true => Drafter::new(draft, self.loaded.model.n_vocab()),
            false => Err("the model cannot take tokens back".to_owned()),
        };
        match made {
            Ok(drafter) => self.drafter = Some(drafter),
            Err(error) => self.stop_drafter(draft, &error),
        }
    }

    /// Turns drafts off. The answers continue without them.
    fn stop_drafter(&mut self, draft: &'model DraftModel, error: &str) {
        tracing::warn!(
            model = %self.loaded.id,
            draft = %draft.loaded.id,
            error,
            "the draft model failed, so the model answers without it until it is loaded again. Lower [engine.embedded] context if \
             memory is short"
        );
        self.drafter = None;
        draft.cells.store(0, Ordering::Relaxed);
        self.claim_again(GrowthNeed::Later);
    }

    /// Guesses the next tokens of the answers in progress with the draft model. `None` if the time of the step shows nothing.
    pub(super) fn draft(&mut self, began: Instant) -> Option<MeasuredStep> {
        let draft = self.loaded.draft.as_deref()?;
        let plan = self.drafter.as_ref()?.plan(self.alive.len());
        let streams = self.alive.len();
        let is_writing = |sequence: &Sequence| matches!(sequence.stage, Stage::Writing(_));
        // With guesses of another kind, the time of a step says nothing about drafts.
        let is_guessed = |sequence: &Sequence| !sequence.guesses().is_empty();
        if streams == 0
            || streams > MAX_DRAFTING
            || !self.alive.iter().all(is_writing)
            || self.alive.iter().any(is_guessed)
        {
            return None;
        }
        let plain = MeasuredStep { began, streams, rounds: 0 };
        let Some(least) = plan else { return Some(plain) };
        // The text would wait for the guesses.
        self.send_texts();
        let step = self.loaded.step();
        // The batch has space for a token and the guesses of each answer.
        let most = ((step.alone - step.beside).saturating_sub(streams) / streams).min(DRAFT_LIMITS.most);
        let wanted: Vec<Wanted> = (0..)
            .zip(&mut self.alive)
            .filter_map(|(at, sequence)| {
                let (next, most) = sequence.wants_draft(most)?;
                Some(Wanted { at, next, most })
            })
            .collect();
        if wanted.is_empty() {
            return Some(plain);
        }
        let drafts = match self.draft_for(draft, &wanted, least) {
            Ok(drafts) => drafts,
            Err(error) => {
                self.stop_drafter(draft, &error);
                return None;
            }
        };
        for ((wanted, guesses), probabilities) in wanted.iter().zip(&drafts.guesses).zip(drafts.probabilities)
        {
            self.alive[wanted.at].take_draft(guesses, probabilities);
            draft.guessed.fetch_add(guesses.len() as u64, Ordering::Relaxed);
        }
        (!drafts.caught_up).then_some(MeasuredStep { rounds: drafts.rounds, ..plain })
    }

    /// The guesses for these answers. The memory of the draft model grows for them, if it may.
    fn draft_for(&mut self, draft: &DraftModel, wanted: &[Wanted], least: f32) -> Result<Drafts, String> {
        let (loaded, slots) = (self.loaded, &self.slots);
        let Some(drafter) = &mut self.drafter else { return Ok(Drafts::default()) };
        let task = |wanted: &Wanted| {
            let sequence = &self.alive[wanted.at];
            DraftTask {
                slot: sequence.slot,
                text: slots.tokens(sequence.slot),
                next: wanted.next,
                most: wanted.most,
                written: sequence.written(),
                trust: sequence.trust(),
            }
        };
        let tasks: Vec<DraftTask<'_>> = wanted.iter().map(task).collect();
        let alive: Vec<usize> = self.alive.iter().map(|sequence| sequence.slot).collect();
        if let Some(cells) = drafter.wanted_cells(&tasks) {
            let before = draft.cells.swap(cells, Ordering::Relaxed);
            let own = u32::try_from(slots.cells()).unwrap_or(u32::MAX);
            if (self.claim)(own, GrowthNeed::Later) {
                drafter.enlarge(cells)?;
            } else {
                draft.cells.store(before, Ordering::Relaxed);
                drafter.refuse(cells);
                tracing::warn!(
                    model = %loaded.id,
                    draft = %draft.loaded.id,
                    "the draft model has too little memory for more text, so longer conversations are answered without it. \
                     Lower [engine.embedded] context, or raise memory_mb"
                );
            }
        }
        drafter.draft(&tasks, &alive, least, |token| loaded.ends_text(token))
    }

    /// Learns how long the step took, in which so many guesses were right.
    pub(super) fn measure(&mut self, step: &MeasuredStep, right: usize) {
        let gained = step.streams + right;
        let times = StepTimes { whole: step.began.elapsed(), rounds: step.rounds, gained };
        if let Some(drafter) = &mut self.drafter {
            drafter.learn(step.streams, &times);
        }
    }
}

#[cfg(test)]
#[path = "draft_tests.rs"]
mod tests;
