//! What is learnt from the end of an answer, from a question that is asked again, and from a rating. Pure: changes what the store
//! has read, and the store writes it back.

use crate::grpo::{Lesson, learn};
use crate::records::{ClassRecord, Rating, RoutingDecision};
use crate::reward::{self, AnswerOutcome, RATING_STRENGTH};
use crate::store::Kept;

/// An answer has ended. That counts once, and its reward is not what somebody said of it before.
pub(crate) fn ended(kept: &mut Kept, record: &mut ClassRecord, end: &AnswerOutcome) {
    if kept.implicit.is_some() {
        return;
    }
    let model = kept.decision.model.clone();
    let reward = reward::implicit(&model, end, record);
    kept.answered = matches!(end, AnswerOutcome::Answered(_));
    kept.implicit = Some(reward);
    if kept.reward.is_none() {
        teach(kept, record, reward, Weight::Usual);
    }
    if let AnswerOutcome::Answered(effort) = end {
        reward::note_effort(record.models.entry(model).or_default(), effort);
    }
}

/// The question was asked again. That counts once, and not against what a person said of the answer.
pub(crate) fn asked_again(kept: &mut Kept, record: &mut ClassRecord) {
    if let Some(reward) = kept.reward
        && !kept.retried
    {
        kept.retried = true;
        kept.implicit = kept.implicit.map(reward::asked_again);
        if !kept.rated {
            teach(kept, record, reward::asked_again(reward), Weight::Usual);
        }
    }
}

/// Somebody has spoken, in the place of what was said before.
pub(crate) fn rated(kept: &mut Kept, record: &mut ClassRecord, rating: Rating) {
    let reward = reward::rated(kept.implicit, rating);
    teach(kept, record, reward, Weight::Said);
}

/// How much a lesson counts.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weight {
    Usual,
    /// A person said it.
    Said,
}

fn teach(kept: &mut Kept, record: &mut ClassRecord, reward: f64, weight: Weight) {
    let RoutingDecision { model, rivals, probability, .. } = &kept.decision;
    let (probability, strength) = match weight {
        Weight::Usual => (*probability, 1.0),
        Weight::Said => (None, RATING_STRENGTH),
    };
    learn(record, &Lesson { model, rivals, probability, reward, earlier: kept.reward, strength });
    kept.reward = Some(reward);
}
