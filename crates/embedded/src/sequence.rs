//! One answer being written: where it stands, how its next token is chosen, and what goes out to the caller.

use std::cell::Cell;
use std::rc::Rc;

use hob_core::{Delta, FinishReason, Usage};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::grammar::Grammar;
use crate::job::{Job, Output};
use crate::loaded::Loaded;
use crate::logprobs;
use crate::prompt::{Prepared, ToolUse};
use crate::sampler::Sampler;
use crate::writer::{Reading, Writer};

/// What the answers of one request have in common.
pub(crate) struct Shared {
    pub(crate) output: Output,
    prompt: Vec<i32>,
    cached: usize,
    /// Answers that are not finished.
    open: Cell<usize>,
    written: Cell<u64>,
    _place: OwnedSemaphorePermit,
}

impl Shared {
    /// Sends a piece; `false` when nobody listens any more.
    fn send(&self, delta: Delta) -> bool {
        // The channel has room for a whole answer, so a full one means a caller who does not listen either.
        self.output.try_send(Ok(delta)).is_ok()
    }
}

/// Where a sequence stands.
pub(crate) enum Stage {
    /// Reading its prompt, from this token on.
    Reading(usize),
    /// Waiting for the first answer of its request to read the prompt for all.
    Following,
    /// This token was chosen and is read next.
    Writing(i32),
}

/// How a sequence ended.
pub(crate) enum Outcome {
    Finished(FinishReason),
    /// The caller hung up.
    Gone,
}

/// One answer.
pub(crate) struct Sequence {
    pub(crate) shared: Rc<Shared>,
    pub(crate) slot: usize,
    pub(crate) stage: Stage,
    pub(crate) outcome: Option<Outcome>,
    sampler: Sampler,
    grammar: Option<Grammar>,
    tools: Option<Rc<ToolUse>>,
    writer: Writer,
    logprobs: Option<usize>,
    written: usize,
    longest: usize,
}

impl Sequence {
    /// The answers of a request, one in each slot. The first reads the prompt, from what is `reused` on.
    pub(crate) fn all(job: Job, slots: &[usize], reused: usize) -> Vec<Self> {
        let Prepared { prompt, ask, grammar, tools, thinks } = job.prepared;
        let shared = Rc::new(Shared {
            output: job.output,
            prompt,
            cached: reused,
            open: Cell::new(slots.len()),
            written: Cell::new(0),
            _place: job.place,
        });
        let tools = tools.map(Rc::new);
        let reading = Reading { stops: ask.stops, tools: tools.as_ref().map(|tools| tools.format), thinks };
        let build = |(choice, &slot): (u32, &usize)| {
            let mut sampling = ask.sampling.clone();
            // Each answer its own luck, and the same luck for the same seed.
            sampling.seed = sampling.seed.wrapping_add(choice.into());
            let mut sampler = Sampler::new(sampling);
            shared.prompt.iter().for_each(|&token| sampler.accept(token));
            Sequence {
                shared: Rc::clone(&shared),
                slot,
                stage: if choice == 0 { Stage::Reading(reused) } else { Stage::Following },
                outcome: None,
                sampler,
                grammar: grammar.clone(),
                tools: tools.clone(),
                writer: Writer::new(choice, &reading),
                logprobs: ask.logprobs,
                written: 0,
                longest: job.longest,
            }
        };
        (0..).zip(slots).map(build).collect()
    }

    /// The whole prompt, read or not.
    pub(crate) fn prompt(&self) -> &[i32] {
        &self.shared.prompt
    }

    /// Prompt tokens still to read; zero once it writes.
    pub(crate) fn left_to_read(&self) -> usize {
        match self.stage {
            Stage::Reading(next) => self.shared.prompt.len().saturating_sub(next),
            Stage::Following | Stage::Writing(_) => 0,
        }
    }

    /// The tokens it reads in a step, and whether the last of them gives scores to choose from.
    pub(crate) fn next_tokens(&self, count: usize) -> (&[i32], bool) {
        match &self.stage {
            Stage::Reading(next) => {
                let end = (next + count).min(self.shared.prompt.len());
                (&self.shared.prompt[*next..end], end == self.shared.prompt.len())
            }
            Stage::Writing(token) => (std::slice::from_ref(token), true),
            Stage::Following => (&[], false),
        }
    }

    /// Notes that a step has read these tokens, and gives them back.
    pub(crate) fn advance(&mut self, count: usize) -> Vec<i32> {
        let read = self.next_tokens(count).0.to_vec();
        if let Stage::Reading(next) = &mut self.stage {
            *next += read.len();
        }
        read
    }

    /// Chooses the next token and sends what it says.
    pub(crate) fn choose(&mut self, scores: &[f32], loaded: &Loaded) {
        let Some(token) = self.pick(scores) else {
            // Under a grammar this is its end: nothing may follow, not even the end of text.
            self.outcome = Some(Outcome::Finished(FinishReason::Stop));
            return;
        };
        if loaded.ends_text(token) {
            self.outcome = Some(Outcome::Finished(FinishReason::Stop));
            return;
        }
        self.stage = Stage::Writing(token);
        self.written += 1;
        self.sampler.accept(token);
        if let Some(grammar) = &mut self.grammar
            && !grammar.accept(token)
        {
            tracing::warn!(model = %loaded.id, token, "a grammar refused a token it had allowed; the answer ends here");
            self.outcome = Some(Outcome::Finished(FinishReason::Stop));
            return;
        }
        let probabilities = self.logprobs.map(|top| probabilities(scores, token, top, loaded));
        let shown = loaded.thought_marks.contains(&token)
            || self.tools.as_ref().is_some_and(|tools| tools.markers.contains(&token));
        let written = self.writer.push(&loaded.bytes_of(token, shown), probabilities);
        for delta in written.deltas {
            if !self.shared.send(delta) {
                self.outcome = Some(Outcome::Gone);
                return;
            }
        }
        if written.stopped {
            self.outcome = Some(Outcome::Finished(FinishReason::Stop));
        } else if self.written >= self.longest {
            self.outcome = Some(Outcome::Finished(FinishReason::Length));
        } else {
            self.watch_for_call(loaded);
        }
    }

    fn pick(&mut self, scores: &[f32]) -> Option<i32> {
        let Some(grammar) = &mut self.grammar else {
            return self.sampler.choose(scores);
        };
        // The free choice is nearly always allowed, and checking one token is a thousand times cheaper than checking all.
        match self.sampler.choose(scores) {
            Some(token) if grammar.allows(token) => Some(token),
            _ => self.sampler.choose_allowed(scores, |candidates| grammar.forbid(candidates)),
        }
    }

    /// Once the model begins a call of its own accord, the rest of the answer follows the grammar of calls.
    fn watch_for_call(&mut self, loaded: &Loaded) {
        if self.grammar.is_some() {
            return;
        }
        let Some(tools) = &self.tools else { return };
        let (Some(start), Some(begun)) = (&tools.once_called, self.writer.call_text()) else {
            return;
        };
        let mut grammar = start.clone();
        let fits = loaded.tokens(begun, false).into_iter().all(|token| {
            let fits = !loaded.ends_text(token) && grammar.allows(token);
            fits && grammar.accept(token)
        });
        // What does not fit is not a call; the parser will find that out by itself.
        if fits {
            self.grammar = Some(grammar);
        }
    }

    /// Sends the end of the answer, and of the whole request when it was the last one.
    pub(crate) fn finish(&mut self, reason: FinishReason) {
        for delta in self.writer.finish(reason) {
            self.shared.send(delta);
        }
        let shared = &self.shared;
        shared.written.set(shared.written.get() + self.written as u64);
        shared.open.set(shared.open.get().saturating_sub(1));
        if shared.open.get() == 0 {
            let usage = Usage {
                prompt_tokens: shared.prompt.len() as u64,
                completion_tokens: shared.written.get(),
                cached_tokens: Some(shared.cached as u64),
            };
            shared.send(Delta::Done { usage: Some(usage) });
        }
    }
}

fn probabilities(scores: &[f32], token: i32, top: usize, loaded: &Loaded) -> Value {
    let found = logprobs::probabilities(scores, token, top);
    logprobs::entry(&found, |token| loaded.bytes_of(token, true))
}
