//! Learns from the outcome of an answer, from a repeated question, and from a rating. Pure: changes what the store has read; the
//! store writes it back.

use crate::grpo::{RewardUpdate, learn};
use crate::records::{ClassRecord, Rating, RoutingDecision};
use crate::reward::{self, AnswerOutcome, RATING_STRENGTH};
use crate::store::StoredDecision;

/// Learns from the outcome of an answer. It counts once, and a rating overrides its reward.
pub(crate) fn learn_outcome(stored: &mut StoredDecision, record: &mut ClassRecord, outcome: &AnswerOutcome) {
    if stored.implicit.is_some() {
        return;
    }
    let model = stored.decision.model.clone();
    let reward = reward::implicit(&model, outcome, record);
    stored.answered = matches!(outcome, AnswerOutcome::Answered(_));
    stored.implicit = Some(reward);
    if stored.reward.is_none() {
        apply(stored, record, reward, Weight::Usual);
    }
    if let AnswerOutcome::Answered(effort) = outcome {
        reward::record_effort(record.models.entry(model).or_default(), effort);
    }
}

/// Learns from a repeated question. It counts once, and does not change a rating.
pub(crate) fn learn_asked_again(stored: &mut StoredDecision, record: &mut ClassRecord) {
    if let Some(reward) = stored.reward
        && !stored.retried
    {
        stored.retried = true;
        stored.implicit = stored.implicit.map(reward::asked_again);
        if !stored.rated {
            apply(stored, record, reward::asked_again(reward), Weight::Usual);
        }
    }
}

/// Learns from a rating, which replaces an earlier one.
pub(crate) fn learn_rating(stored: &mut StoredDecision, record: &mut ClassRecord, rating: Rating) {
    let reward = reward::rated(stored.implicit, rating);
    apply(stored, record, reward, Weight::Rated);
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Usual,
    /// A person rated the answer.
    Rated,
}

fn apply(stored: &mut StoredDecision, record: &mut ClassRecord, reward: f64, weight: Weight) {
    let RoutingDecision { model, candidates, probability, .. } = &stored.decision;
    let (probability, strength) = match weight {
        Weight::Usual => (*probability, 1.0),
        Weight::Rated => (None, RATING_STRENGTH),
    };
    learn(record, &RewardUpdate { model, candidates, probability, reward, earlier: stored.reward, strength });
    stored.reward = Some(reward);
}
