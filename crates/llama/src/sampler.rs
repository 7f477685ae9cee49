//! Chooses the next token from the scores of a model. Pure.
//!
//! Not llama.cpp's sampler, because this one reads the scores in place: a greedy choice is one pass, and `top_k` keeps a few
//! candidates instead of sorting the vocabulary. Biases and penalties of a few tokens need no copy of the scores.

use std::collections::{HashMap, VecDeque};

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SamplingParams {
    /// Zero always takes the most likely token.
    pub(crate) temperature: f32,
    /// The number of most likely tokens; zero for all.
    pub(crate) top_k: usize,
    /// The share of probability that is kept.
    pub(crate) top_p: f32,
    /// Drops tokens that are less likely than this share of the most likely one.
    pub(crate) min_p: f32,
    pub(crate) repeat_penalty: f32,
    pub(crate) frequency_penalty: f32,
    pub(crate) presence_penalty: f32,
    /// The number of last tokens for the penalties.
    pub(crate) repeat_last_n: usize,
    /// Added to the scores of single tokens.
    pub(crate) bias: Vec<(i32, f32)>,
    pub(crate) seed: u64,
}

impl SamplingParams {
    /// The defaults of llama.cpp.
    pub(crate) fn new(temperature: f32, seed: u64) -> Self {
        SamplingParams {
            temperature,
            top_k: 40,
            top_p: 0.95,
            min_p: 0.05,
            repeat_penalty: 1.0,
            frequency_penalty: 0.0,
            presence_penalty: 0.0,
            repeat_last_n: 64,
            bias: Vec::new(),
            seed,
        }
    }

    fn penalises(&self) -> bool {
        self.repeat_last_n > 0
            && (self.repeat_penalty != 1.0 || self.frequency_penalty != 0.0 || self.presence_penalty != 0.0)
    }

    /// The score of a token that occurs `count` times in the last tokens.
    fn penalised(&self, score: f32, count: u32) -> f32 {
        // Multiplied, because dividing a negative score would reward the repetition.
        let repeated = if score <= 0.0 { score * self.repeat_penalty } else { score / self.repeat_penalty };
        repeated - (count as f32 * self.frequency_penalty + self.presence_penalty)
    }
}

/// A token and its score.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct TokenCandidate {
    pub(crate) token: i32,
    pub(crate) score: f32,
}

/// Chooses tokens for one sequence. Deterministic for a seed and scores.
#[derive(Debug)]
pub(crate) struct Sampler {
    params: SamplingParams,
    random: fastrand::Rng,
    recent: VecDeque<i32>,
    counts: HashMap<i32, u32>,
    /// The tokens with a bias or a penalty, in order, with their new scores. Kept with its memory, as the next two.
    changed: Vec<TokenCandidate>,
    scratch: Vec<f32>,
    candidates: Vec<TokenCandidate>,
}

impl Sampler {
    pub(crate) fn new(mut params: SamplingParams) -> Self {
        params.bias.sort_by_key(|(token, _)| *token);
        Sampler {
            random: fastrand::Rng::with_seed(params.seed),
            params,
            recent: VecDeque::new(),
            counts: HashMap::new(),
            changed: Vec::new(),
            scratch: Vec::new(),
            candidates: Vec::new(),
        }
    }

    /// Chooses from all scores; `None` if no score is finite.
    pub(crate) fn choose(&mut self, scores: &[f32]) -> Option<i32> {
        self.change(scores);
        let is_greedy = self.params.temperature <= 0.0;
        let kept = if is_greedy { 1 } else { self.params.top_k };
        let mut candidates = std::mem::take(&mut self.candidates);
        let choice = if !self.changed.is_empty() && self.changed.len() <= MAX_APART && kept > 0 {
            keep_top_changed(scores, &self.changed, kept, &mut candidates);
            if is_greedy { candidates.first().map(|best| best.token) } else { self.draw(&mut candidates) }
        } else {
            let scores = self.with_changes(scores);
            if is_greedy {
                most_likely(scores)
            } else {
                keep_top(scores, kept, &mut candidates);
                self.draw(&mut candidates)
            }
        };
        self.candidates = candidates;
        choice
    }

    /// Chooses among allowed tokens: `allowed` gets the candidates with penalties, and sets the score of forbidden ones to minus
    /// infinity.
    pub(crate) fn choose_allowed<E>(
        &mut self,
        scores: &[f32],
        allowed: impl FnOnce(&mut [TokenCandidate]) -> Result<(), E>,
    ) -> Result<Option<i32>, E> {
        self.change(scores);
        let mut all = std::mem::take(&mut self.candidates);
        all.clear();
        all.extend((0..).zip(scores).map(|(token, &score)| TokenCandidate { token, score }));
        for changed in &self.changed {
            if let Some(candidate) = usize::try_from(changed.token).ok().and_then(|at| all.get_mut(at)) {
                *candidate = *changed;
            }
        }
        allowed(&mut all)?;
        all.retain(|candidate| candidate.score.is_finite());
        let choice = if self.params.temperature <= 0.0 {
            let best = all.iter().max_by(|a, b| a.score.total_cmp(&b.score).then(b.token.cmp(&a.token)));
            best.map(|best| best.token)
        } else {
            cut(&mut all, self.params.top_k);
            self.draw(&mut all)
        };
        self.candidates = all;
        Ok(choice)
    }

    /// Records a token for the penalties.
    pub(crate) fn accept(&mut self, token: i32) {
        if !self.params.penalises() {
            return;
        }
        self.recent.push_back(token);
        *self.counts.entry(token).or_default() += 1;
        if self.recent.len() > self.params.repeat_last_n
            && let Some(old) = self.recent.pop_front()
            && let Some(count) = self.counts.get_mut(&old)
        {
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&old);
            }
        }
    }

    /// Computes the new scores of the tokens with a bias or a penalty.
    fn change(&mut self, scores: &[f32]) {
        let Sampler { params, counts, changed, .. } = self;
        changed.clear();
        let score_of = |token: i32| usize::try_from(token).ok().and_then(|at| scores.get(at)).copied();
        for &(token, bias) in &params.bias {
            match changed.last_mut() {
                Some(last) if last.token == token => last.score += bias,
                _ => {
                    let score = score_of(token).map(|score| score + bias);
                    changed.extend(score.map(|score| TokenCandidate { token, score }));
                }
            }
        }
        let biased = changed.len();
        for (&token, &count) in counts.iter() {
            match changed[..biased].binary_search_by_key(&token, |candidate| candidate.token) {
                Ok(at) => changed[at].score = params.penalised(changed[at].score, count),
                Err(_) => {
                    let score = score_of(token).map(|score| params.penalised(score, count));
                    changed.extend(score.map(|score| TokenCandidate { token, score }));
                }
            }
        }
        if changed.len() > biased {
            changed.sort_unstable_by_key(|candidate| candidate.token);
        }
    }

    /// The scores with the changes: a copy, if there are any.
    fn with_changes<'a>(&'a mut self, scores: &'a [f32]) -> &'a [f32] {
        if self.changed.is_empty() {
            return scores;
        }
        self.scratch.clear();
        self.scratch.extend_from_slice(scores);
        for changed in &self.changed {
            if let Some(score) = usize::try_from(changed.token).ok().and_then(|at| self.scratch.get_mut(at)) {
                *score = changed.score;
            }
        }
        &self.scratch
    }

    /// Samples: `top_p`, then `min_p`, then temperature, in the order of llama.cpp.
    fn draw(&mut self, candidates: &mut Vec<TokenCandidate>) -> Option<i32> {
        let best = candidates.iter().map(|candidate| candidate.score).fold(f32::NEG_INFINITY, f32::max);
        if !best.is_finite() {
            return None;
        }
        if self.params.top_p < 1.0 {
            keep_share(candidates, self.params.top_p, best);
        }
        if self.params.min_p > 0.0 {
            let least = best + self.params.min_p.ln();
            candidates.retain(|candidate| candidate.score >= least);
        }
        let weight = |candidate: &TokenCandidate| ((candidate.score - best) / self.params.temperature).exp();
        let total: f32 = candidates.iter().map(weight).sum();
        let mut left = self.random.f32() * total;
        for candidate in candidates.iter() {
            left -= weight(candidate);
            if left < 0.0 {
                return Some(candidate.token);
            }
        }
        // The rest from rounding belongs to the last candidate.
        candidates.last().map(|candidate| candidate.token)
    }
}

/// Scores that are looked at together.
const BLOCK: usize = 64;

/// The most tokens with a bias or a penalty that are looked at apart from the others. More are cheaper in a copy of the scores.
const MAX_APART: usize = 256;

/// The highest score of a block. In lanes, because the compiler vectorises them.
fn peak(block: &[f32]) -> f32 {
    const LANES: usize = 16;
    let higher = |a: f32, b: f32| if a > b { a } else { b };
    let mut lanes = [f32::NEG_INFINITY; LANES];
    let rows = block.chunks_exact(LANES);
    let rest = rows.remainder();
    for row in rows {
        for (lane, &score) in lanes.iter_mut().zip(row) {
            *lane = higher(score, *lane);
        }
    }
    let mut width = LANES;
    while width > 1 {
        width /= 2;
        for at in 0..width {
            lanes[at] = higher(lanes[at + width], lanes[at]);
        }
    }
    rest.iter().fold(lanes[0], |best, &score| higher(score, best))
}

/// The token with the highest score, the first of equals.
fn most_likely(scores: &[f32]) -> Option<i32> {
    let mut best = None;
    let mut top = f32::NEG_INFINITY;
    for (block, chunk) in scores.chunks(BLOCK).enumerate() {
        let peak = peak(chunk);
        if peak > top
            && let Some(at) = chunk.iter().position(|&score| score == peak)
        {
            top = peak;
            best = i32::try_from(block * BLOCK + at).ok();
        }
    }
    best
}

/// Collects the `k` tokens with the highest scores (all of them for zero) without sorting the rest.
pub(crate) fn keep_top(scores: &[f32], k: usize, out: &mut Vec<TokenCandidate>) {
    out.clear();
    // `k` may exceed the vocabulary, and must not overflow.
    let kept = if k < scores.len() { k } else { 0 };
    let peaks: Vec<f32> = scores.chunks(BLOCK).map(peak).collect();
    let mut least = least_of_best(&peaks, kept);
    let mut has_cut = false;
    for ((block, chunk), peak) in (0..).step_by(BLOCK).zip(scores.chunks(BLOCK)).zip(peaks) {
        // Nearly all blocks have nothing better.
        if peak < least {
            continue;
        }
        for (token, &score) in (block..).zip(chunk) {
            // Of equal scores, the first tokens are kept.
            let is_better = score > least || (score == least && !has_cut);
            if is_better && score > f32::NEG_INFINITY {
                out.push(TokenCandidate { token, score });
                if kept > 0 && out.len() / 4 >= kept {
                    cut(out, k);
                    least = out.iter().map(|c| c.score).fold(f32::INFINITY, f32::min);
                    has_cut = true;
                }
            }
        }
    }
    cut(out, k);
}

/// A score that the `k` best are not below: that of the block with the `k`th highest peak.
fn least_of_best(peaks: &[f32], k: usize) -> f32 {
    if k == 0 || k > peaks.len() {
        return f32::NEG_INFINITY;
    }
    let mut peaks = peaks.to_vec();
    let (_, least, _) = peaks.select_nth_unstable_by(k - 1, |a, b| b.total_cmp(a));
    *least
}

/// As [`keep_top`] with at least one token, where the tokens in `changed` have other scores.
fn keep_top_changed(scores: &[f32], changed: &[TokenCandidate], k: usize, out: &mut Vec<TokenCandidate>) {
    // The best `k` of the others are among so many.
    keep_top(scores, k.saturating_add(changed.len()), out);
    out.retain(|one| changed.binary_search_by_key(&one.token, |candidate| candidate.token).is_err());
    out.extend(changed.iter().filter(|candidate| candidate.score > f32::NEG_INFINITY));
    cut(out, k);
}

/// Keeps the `k` best, in order; all, as they are, for zero.
fn cut(candidates: &mut Vec<TokenCandidate>, k: usize) {
    if k > 0 {
        sort_best(candidates, k);
        candidates.truncate(k);
    }
}

/// Puts the `k` best to the front, in order.
fn sort_best(candidates: &mut [TokenCandidate], k: usize) {
    let better =
        |a: &TokenCandidate, b: &TokenCandidate| b.score.total_cmp(&a.score).then(a.token.cmp(&b.token));
    if k < candidates.len() {
        candidates.select_nth_unstable_by(k.saturating_sub(1), better);
    }
    let sorted = k.min(candidates.len());
    candidates[..sorted].sort_unstable_by(better);
}

/// Keeps the best candidates that have this share of the probability, in order.
fn keep_share(candidates: &mut Vec<TokenCandidate>, share: f32, best: f32) {
    let total: f32 = candidates.iter().map(|candidate| (candidate.score - best).exp()).sum();
    // Sorting a whole vocabulary takes milliseconds, and the share is nearly always that of a few.
    let mut sorted = BLOCK;
    loop {
        sort_best(candidates, sorted);
        let mut sum = 0.0;
        let last = candidates.iter().take(sorted).position(|candidate| {
            sum += (candidate.score - best).exp() / total;
            sum >= share
        });
        if let Some(last) = last {
            candidates.truncate(last + 1);
            return;
        }
        if sorted >= candidates.len() {
            return;
        }
        sorted = sorted.saturating_mul(8);
    }
}

#[cfg(test)]
#[path = "sampler_tests.rs"]
mod tests;
