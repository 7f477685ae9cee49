//! One answer in progress: its state, its next token, and its output.
//!
//! A token is taken as soon as it is chosen, so that the model can read it, and its text is sent later: while a graphics card
//! computes the next step.

use std::cell::Cell;
use std::rc::Rc;

use hob_core::{Delta, FinishReason, LogScope, Usage};
use serde_json::Value;
use tokio::sync::OwnedSemaphorePermit;

use crate::chat::AnswerFormat;
use crate::constraint::{Constraint, ToolUse};
use crate::draft::{DRAFT_LIMITS, DraftTrust};
use crate::error::interrupted;
use crate::grammar::Grammar;
use crate::guess_length::GuessLength;
use crate::job::{Job, Output};
use crate::loaded_model::LoadedModel;
use crate::logprobs::{self, TokenProbabilities};
use crate::media::{PlacedVectors, is_stand_in};
use crate::prompt::Prepared;
use crate::prompt_lookup::PromptLookup;
use crate::prompt_scores::{PromptScores, SCORED_AT_ONCE};
use crate::sampler::Sampler;
use crate::token_choice::{Broken, TokenChoice, TokenChooser};
use crate::writer::{Reading, Writer};

/// Shared by the answers of one request.
pub(crate) struct Shared {
    pub(crate) output: Output,
    prompt: Vec<i32>,
    /// The pictures and sounds in the prompt, in order.
    media: Vec<PlacedVectors>,
    /// The prompt with its probabilities, if the answers begin with it.
    repeated: Option<PromptScores>,
    cached: usize,
    /// Unfinished answers.
    open: Cell<usize>,
    written: Cell<u64>,
    thought: Cell<u64>,
    log_scope: LogScope,
    _place: OwnedSemaphorePermit,
}

impl Shared {
    /// Sends a delta; `false` if the caller has disconnected.
    fn send(&self, delta: Delta) -> bool {
        // The channel has space for a whole answer, so a full one means that the caller does not read.
        self.output.try_send(Ok(delta)).is_ok()
    }
}

/// The stage of a sequence.
pub(crate) enum Stage {
    /// Reading its prompt from this token.
    Reading(usize),
    /// Waiting until the first answer of its request has read the prompt.
    Following,
    /// Generating; these tokens are read next: the chosen one, and guesses of those after it.
    Writing(Vec<i32>),
}

/// Which tokens of a step need scores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scored {
    None,
    Last,
    All,
}

/// The end of a sequence.
pub(crate) enum Outcome {
    Finished(FinishReason),
    /// It cannot continue, so its text is not the answer.
    Broken(Broken),
    /// The caller disconnected.
    Gone,
}

/// One answer.
pub(crate) struct Sequence {
    pub(crate) shared: Rc<Shared>,
    pub(crate) slot: usize,
    pub(crate) stage: Stage,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) chooser: TokenChooser,
    /// The chosen token whose text is not sent yet.
    unsent: Option<TokenChoice>,
    /// Whether the answer begins with its prompt, which is not sent yet.
    repeats_prompt: bool,
    /// The grammar that begins after the thought.
    after_thought: Option<Grammar>,
    tools: Option<Rc<ToolUse>>,
    /// No call begins before this place of the answer.
    searched: usize,
    visible: Rc<[i32]>,
    writer: Writer,
    written: usize,
    /// Tokens that are reasoning.
    thought: u64,
    longest: usize,
    lookup: PromptLookup,
    /// The guesses of a draft model.
    drafts: GuessLength,
    trust: DraftTrust,
    /// The probabilities of the guesses of the next step; none if they are not of a draft model.
    drafted: Vec<f32>,
}

impl Sequence {
    /// The answers of a request, one in each slot. The first reads the prompt after the `reused` tokens.
    pub(crate) fn all(job: Job, slots: &[usize], reused: usize) -> Vec<Self> {
        let Prepared { prompt, media, ask, constraint, format, visible, repeated } = job.prepared;
        let Constraint { grammar, tools, check: _ } = constraint;
        let thinks_first = format.as_ref().is_some_and(AnswerFormat::is_in_thought);
        let (grammar, after_thought) = if thinks_first { (None, grammar) } else { (grammar, None) };
        let visible: Rc<[i32]> = visible.into();
        let shared = Rc::new(Shared {
            output: job.output,
            prompt,
            media,
            repeated: repeated.map(PromptScores::new),
            cached: reused,
            open: Cell::new(slots.len()),
            written: Cell::new(0),
            thought: Cell::new(0),
            log_scope: job.log_scope,
            _place: job.place,
        });
        let tools = tools.map(Rc::new);
        let reading = Reading { stops: ask.stops, format, tools: tools.as_ref().map(|tools| tools.several) };
        let build = |(choice, &slot): (u32, &usize)| {
            let mut sampling = ask.sampling.clone();
            // Each answer has its own seed, derived from the request's.
            sampling.seed = sampling.seed.wrapping_add(choice.into());
            let mut sampler = Sampler::new(sampling);
            let tokens = shared.prompt.iter().filter(|token| !is_stand_in(**token));
            tokens.for_each(|&token| sampler.accept(token));
            Sequence {
                shared: Rc::clone(&shared),
                slot,
                stage: if choice == 0 { Stage::Reading(reused) } else { Stage::Following },
                outcome: None,
                chooser: TokenChooser {
                    sampler,
                    grammar: grammar.clone(),
                    may_end: after_thought.is_none(),
                    logprobs: ask.logprobs,
                },
                unsent: None,
                repeats_prompt: shared.repeated.is_some(),
                after_thought: after_thought.clone(),
                tools: tools.clone(),
                searched: 0,
                visible: Rc::clone(&visible),
                writer: Writer::new(choice, &reading),
                written: 0,
                thought: 0,
                longest: job.longest,
                lookup: PromptLookup::new(),
                drafts: GuessLength::new(DRAFT_LIMITS),
                trust: DraftTrust::default(),
                drafted: Vec::new(),
            }
        };
        (0..).zip(slots).map(build).collect()
    }

    /// The whole prompt, read or not.
    pub(crate) fn prompt(&self) -> &[i32] {
        &self.shared.prompt
    }

    /// Prompt tokens to read, up to the next picture; zero while generating.
    pub(crate) fn left_to_read(&self) -> usize {
        match self.stage {
            Stage::Reading(next) => self.end_of_tokens(next).saturating_sub(next),
            Stage::Following | Stage::Writing(_) => 0,
        }
    }

    /// Whether all prompt tokens need scores, not only the last one.
    pub(crate) fn scores_prompt(&self) -> bool {
        self.shared.repeated.is_some() && matches!(self.stage, Stage::Reading(_))
    }

    /// Prompt tokens that the next step may read.
    pub(crate) fn next_to_read(&self) -> usize {
        let left = self.left_to_read();
        if self.scores_prompt() { left.min(SCORED_AT_ONCE) } else { left }
    }

    /// The end of the tokens that can be read from this place of the prompt.
    fn end_of_tokens(&self, next: usize) -> usize {
        let picture = self.shared.media.iter().find(|vectors| vectors.end() > next);
        picture.map_or(self.shared.prompt.len(), |vectors| vectors.start)
    }

    /// The picture to read next, and the place in the prompt.
    pub(crate) fn next_vectors(&self) -> Option<(&PlacedVectors, usize)> {
        let Stage::Reading(next) = self.stage else { return None };
        let is_next = |vectors: &&PlacedVectors| vectors.start <= next && next < vectors.end();
        Some((self.shared.media.iter().find(is_next)?, next))
    }

    /// Whether the next step has tokens of this sequence.
    pub(crate) fn has_tokens(&self) -> bool {
        !matches!(self.stage, Stage::Following) && self.next_vectors().is_none()
    }

    /// Advances by vectors that were read, and returns their stand-ins.
    pub(crate) fn advance_vectors(&mut self, count: usize) -> Vec<i32> {
        let Stage::Reading(next) = &mut self.stage else { return Vec::new() };
        let read = self.shared.prompt[*next..*next + count].to_vec();
        *next += count;
        read
    }

    /// The tokens of a step, and which of them need scores.
    pub(crate) fn next_tokens(&self, count: usize) -> (&[i32], Scored) {
        match &self.stage {
            Stage::Reading(next) => {
                let end = (next + count).min(self.end_of_tokens(*next));
                let scored = if end == self.shared.prompt.len() { Scored::Last } else { Scored::None };
                (&self.shared.prompt[*next..end], scored)
            }
            Stage::Writing(tokens) => (tokens, Scored::All),
            Stage::Following => (&[], Scored::None),
        }
    }

    /// Advances by the tokens of a step, and returns them. Guesses are not among them.
    pub(crate) fn advance(&mut self, count: usize) -> &[i32] {
        match &mut self.stage {
            Stage::Reading(next) => {
                let start = *next;
                *next = (start + count).min(self.shared.prompt.len());
                &self.shared.prompt[start..*next]
            }
            Stage::Writing(tokens) => &tokens[..1],
            Stage::Following => &[],
        }
    }

    /// Guesses up to `most` tokens after the next one. `read` are the tokens that were read.
    pub(crate) fn guess(&mut self, read: &[i32], most: usize) {
        let room = self.room_for_guesses(most);
        if let Stage::Writing(tokens) = &mut self.stage
            && let [next] = tokens[..]
        {
            let guesses = self.lookup.guess(read, next, room);
            // A picture is not a guess.
            let end = guesses.iter().position(|token| is_stand_in(*token)).unwrap_or(guesses.len());
            tokens.extend_from_slice(&guesses[..end]);
        }
    }

    /// How many of these guesses the answer has room for. Its last token is not read.
    fn room_for_guesses(&self, most: usize) -> usize {
        self.longest.saturating_sub(self.written + 1).min(most)
    }

    /// The tokens of the answer so far.
    pub(crate) fn written(&self) -> usize {
        self.written
    }

    /// How often the guesses of a draft model were right.
    pub(crate) fn trust(&self) -> DraftTrust {
        self.trust
    }

    /// The token that is read next, and the number of guesses that a draft model should make after it, up to `most`. `None` if
    /// drafts were wrong.
    pub(crate) fn wants_draft(&mut self, most: usize) -> Option<(i32, usize)> {
        let room = self.room_for_guesses(most);
        let Stage::Writing(tokens) = &self.stage else { return None };
        // Its text may have ended it.
        if self.outcome.is_some() {
            return None;
        }
        let [next] = tokens[..] else { return None };
        let wanted = self.drafts.next().min(room);
        (wanted > 0).then_some((next, wanted))
    }

    /// Takes the guesses of a draft model for the tokens after the next one.
    pub(crate) fn take_draft(&mut self, guesses: &[i32], probabilities: Vec<f32>) {
        if let Stage::Writing(tokens) = &mut self.stage {
            tokens.extend_from_slice(guesses);
            self.drafted = probabilities;
        }
    }

    /// The guesses of the step.
    pub(crate) fn guesses(&self) -> Vec<i32> {
        match &self.stage {
            Stage::Writing(tokens) => tokens[1..].to_vec(),
            Stage::Reading(_) | Stage::Following => Vec::new(),
        }
    }

    /// Whether the answer continues with this token.
    pub(crate) fn continues_with(&self, guess: i32) -> bool {
        self.outcome.is_none() && matches!(&self.stage, Stage::Writing(tokens) if tokens[..] == [guess])
    }

    /// Learns how many of the guesses were right. Says whether they were those of a draft model.
    pub(crate) fn judge_guesses(&mut self, guessed: usize, right: usize) -> bool {
        let probabilities = std::mem::take(&mut self.drafted);
        self.trust.learn(&probabilities, right);
        let is_drafted = !probabilities.is_empty();
        let length = if is_drafted { &mut self.drafts } else { &mut self.lookup.length };
        length.judge(guessed, right);
        is_drafted
    }

    /// Takes the scores after this position of the prompt: those of the token that follows there.
    pub(crate) fn score_prompt(&self, position: usize, scores: &[f32], loaded: &LoadedModel) {
        if let (Some(repeated), Some(&token)) = (&self.shared.repeated, self.shared.prompt.get(position + 1))
        {
            let found = logprobs::probabilities(scores, token, self.chooser.logprobs.unwrap_or(0));
            repeated.push(entry(&found, loaded));
        }
    }

    /// Whether the answer needs a token now. One that may have none ends here.
    pub(crate) fn needs_token(&mut self) -> bool {
        if self.outcome.is_none() && self.longest == 0 {
            self.outcome = Some(Outcome::Finished(FinishReason::Length));
        }
        self.outcome.is_none()
    }

    /// Takes the chosen token, which the next step reads. The text of the one before was sent.
    pub(crate) fn take(&mut self, chosen: Result<TokenChoice, Broken>) {
        let choice = match chosen {
            Ok(choice) => choice,
            Err(broken) => {
                self.outcome = Some(Outcome::Broken(broken));
                return;
            }
        };
        if choice.is_end {
            self.outcome = Some(Outcome::Finished(FinishReason::Stop));
            return;
        }
        match &mut self.stage {
            Stage::Writing(tokens) => {
                tokens.clear();
                tokens.push(choice.token);
            }
            stage => *stage = Stage::Writing(vec![choice.token]),
        }
        self.written += 1;
        if choice.is_complete {
            self.outcome = Some(Outcome::Finished(FinishReason::Stop));
        } else if self.written >= self.longest {
            self.outcome = Some(Outcome::Finished(FinishReason::Length));
        }
        self.unsent = Some(choice);
    }

    /// Sends the text of the chosen token, if that is not done. What the text means for the answer is known only then: its end, or
    /// the grammar of what follows.
    pub(crate) fn send_text(&mut self, loaded: &LoadedModel) {
        if self.unsent.is_none() && self.outcome.is_none() {
            return;
        }
        if !self.send_prompt(loaded) {
            self.outcome = Some(Outcome::Gone);
            return;
        }
        let Some(choice) = self.unsent.take() else { return };
        let token = choice.token;
        let probabilities = choice.probabilities.map(|found| entry(&found, loaded));
        let shown = self.visible.contains(&token)
            // A grammar treats such a token as text.
            || (self.chooser.grammar.is_some() && loaded.marks.contains(&token));
        let was_thinking = self.writer.is_thinking();
        let written = self.writer.push(&loaded.bytes_of(token, shown), probabilities);
        // The marks count, too.
        self.thought += u64::from(was_thinking || self.writer.is_thinking());
        for delta in written.deltas {
            if !self.shared.send(delta) {
                self.outcome = Some(Outcome::Gone);
                return;
            }
        }
        if written.stopped {
            // A mark of the format can end an answer in its thought, too. A stop string can stand at the begin of what follows it.
            self.outcome = Some(match self.chooser.may_end || self.writer.answer_text().is_some() {
                true => Outcome::Finished(FinishReason::Stop),
                false => Outcome::Broken(Broken::InThought),
            });
        } else if self.outcome.is_none() && self.chooser.grammar.is_none() {
            self.watch_for_answer(loaded);
            self.watch_for_call(loaded);
        }
    }

    /// Begins the answer with its prompt, if the caller asked for that; `false` if the caller has disconnected.
    fn send_prompt(&mut self, loaded: &LoadedModel) -> bool {
        let repeats = std::mem::take(&mut self.repeats_prompt);
        match (&self.shared.repeated, self.shared.prompt.first()) {
            (Some(repeated), Some(&first)) if repeats => {
                self.shared.send(repeated.delta(self.writer.choice(), first, loaded.bytes_of(first, true)))
            }
            _ => true,
        }
    }

    /// When the thought is over, the answer follows its grammar.
    fn watch_for_answer(&mut self, loaded: &LoadedModel) {
        if self.after_thought.is_none() {
            return;
        }
        let Some(begun) = self.writer.answer_text().map(|text| text.trim_start().to_owned()) else { return };
        let grammar = self.after_thought.take();
        self.chooser.may_end = true;
        self.chooser.grammar = grammar.map(|grammar| advanced(&grammar, &begun, loaded).unwrap_or(grammar));
    }

    /// When the model begins a call unprompted, the rest follows the grammar of calls.
    fn watch_for_call(&mut self, loaded: &LoadedModel) {
        let Some(tools) = &self.tools else { return };
        let Some(start) = tools.once_called() else { return };
        let Some((text, answer)) = self.writer.callable_text() else { return };
        while let Some(at) = tools.call_start(text, self.searched.max(answer)) {
            if let Some(grammar) = advanced(start, &text[at..], loaded) {
                self.chooser.grammar = Some(grammar);
                return;
            }
            // Text that does not fit is not a call.
            self.searched = at + text[at..].chars().next().map_or(1, char::len_utf8);
        }
        self.searched = self.searched.max(tools.next_search(text));
    }

    /// Reports a broken answer, which ends all answers to the request.
    pub(crate) fn break_off(&self, broken: &Broken, model: &str) {
        let warn = || {
            tracing::warn!(
                model,
                "an answer is interrupted: {broken}. The caller gets an error; try another model if this repeats"
            )
        };
        self.shared.log_scope.clone().run(warn);
        let _ = self.shared.output.try_send(Err(interrupted(broken.to_string())));
    }

    /// Sends the end of the answer, and of the whole request when it was the last one.
    pub(crate) fn finish(&mut self, reason: FinishReason) {
        for delta in self.writer.finish(reason) {
            self.shared.send(delta);
        }
        let shared = &self.shared;
        shared.written.set(shared.written.get() + self.written as u64);
        shared.thought.set(shared.thought.get() + self.thought);
        shared.open.set(shared.open.get().saturating_sub(1));
        if shared.open.get() == 0 {
            let usage = Usage {
                prompt_tokens: shared.prompt.len() as u64,
                completion_tokens: shared.written.get(),
                cached_tokens: Some(shared.cached as u64),
                reasoning_tokens: Some(shared.thought.get()).filter(|tokens| *tokens > 0),
                load_time: None,
            };
            shared.send(Delta::Done { usage: Some(usage) });
        }
    }
}

/// The grammar after a text; `None` if the text does not fit.
fn advanced(start: &Grammar, text: &str, loaded: &LoadedModel) -> Option<Grammar> {
    let mut grammar = start.clone();
    let fits = loaded.tokens(text, false).into_iter().all(|token| {
        let fits = !loaded.ends_text(token) && grammar.allows(token) == Ok(true);
        fits && grammar.accept(token).is_ok()
    });
    fits.then_some(grammar)
}

fn entry(found: &TokenProbabilities, loaded: &LoadedModel) -> Value {
    logprobs::entry(found, |token| loaded.bytes_of(token, true))
}
