//! The thread of a model: one batch per step over all active sequences.
//!
//! Every step generates one token per sequence and reads a part of the waiting prompts. Requests are admitted in order, when a
//! slot and enough memory are free. Cancelled requests are noticed before every step. While the model is idle, a prompt may be
//! read ahead. Knows nothing of wire formats, files or other models.

mod batch;
mod draft;
mod memory;
pub(crate) mod plan;
mod step;

use std::collections::VecDeque;
use std::fmt::Display;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError};
use std::time::{Duration, Instant};

use hob_core::EngineError;
use llama_cpp_2::context::LlamaContext;
use llama_cpp_2::llama_batch::LlamaBatch;
use llama_cpp_2::token::LlamaToken;

use crate::context_memory::{remove, seq_id};
use crate::draft::Drafter;
use crate::embed::Embedder;
use crate::error::{busy, interrupted};
use crate::job::{EmbedJob, Job, WarmJob};
use crate::loaded_model::LoadedModel;
use crate::media::ReadPart;
use crate::prefix_cache::{Slots, Token};
use crate::sampling_threads::SamplingThreads;
use crate::saved_prompts::SavedPrompts;
use crate::sequence::{Sequence, Stage};

/// The stack of a thread that chooses tokens: like that of the model's thread, since it runs grammars of callers.
const SAMPLING_STACK: usize = 64 << 20;

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
    orders: &Receiver<Order>,
    worker: &mut Worker<'_>,
    embedder: &mut Embedder<'_>,
    mut idle: impl FnMut(Duration) -> Idle,
) {
    let mut last_used = Instant::now();
    loop {
        if worker.is_idle() && embedder.is_idle() && worker.warming.is_some() {
            match orders.try_recv() {
                Ok(order) => worker.take(order, embedder),
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
                Ok(order) => worker.take(order, embedder),
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => return,
            }
        }
        while let Ok(order) = orders.try_recv() {
            worker.take(order, embedder);
        }
        worker.drop_cancelled();
        worker.admit();
        worker.step();
        if !embedder.is_idle() {
            // An answer does not wait for the vectors of other requests.
            worker.send_texts();
            if embedder.needs_context() && !worker.claim_vectors() {
                embedder.refuse(|| {
                    busy(
                        format!(
                            "not enough memory for vectors of '{}' now; try again later, or use an embedding model",
                            worker.loaded.id
                        ),
                        RETRY_AFTER,
                    )
                });
            } else {
                embedder.step();
                if !embedder.has_context() {
                    worker.release_vectors();
                }
            }
        }
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
    /// Slots with wrong guesses to remove after the scores of a step were used.
    wrong: Vec<usize>,
    /// Whether the memory can drop wrong guesses.
    drops_guesses: bool,
    /// Guesses with a smaller model.
    drafter: Option<Drafter<'model>>,
    /// Chooses the tokens of a step.
    sampling: SamplingThreads,
    /// The prompt that is read ahead.
    warming: Option<Warming>,
    /// A size that could not be allocated, and the number of sequences then.
    refused: Option<(usize, usize)>,
    picture_turn: usize,
    /// Asks for the memory of the model with this many cells.
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
    /// Allocates the context, and runs the model once so that the first answer waits neither for the disk nor for memory of a card.
    pub(crate) fn new(loaded: &'model LoadedModel, parts: WorkerParts<'model>) -> Result<Self, EngineError> {
        let mut worker = Worker {
            loaded,
            context: None,
            batch: LlamaBatch::new(loaded.step().tokens_of(loaded.parallel), 1),
            slots: Slots::new(loaded.parallel, loaded.first_cells() as usize, loaded.reuse()),
            waiting: VecDeque::new(),
            alive: Vec::new(),
            copies: Vec::new(),
            wrong: Vec::new(),
            drops_guesses: false,
            drafter: None,
            sampling: SamplingThreads::new(loaded.sampling_threads, SAMPLING_STACK),
            warming: None,
            refused: None,
            claim: parts.claim,
            saved: parts.saved,
            picture_turn: 0,
        };
        if !loaded.embeds_only {
            let mut context = loaded.writing_context(loaded.first_cells())?;
            // The first request would report the same failure.
            for (position, at) in (0..).zip(0..loaded.warm_up_tokens()) {
                // At most as many rows of scores as there are answers, as in a usual step.
                let _ = worker.batch.add(LlamaToken(0), position, &[0], at < loaded.parallel);
            }
            let is_read = context.decode(&mut worker.batch).is_ok();
            worker.drops_guesses = is_read && remove(&mut context, 0, 1);
            context.clear_kv_cache();
            worker.context = Some(context);
            worker.start_drafter();
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
        let end = prompt.len().min(start + self.loaded.step().alone);
        let read = &prompt[start.min(end)..end];
        self.batch.clear();
        for (position, &token) in (self.slots.position(slot, start)..).zip(read) {
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
            if self.is_being_read(job.reusable()) {
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

    fn start(&mut self, job: Box<Job>, lead: usize, follow: usize) {
        self.restore(job.reusable());
        // The memory can be lost while a saved prompt is restored.
        let Some(place) = self.slots.place(job.reusable(), lead) else {
            let error = busy("not enough memory for the conversation now".to_owned(), RETRY_AFTER);
            let _ = job.output.try_send(Err(error));
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

    /// Reads a part of one picture, so that the others can continue after it. Requests with pictures take turns.
    fn read_picture(&mut self) {
        let waiting: Vec<usize> =
            (0..self.alive.len()).filter(|&at| self.alive[at].next_vectors().is_some()).collect();
        if waiting.is_empty() {
            return;
        }
        // A picture takes as long as many tokens.
        self.send_texts();
        let at = waiting[self.picture_turn % waiting.len()];
        self.picture_turn = self.picture_turn.wrapping_add(1);
        let most = if waiting.len() == self.alive.len() {
            self.loaded.step().alone
        } else {
            self.loaded.step().beside
        };
        let (slot, Some((vectors, next))) = (self.alive[at].slot, self.alive[at].next_vectors()) else {
            return;
        };
        let left = vectors.end() - next;
        let count = if vectors.is_read_whole { left } else { left.min(most) };
        let part = ReadPart {
            sequence: seq_id(slot),
            position: i32::try_from(self.slots.position(slot, vectors.start)).unwrap_or(i32::MAX),
            first: next - vectors.start,
            count,
        };
        let (Some(context), Some(projector)) = (&mut self.context, &self.loaded.projector) else { return };
        if let Err(error) = vectors.read(projector, context, &part) {
            self.fail_all(error);
            return;
        }
        self.loaded.computed.fetch_add(count as u64, Ordering::Relaxed);
        for stand_in in self.alive[at].advance_vectors(count) {
            self.slots.append(slot, stand_in);
        }
    }

    /// A batch failed: every sequence in it fails, and the memory is cleared.
    fn fail_all(&mut self, error: impl Display) {
        tracing::error!(
            model = %self.loaded.id,
            %error,
            sequences = self.alive.len(),
            "a step of the model failed, and its answers end with an error. Lower [engine.embedded] context \
             or parallel if memory is short"
        );
        for mut sequence in self.alive.drain(..) {
            sequence.send_text(self.loaded);
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
