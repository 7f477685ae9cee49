//! The policy that learns: for each class of questions a softmax over the models, whose weights follow the rewards.
//!
//! A reward counts relative to its group, the last rewards of the class: what matters is whether an answer was better or worse
//! than is usual for such questions, not how good it was. That is the advantage; the weights take a step along its gradient
//! (group-relative policy optimisation). Steps are clipped in three ways: the advantage, the change of a probability since the
//! choice was made, and the weights themselves, which also keeps every model in play.

use std::collections::BTreeMap;

use hob_core::ModelReason;

use crate::{ClassRecord, ModelCandidate, PolicyChoice, QuestionProfile, RandomDraw, RouterPolicy};

/// Until a model was chosen so often in a class, it is tried. Not until it has so many rewards: one that never earns any, because
/// its engine is away or refuses, would be tried for ever.
pub const ENOUGH_TRIES: u64 = 4;

/// How far a step goes.
const LEARNING_RATE: f64 = 0.3;

/// Rewards of a class that the next one is compared with.
const GROUP: usize = 32;

/// An advantage is not taken for more than this many times the group's spread.
const MOST_ADVANTAGE: f64 = 2.0;

/// A group whose rewards differ by less is taken to be this far apart, so that noise does not look like news.
const LEAST_SPREAD: f64 = 0.05;

/// A reward that comes late does not drive a probability further than this from what it was, in either direction.
const TRUST: f64 = 0.2;

/// With weights up to this, the worse of two models keeps a quarter of a percent, and the worst of many a smaller share, but one
/// above nothing: what has changed is noticed.
const MOST_WEIGHT: f64 = 3.0;

/// The policy, with what is known of the class of the question.
#[derive(Debug, Clone, Default)]
pub struct Grpo {
    pub record: ClassRecord,
    /// Questions of this class that each model is answering: their rewards are still to come.
    pub in_flight: BTreeMap<String, u64>,
}

impl Grpo {
    /// A try that is in flight may not be in the record yet, or be in it already.
    fn tries(&self, model: &str) -> u64 {
        let known = self.record.models.get(model).copied().unwrap_or_default();
        let in_flight = self.in_flight.get(model).copied().unwrap_or(0);
        known.tries.max(known.samples + in_flight)
    }

    /// The models that were tried least, while that is not enough; by name.
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
            let why = format!("tried, as it has had {tries} of {ENOUGH_TRIES} tries for {class}");
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
                format!("{percent:.0} % for {class}, by a mean reward of {mean:.2} after {samples} answers")
            }
            None => format!("{percent:.0} % for {class}, as nothing is known of its answers yet"),
        };
        Some(PolicyChoice {
            model: model.to_owned(),
            reason: ModelReason::new(why),
            probability: Some(probability),
        })
    }
}

/// How likely each of these is to be chosen. A model without a record has the weight zero, which is that of an average one.
pub fn probabilities<M: AsRef<str>>(record: &ClassRecord, models: &[M]) -> Vec<f64> {
    let weight = |model: &M| record.models.get(model.as_ref()).map_or(0.0, |known| known.weight);
    // Weights are bounded, so nothing overflows.
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
    // What rounding left over belongs to the last.
    models.last().copied()
}

/// A new reward of an answer.
#[derive(Debug, Clone, Copy)]
pub struct RewardUpdate<'a> {
    pub model: &'a str,
    /// The models it was chosen from, itself included. Those that were not there learn nothing.
    pub candidates: &'a [String],
    /// Of the choice, when it was made. `None` where nothing was left to chance, and for news that does not go stale, such as
    /// what a person says.
    pub probability: Option<f64>,
    /// From 0 to 1.
    pub reward: f64,
    /// The reward that the same answer had before, and that this one replaces.
    pub earlier: Option<f64>,
    /// How many ordinary answers it counts for.
    pub strength: f64,
}

/// Changes the weights of a class by a reward.
pub fn learn(record: &mut ClassRecord, update: &RewardUpdate<'_>) {
    if !update.reward.is_finite() {
        return;
    }
    let reward = update.reward.clamp(0.0, 1.0);
    // What is known better now is compared with what it was taken for, too.
    let advantage = advantage(&record.recent, reward);
    step(record, update, advantage);
    forget(&mut record.recent, update.earlier);
    record.recent.push(reward);
    let surplus = record.recent.len().saturating_sub(GROUP);
    record.recent.drain(..surplus);
    let known = record.models.entry(update.model.to_owned()).or_default();
    known.rewards += reward - update.earlier.unwrap_or(0.0);
    known.samples += u64::from(update.earlier.is_none());
}

/// Takes an earlier reward of the same answer out of its group, if it is still there.
fn forget(recent: &mut Vec<f64>, earlier: Option<f64>) {
    if let Some(earlier) = earlier
        && let Some(at) = recent.iter().rposition(|reward| *reward == earlier)
    {
        recent.remove(at);
    }
}

/// By how much a reward is better than its group, in units of the group's spread.
fn advantage(recent: &[f64], reward: f64) -> f64 {
    let group = || recent.iter().copied().chain([reward]);
    let size = (recent.len() + 1) as f64;
    let mean = group().sum::<f64>() / size;
    let spread = (group().map(|one| (one - mean).powi(2)).sum::<f64>() / size).sqrt();
    ((reward - mean) / spread.max(LEAST_SPREAD)).clamp(-MOST_ADVANTAGE, MOST_ADVANTAGE)
}

fn step(record: &mut ClassRecord, update: &RewardUpdate<'_>, advantage: f64) {
    let shares = probabilities(record, update.candidates);
    let share = update.candidates.iter().zip(&shares).find(|(candidate, _)| *candidate == update.model);
    let Some((_, &share)) = share else { return };
    let ratio = update.probability.filter(|then| *then > 0.0).map_or(1.0, |then| share / then);
    let gone_far_enough = if advantage > 0.0 { ratio > 1.0 + TRUST } else { ratio < 1.0 - TRUST };
    if gone_far_enough {
        return;
    }
    let length = LEARNING_RATE * update.strength * advantage * ratio.min(1.0 + TRUST);
    for (candidate, share) in update.candidates.iter().zip(shares) {
        let chosen = if candidate == update.model { 1.0 } else { 0.0 };
        let weight = &mut record.models.entry(candidate.clone()).or_default().weight;
        *weight = (*weight + length * (chosen - share)).clamp(-MOST_WEIGHT, MOST_WEIGHT);
    }
}

#[cfg(test)]
#[path = "grpo_tests.rs"]
mod tests;

#[cfg(test)]
#[path = "grpo_simulation_tests.rs"]
mod simulation;
