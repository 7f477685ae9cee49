//! The thread of a model: one batch per step over all active sequences.
//!
//! Every step generates one token per sequence and reads a part of the waiting prompts. Requests are admitted in order, when a
//! slot and enough memory are free. Cancelled requests are noticed before every step. While the model is idle, a prompt may be
//! read ahead. Knows nothing of wire formats, files or other models.
#![expect(unsafe_code, reason = "the wrapper's functions that move a context's memory are unsafe")]

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use hob_core::EngineError;
use llama_cpp_2::DecodeError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use crate::batch_plan::{STEP, Share, shares};
use crate::embed::Embedder;
use crate::error::{busy, interrupted};
use crate::job::{EmbedJob, Job, WarmJob};
use crate::kv_state;
use crate::loaded_model::LoadedModel;
use crate::saved_prompts::SavedPrompts;
use crate::sequence::{Outcome, Sequence, Stage};
use crate::slots::{SlotAssignment, Slots, Token};

/// Seconds after which other models may have left their memory.
const RETRY_AFTER: u64 = 10;

/// Work for a model.
pub(crate) enum Order {
    Write(Box<Job>),
    Embed(EmbedJob),
    Warm(WarmJob),
}

/// The next action of an idle worker.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Idle {
    /// Wait for orders, up to this time.
    Wait(Duration),
    /// Unload the model.
    Leave,
}

/// Serves orders until the last sender is dropped, or until `idle` ends it. `idle` gets the time since the last order.
pub(crate) fn serve(
    loaded: &LoadedModel,
    orders: &Receiver<Order>,
    worker: &mut Worker<'_>,
    mut idle: impl FnMut(Duration) -> Idle,
) {
    let mut embedder = Embedder::new(loaded);
    let mut last_used = Instant::now();
    loop {
        if worker.is_idle() && embedder.is_idle() && worker.warming.is_some() {
            match orders.try_recv() {
                Ok(order) => worker.take(order, &mut embedder),
                Err(TryRecvError::Empty) => {
                    worker.warm();
                    last_used = Instant::now();
                    continue;
                }
                Err(TryRecvError::Disconnected) => return,
            }
        } else if worker.is_idle() && embedder.is_idle() {
            let Idle::Wait(wait) = idle(last_used.elapsed()) else { return };
            match orders.recv_timeout(wait) {
                Ok(order) => worker.take(order, &mut embedder),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        while let Ok(order) = orders.try_recv() {
            worker.take(order, &mut embedder);
        }
        worker.drop_cancelled();
        worker.admit();
        worker.step();
        embedder.step();
        last_used = Instant::now();
    }
}

pub(crate) struct Worker<'model> {
    loaded: &'model LoadedModel,
    /// `None` for an embedding model.
    context: Option<LlamaContext<'model>>,
    batch: LlamaBatch<'static>,
    slots: Slots,
    waiting: VecDeque<Box<Job>>,
    alive: Vec<Sequence>,
    /// Sequences to copy after the scores of a step were used.
    copies: Vec<(usize, usize)>,
    /// The prompt that is read ahead.
    warming: Option<Warming>,
    /// A size that could not be allocated, and the number of sequences then.
    refused: Option<(usize, usize)>,
    turn: usize,
    /// Asks for the memory of a model with this many cells.
    claim: Box<dyn FnMut(u32, GrowthNeed) -> bool + 'model>,
    saved: SavedPrompts,
}

/// What more memory is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum GrowthNeed {
    /// The request can wait until another one ends.
    Later,
    /// Nothing else can make room for the request.
    Now,
}

/// What a worker gets from outside.
pub(crate) struct WorkerParts<'model> {
    pub(crate) claim: Box<dyn FnMut(u32, GrowthNeed) -> bool + 'model>,
    pub(crate) saved: SavedPrompts,
}

/// A prompt that is read ahead.
struct Warming {
    job: WarmJob,
    /// Its slot, once it has begun.
    slot: Option<usize>,
}

impl<'model> Worker<'model> {
    /// Allocates the context, and runs the model once so that the first answer does not wait for the disk.
    pub(crate) fn new(loaded: &'model LoadedModel, parts: WorkerParts<'model>) -> Result<Self, EngineError> {
        let first_cells = loaded.context_size.first_cells;
        let mut worker = Worker {
            loaded,
            context: None,
            batch: LlamaBatch::new(STEP.tokens_of(loaded.parallel), 1),
            slots: Slots::new(loaded.parallel, first_cells as usize, loaded.reuse()),
            waiting: VecDeque::new(),
            alive: Vec::new(),
            copies: Vec::new(),
            warming: None,
            refused: None,
            turn: 0,
            claim: parts.claim,
            saved: parts.saved,
        };
        if !loaded.embeds_only {
            let mut context = loaded.writing_context(first_cells)?;
            // The first request would report the same failure.
            if worker.batch.add(LlamaToken(0), 0, &[0], true).is_ok() {
                let _ = context.decode(&mut worker.batch);
            }
            context.clear_kv_cache();
            worker.context = Some(context);
        }
        Ok(worker)
    }

    fn is_idle(&self) -> bool {
        self.alive.is_empty() && self.waiting.is_empty()
    }

    fn take(&mut self, order: Order, embedder: &mut Embedder<'_>) {
        match order {
            Order::Write(job) => {
                self.stop_warming();
                self.waiting.push_back(job);
            }
            Order::Embed(job) => embedder.take(job),
            Order::Warm(job) => {
                self.stop_warming();
                self.warming = Some(Warming { job, slot: None });
            }
        }
    }

    /// Reads a step of the prompt ahead.
    fn warm(&mut self) {
        let Some(mut warming) = self.warming.take() else { return };
        let prompt = &warming.job.prompt;
        let slot = match warming.slot {
            Some(slot) => slot,
            None => {
                self.restore(prompt);
                self.grow(prompt.len());
                let Some(place) = self.slots.place(prompt, prompt.len()) else { return };
                self.settle(&place);
                place.slot
            }
        };
        warming.slot = Some(slot);
        let start = self.slots.len(slot);
        let end = prompt.len().min(start + STEP.alone);
        let read = &prompt[start.min(end)..end];
        self.batch.clear();
        for (position, &token) in (start..).zip(read) {
            let position = i32::try_from(position).unwrap_or(i32::MAX);
            // The batch is large enough for a step.
            let _ = self.batch.add(LlamaToken(token), position, &[seq_id(slot)], false);
        }
        let is_wanted = !warming.job.done.is_closed() && !read.is_empty();
        let decoded = match &mut self.context {
            Some(context) if is_wanted => context.decode(&mut self.batch),
            _ => {
                self.slots.release(slot);
                return;
            }
        };
        if let Err(error) = decoded {
            self.slots.release(slot);
            self.fail_all(error);
            return;
        }
        self.loaded.computed.fetch_add(read.len() as u64, Ordering::Relaxed);
        for &token in read {
            self.slots.append(slot, token);
        }
        if end < prompt.len() {
            self.warming = Some(warming);
        } else {
            self.slots.release(slot);
            let _ = warming.job.done.send(());
        }
    }

    /// Ends reading ahead. Read tokens stay in the cache.
    fn stop_warming(&mut self) {
        if let Some(Warming { slot: Some(slot), .. }) = self.warming.take() {
            self.slots.release(slot);
        }
    }

    /// Grows the memory for one more sequence, within the limit, so that nothing must be cleared.
    fn grow(&mut self, cells: usize) {
        let size = self.loaded.context_size;
        let most = size.cells as usize;
        let (now, wanted) = (self.slots.cells(), self.slots.wanted(cells, size.cached_cells as usize));
        let Some(context) = &self.context else { return };
        if wanted <= now || now >= most {
            return;
        }
        let mut cells = now.max(1);
        while cells < wanted {
            cells = cells.saturating_mul(2);
        }
        let cells = cells.min(most);
        // A failed allocation is retried when an answer has ended.
        let writing = self.alive.len();
        if writing > 0 && self.refused.is_some_and(|(refused, then)| cells >= refused && writing >= then) {
            return;
        }
        let need = if writing == 0 { GrowthNeed::Now } else { GrowthNeed::Later };
        let claimed = u32::try_from(cells).ok().filter(|cells| (self.claim)(*cells, need));
        let made = claimed.and_then(|cells| self.loaded.writing_context(cells).ok());
        let moved = made.and_then(|mut larger| move_memory(context, &mut larger).then_some(larger));
        match moved {
            Some(larger) => {
                tracing::debug!(model = %self.loaded.id, cells, "growing the memory of the model");
                self.context = Some(larger);
                self.slots.grow(cells);
            }
            // The others continue, and the new one waits.
            None => {
                tracing::warn!(model = %self.loaded.id, cells, "not enough memory for more conversations");
                self.refused = Some((cells, writing));
                if let Some(before) = claimed.and_then(|_| u32::try_from(now).ok()) {
                    (self.claim)(before, GrowthNeed::Later);
                }
            }
        }
    }

    /// Ends cancelled sequences. Their tokens stay in the cache.
    fn drop_cancelled(&mut self) {
        self.waiting.retain(|job| !job.output.is_closed());
        let (slots, model) = (&mut self.slots, &self.loaded.id);
        self.alive.retain(|sequence| {
            let gone = sequence.shared.output.is_closed();
            if gone {
                slots.release(sequence.slot);
                tracing::debug!(%model, unread = sequence.left_to_read(), "a caller disconnected; ending its answer");
            }
            !gone
        });
    }

    /// Admits requests in order, while there is space. Skips those whose prompt begins with what another sequence is reading,
    /// until that is done.
    fn admit(&mut self) {
        let mut at = 0;
        while let Some(job) = self.waiting.get(at) {
            if self.is_being_read(&job.prepared.prompt) {
                at += 1;
                continue;
            }
            let (lead, follow) = job.cells();
            let followers = job.prepared.ask.answers - 1;
            let needed = lead + follow * followers;
            if self.slots.idle() > followers {
                self.grow(needed);
            }
            let fits = self.slots.idle() > followers && self.slots.has_room(needed);
            if !fits {
                if !self.alive.is_empty() {
                    return;
                }
                // There is nothing to wait for.
                if let Some(job) = self.waiting.remove(at) {
                    let error = match needed > self.loaded.context_size.cells as usize {
                        true => interrupted("its prompt and answers need more memory than the model has"),
                        false => busy(
                            format!(
                                "not enough memory for {needed} tokens now; ask later, or for a shorter answer"
                            ),
                            RETRY_AFTER,
                        ),
                    };
                    let _ = job.output.try_send(Err(error));
                }
                continue;
            }
            if let Some(job) = self.waiting.remove(at) {
                self.start(job, lead, follow);
            }
        }
    }

    /// Whether waiting for another sequence that reads the same prefix is faster.
    fn is_being_read(&self, prompt: &[Token]) -> bool {
        let mut reading = self.alive.iter().filter(|sequence| matches!(sequence.stage, Stage::Reading(_)));
        reading.any(|sequence| self.slots.is_worth_waiting(prompt, sequence.prompt()))
    }

    /// Uses a prompt of an earlier run that begins like this one, if that saves enough.
    fn restore(&mut self, prompt: &[Token]) {
        let there = self.slots.longest_match(prompt);
        let Some((tokens, state)) = self.saved.take_match(prompt, there) else { return };
        self.grow(tokens.len());
        let Some(place) = self.slots.adopt(&tokens) else { return };
        self.settle(&place);
        if !self.context.as_mut().is_some_and(|context| kv_state::write(context, place.slot, &state)) {
            tracing::warn!(model = %self.loaded.id, "cannot use a prompt of an earlier run");
            self.forget(place.slot);
        }
    }

    fn forget(&mut self, slot: usize) {
        self.slots.clear(slot);
        if let Some(context) = &mut self.context {
            remove(context, slot, 0);
        }
    }

    /// Saves the most used prompts for the next start.
    pub(crate) fn save_prompts(&self) {
        if let Some(context) = &self.context {
            self.saved.save(&self.slots.kept(), |slot| kv_state::read(context, slot));
        }
    }

    fn start(&mut self, job: Box<Job>, lead: usize, follow: usize) {
        self.restore(&job.prepared.prompt);
        let Some(place) = self.slots.place(&job.prepared.prompt, lead) else {
            return;
        };
        let leader = place.slot;
        self.settle(&place);
        let reused = self.slots.len(leader);
        let mut slots = vec![leader];
        for _ in 1..job.prepared.ask.answers {
            if let Some(place) = self.slots.follow(follow) {
                self.settle(&place);
                slots.push(place.slot);
            }
        }
        self.alive.extend(Sequence::all(*job, &slots, reused));
    }

    /// Applies a decision of the slots to the memory.
    fn settle(&mut self, place: &SlotAssignment) {
        let Some(context) = &mut self.context else {
            return;
        };
        for &slot in &place.forget {
            remove(context, slot, 0);
        }
        match place.copy_from {
            Some(from) => {
                remove(context, place.slot, 0);
                copy(context, from, place.slot, Some(place.reused));
            }
            None => {
                if !remove(context, place.slot, place.reused) {
                    remove(context, place.slot, 0);
                    self.slots.clear(place.slot);
                }
            }
        }
    }

    /// One pass of the model.
    fn step(&mut self) {
        let Some(context) = &mut self.context else {
            return;
        };
        let active: Vec<usize> =
            (0..self.alive.len()).filter(|&at| !matches!(self.alive[at].stage, Stage::Following)).collect();
        if active.is_empty() {
            return;
        }
        let left: Vec<usize> = active.iter().map(|&at| self.alive[at].left_to_read()).collect();
        let plan = shares(&left, STEP, self.turn);
        self.turn = self.turn.wrapping_add(1);

        let outputs = fill(&mut self.batch, &self.slots, &self.alive, &active, &plan);
        if let Err(error) = context.decode(&mut self.batch) {
            self.fail_all(error);
            return;
        }
        let computed = u64::try_from(self.batch.n_tokens()).unwrap_or(0);
        self.loaded.computed.fetch_add(computed, Ordering::Relaxed);
        for share in &plan {
            let sequence = &mut self.alive[active[share.index]];
            for token in sequence.advance(share.tokens) {
                self.slots.append(sequence.slot, token);
            }
        }
        for (at, row) in outputs {
            let scores = context.get_logits_ith(row);
            self.alive[at].choose(scores, self.loaded);
            let shared = Rc::clone(&self.alive[at].shared);
            let from = self.alive[at].slot;
            // The other answers of the request begin after the prompt.
            for follower in &mut self.alive {
                if matches!(follower.stage, Stage::Following) && Rc::ptr_eq(&follower.shared, &shared) {
                    follower.choose(scores, self.loaded);
                    self.slots.copied(from, follower.slot);
                    self.copies.push((from, follower.slot));
                }
            }
        }
        for (from, to) in self.copies.drain(..) {
            remove(context, to, 0);
            copy(context, from, to, None);
        }
        self.sweep();
    }

    /// Releases finished sequences.
    fn sweep(&mut self) {
        let (slots, model) = (&mut self.slots, self.loaded.id.as_str());
        self.alive.retain_mut(|sequence| {
            let Some(outcome) = sequence.outcome.take() else {
                return true;
            };
            slots.release(sequence.slot);
            match outcome {
                Outcome::Finished(reason) => sequence.finish(reason),
                Outcome::Broken(broken) => sequence.break_off(&broken, model),
                Outcome::Gone => {}
            }
            false
        });
    }

    /// A batch failed: every sequence in it fails, and the memory is cleared.
    fn fail_all(&mut self, error: DecodeError) {
        tracing::error!(model = %self.loaded.id, %error, sequences = self.alive.len(), "a step of the model failed");
        for sequence in self.alive.drain(..) {
            self.slots.release(sequence.slot);
            let reason = format!("a step of the model '{}' failed ({error})", self.loaded.id);
            let _ = sequence.shared.output.try_send(Err(interrupted(reason)));
        }
        self.slots.clear_all();
        if let Some(context) = &mut self.context {
            context.clear_kv_cache();
        }
    }
}

/// Puts each share of the step into the batch; gives back which sequence gets its scores from which row.
fn fill(
    batch: &mut LlamaBatch<'_>,
    slots: &Slots,
    alive: &[Sequence],
    active: &[usize],
    plan: &[Share],
) -> Vec<(usize, i32)> {
    batch.clear();
    let mut outputs = Vec::with_capacity(plan.len());
    for share in plan {
        let at = active[share.index];
        let sequence = &alive[at];
        let seq = seq_id(sequence.slot);
        let start = slots.len(sequence.slot);
        let (tokens, wants_scores) = sequence.next_tokens(share.tokens);
        let last = tokens.len().saturating_sub(1);
        for (offset, &token) in tokens.iter().enumerate() {
            let scores = wants_scores && offset == last;
            let position = i32::try_from(start + offset).unwrap_or(i32::MAX);
            // The plan never exceeds the batch.
            if batch.add(LlamaToken(token), position, &[seq], scores).is_ok() && scores {
                outputs.push((at, batch.n_tokens() - 1));
            }
        }
    }
    outputs
}

/// Copies the memory of a context to another one; `false` on failure.
fn move_memory(from: &LlamaContext<'_>, to: &mut LlamaContext<'_>) -> bool {
    let mut state = vec![0; from.get_state_size()];
    // SAFETY: `state` has the size that this context says its state has, and nothing changes the context in between.
    let size = unsafe { from.copy_state_data(state.as_mut_ptr()) };
    state.truncate(size);
    // SAFETY: the state is of a context of the same model with the same number of sequences; its end is the end of the slice.
    let read = unsafe { to.set_state_data(&state) };
    size > 0 && read == size
}

fn seq_id(slot: usize) -> i32 {
    i32::try_from(slot).unwrap_or(i32::MAX)
}

/// Removes the tokens of a sequence from a position; `false` if the model cannot drop a part.
fn remove(context: &mut LlamaContext<'_>, slot: usize, from: usize) -> bool {
    let (Ok(seq), Ok(from)) = (u32::try_from(slot), u32::try_from(from)) else {
        return false;
    };
    context.clear_kv_cache_seq(Some(seq), Some(from), None) == Ok(true)
}

fn copy(context: &mut LlamaContext<'_>, from: usize, to: usize, length: Option<usize>) {
    let length = length.and_then(|length| u32::try_from(length).ok());
    // Fails only for numbers beyond 31 bits.
    let _ = context.kv_cache_seq_cp(seq_id(from), seq_id(to), Some(0), length);
}
