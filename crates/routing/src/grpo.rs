//! The policy that learns: for each class of questions a softmax over the models, whose weights follow the rewards.
//!
//! A reward is compared with its group, the last rewards of the class: the advantage is how much better or worse an answer was
//! than usual. The weights take a step along its gradient (group-relative policy optimisation). Steps are clipped in three ways:
//! the advantage, the change of a probability since the choice, and the weights themselves, which also keeps every model in use.

use std::collections::BTreeMap;

use hob_core::ModelReason;

use crate::{ClassRecord, ModelCandidate, PolicyChoice, QuestionProfile, RandomDraw, RouterPolicy};

/// A model is tried until it was chosen this often in a class. Tries count, not rewards: a model whose engine is down never earns
/// one, and would be tried forever.
pub const ENOUGH_TRIES: u64 = 4;

const LEARNING_RATE: f64 = 0.3;

/// The size of a group.
const GROUP_SIZE: usize = 32;

/// The largest advantage, in units of the group's spread.
const MAX_ADVANTAGE: f64 = 2.0;

/// The smallest spread of a group, so that noise has little effect.
const MIN_SPREAD: f64 = 0.05;

/// The largest change of a probability since the choice was made, in either direction.
const MAX_CHANGE: f64 = 0.2;

/// The largest weight. The worse of two models keeps a quarter of a percent, so that a change is noticed.
const MAX_WEIGHT: f64 = 3.0;

/// The policy, with the knowledge of the class of the question.
#[derive(Debug, Clone, Default)]
pub struct Grpo {
    pub record: ClassRecord,
    /// Questions of this class that each model is answering.
    pub in_flight: BTreeMap<String, u64>,
}

impl Grpo {
    /// A try in flight may or may not be in the record.
    fn tries(&self, model: &str) -> u64 {
        let known = self.record.models.get(model).copied().unwrap_or_default();
        let in_flight = self.in_flight.get(model).copied().unwrap_or(0);
        known.tries.max(known.samples + in_flight)
    }

    /// The models with the fewest tries, if those are not enough; by name.
    fn least_known<'a>(&self, candidates: &[&'a ModelCandidate]) -> Vec<&'a str> {
        let fewest = candidates.iter().map(|candidate| self.tries(&candidate.model)).min();
        let Some(fewest) = fewest.filter(|fewest| *fewest < ENOUGH_TRIES) else { return Vec::new() };
        let mut least: Vec<&str> = candidates
            .iter()
            .map(|candidate| candidate.model.as_str())
            .filter(|model| self.tries(model) == fewest)
            .collect();
        least.sort_unstable();
        least
    }
}

impl RouterPolicy for Grpo {
    fn name(&self) -> &'static str {
        "grpo"
    }

    fn choose(
        &self,
        query: &QuestionProfile,
        candidates: &[&ModelCandidate],
        draw: RandomDraw,
    ) -> Option<PolicyChoice> {
        let mut models: Vec<&str> = candidates.iter().map(|candidate| candidate.model.as_str()).collect();
        models.sort_unstable();
        let shares = probabilities(&self.record, &models);
        let class = query.class;
        let least = self.least_known(candidates);
        if !least.is_empty() {
            let model = least[((draw.get() * least.len() as f64) as usize).min(least.len() - 1)];
            let probability = Some(share_of(model, &models, &shares));
            let tries = self.tries(model);
            let why = format!("try {tries} of {ENOUGH_TRIES} for {class}");
            return Some(PolicyChoice {
                model: model.to_owned(),
                reason: ModelReason::new(why),
                probability,
            });
        }
        let model = pick(&models, &shares, draw)?;
        let probability = share_of(model, &models, &shares);
        let percent = probability * 100.0;
        let known = self.record.models.get(model).copied().unwrap_or_default();
        let why = match known.mean_reward() {
            Some(mean) => {
                let samples = known.samples;
                format!("{percent:.0} % for {class}, with a mean reward of {mean:.2} in {samples} answers")
            }
            None => format!("{percent:.0} % for {class}, without any rewards yet"),
        };
        Some(PolicyChoice {
            model: model.to_owned(),
            reason: ModelReason::new(why),
            probability: Some(probability),
        })
    }
}

/// The probability of each model. A model without a record has the weight zero, that of an average one.
pub fn probabilities<M: AsRef<str>>(record: &ClassRecord, models: &[M]) -> Vec<f64> {
    let weight = |model: &M| record.models.get(model.as_ref()).map_or(0.0, |known| known.weight);
    // Weights are bounded, so this does not overflow.
    let raised: Vec<f64> = models.iter().map(|model| weight(model).exp()).collect();
    let all: f64 = raised.iter().sum();
    raised.into_iter().map(|one| one / all).collect()
}

fn share_of(model: &str, models: &[&str], shares: &[f64]) -> f64 {
    models.iter().zip(shares).find(|(known, _)| **known == model).map_or(0.0, |(_, share)| *share)
}

fn pick<'a>(models: &[&'a str], shares: &[f64], draw: RandomDraw) -> Option<&'a str> {
    let mut left = draw.get();
    for (model, share) in models.iter().zip(shares) {
        if left < *share {
            return Some(model);
        }
        left -= share;
    }
    // The rest from rounding belongs to the last.
    models.last().copied()
}

/// A reward of an answer.
#[derive(Debug, Clone, Copy)]
pub struct RewardUpdate<'a> {
    pub model: &'a str,
    /// The models it was chosen from, including itself. Other models learn nothing.
    pub candidates: &'a [String],
    /// The probability of the choice at the time. `None` if it was not random, and for ratings.
    pub probability: Option<f64>,
    /// From 0 to 1.
    pub reward: f64,
    /// The earlier reward of the same answer, which this one replaces.
    pub earlier: Option<f64>,
    /// The number of ordinary answers it counts for.
    pub strength: f64,
}

/// Updates the weights of a class with a reward.
pub fn learn(record: &mut ClassRecord, update: &RewardUpdate<'_>) {
    if !update.reward.is_finite() {
        return;
    }
    let reward = update.reward.clamp(0.0, 1.0);
    // A replaced reward is also compared with the earlier one.
    let advantage = advantage(&record.recent, reward);
    step(record, update, advantage);
    forget(&mut record.recent, update.earlier);
    record.recent.push(reward);
    let surplus = record.recent.len().saturating_sub(GROUP_SIZE);
    record.recent.drain(..surplus);
    let known = record.models.entry(update.model.to_owned()).or_default();
    known.rewards += reward - update.earlier.unwrap_or(0.0);
    known.samples += u64::from(update.earlier.is_none());
}

/// Removes an earlier reward of the same answer from its group.
fn forget(recent: &mut Vec<f64>, earlier: Option<f64>) {
    if let Some(earlier) = earlier
        && let Some(at) = recent.iter().rposition(|reward| *reward == earlier)
    {
        recent.remove(at);
    }
}

/// The difference to the group in units of its spread.
fn advantage(recent: &[f64], reward: f64) -> f64 {
    let group = || recent.iter().copied().chain([reward]);
    let size = (recent.len() + 1) as f64;
    let mean = group().sum::<f64>() / size;
    let spread = (group().map(|one| (one - mean).powi(2)).sum::<f64>() / size).sqrt();
    ((reward - mean) / spread.max(MIN_SPREAD)).clamp(-MAX_ADVANTAGE, MAX_ADVANTAGE)
}

fn step(record: &mut ClassRecord, update: &RewardUpdate<'_>, advantage: f64) {
    let shares = probabilities(record, update.candidates);
    let share = update.candidates.iter().zip(&shares).find(|(candidate, _)| *candidate == update.model);
    let Some((_, &share)) = share else { return };
    let ratio = update.probability.filter(|then| *then > 0.0).map_or(1.0, |then| share / then);
    let gone_far_enough = if advantage > 0.0 { ratio > 1.0 + MAX_CHANGE } else { ratio < 1.0 - MAX_CHANGE };
    if gone_far_enough {
        return;
    }
    let length = LEARNING_RATE * update.strength * advantage * ratio.min(1.0 + MAX_CHANGE);
    for (candidate, share) in update.candidates.iter().zip(shares) {
        let chosen = if candidate == update.model { 1.0 } else { 0.0 };
        let weight = &mut record.models.entry(candidate.clone()).or_default().weight;
        *weight = (*weight + length * (chosen - share)).clamp(-MAX_WEIGHT, MAX_WEIGHT);
    }
}

#[cfg(test)]
#[path = "grpo_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "grpo_simulation_tests.rs"]
mod simulation;
