//! Estimates how good an answer was, without reading it: from 0 to 1.
//!
//! A rating counts for nearly all of it. Without one, the reward depends on how the answer ended, its time and price compared to
//! other models, its tool calls, and whether the question was repeated.

use hob_core::EngineError;

use crate::{ClassRecord, ModelRecord, Rating};

/// An answer without further signs.
const ANSWERED: f64 = 0.6;

/// The limits of an answer without a rating: above a failure, and below a good rating.
const LEAST: f64 = 0.05;
const MOST: f64 = 0.95;

/// The largest effect of each sign.
const PACE: f64 = 0.15;
const COST: f64 = 0.1;
const FAILED_TOOLS: f64 = 0.3;
const CUT_SHORT: f64 = 0.15;
const ASKED_AGAIN: f64 = 0.3;

/// This factor to the other models counts in full.
const FULL_EFFECT_FACTOR: f64 = 4.0;

/// The share of a rating in a reward.
const RATING_SHARE: f64 = 0.9;

/// The number of ordinary answers that a rating counts for.
pub const RATING_STRENGTH: f64 = 3.0;

/// The share of a new value in a moving mean.
const SMOOTHING: f64 = 0.2;

/// The outcome of a run for the chosen model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum AnswerOutcome {
    Answered(AnswerEffort),
    Failed,
}

/// Time, price and other facts of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct AnswerEffort {
    pub seconds: f64,
    /// `None` if it is unknown, which is different from free.
    pub dollars: Option<f64>,
    pub tool_calls: u32,
    pub failed_tool_calls: u32,
    /// Whether it was stopped: by its length, or because it repeated a call.
    pub cut_short: bool,
}

/// The reward without a rating.
pub fn implicit(model: &str, end: &AnswerOutcome, class: &ClassRecord) -> f64 {
    let AnswerOutcome::Answered(effort) = end else { return 0.0 };
    let others = || class.models.iter().filter(|(name, _)| *name != model).map(|(_, known)| known);
    let pace = match mean(others().filter_map(|known| known.log_seconds)) {
        Some(usual) => ((usual - log_seconds(effort)) / FULL_EFFECT_FACTOR.ln()).clamp(-1.0, 1.0),
        None => 0.0,
    };
    let thrift = match mean(others().filter_map(|known| known.dollars)).zip(effort.dollars) {
        Some((usual, dollars)) if usual.max(dollars) > 0.0 => (usual - dollars) / usual.max(dollars),
        _ => 0.0,
    };
    let failed = match effort.tool_calls {
        0 => 0.0,
        calls => f64::from(effort.failed_tool_calls.min(calls)) / f64::from(calls),
    };
    let cut_short = if effort.cut_short { CUT_SHORT } else { 0.0 };
    let reward = ANSWERED + PACE * pace + COST * thrift - FAILED_TOOLS * failed - cut_short;
    reward.clamp(LEAST, MOST)
}

/// The reward with a rating. `implicit` is the one without, if any.
pub fn rated(implicit: Option<f64>, rating: Rating) -> f64 {
    let said = match rating {
        Rating::Good => 1.0,
        Rating::Bad => 0.0,
    };
    RATING_SHARE * said + (1.0 - RATING_SHARE) * implicit.unwrap_or(ANSWERED)
}

/// The reward of an answer whose question was repeated.
pub fn asked_again(reward: f64) -> f64 {
    (reward - ASKED_AGAIN).max(0.0)
}

/// Updates the mean time and price of a model.
pub fn record_effort(known: &mut ModelRecord, effort: &AnswerEffort) {
    let moved = |old: Option<f64>, new: f64| old.map_or(new, |old| old + SMOOTHING * (new - old));
    known.log_seconds = Some(moved(known.log_seconds, log_seconds(effort)));
    known.dollars = effort.dollars.map(|dollars| moved(known.dollars, dollars)).or(known.dollars);
}

/// Whether a failure says something about the model. An engine that is down, refuses access or is overloaded does not. A refusal
/// does: if the request is the cause, other models refuse it too, and none stands out.
pub fn is_models_fault(error: &EngineError) -> bool {
    match error {
        EngineError::Timeout { .. }
        | EngineError::Malformed { .. }
        | EngineError::Interrupted { .. }
        | EngineError::ModelNotFound { .. }
        | EngineError::Unsupported { .. } => true,
        EngineError::Refused { status, .. } => !matches!(status, 401 | 402 | 403 | 429),
        EngineError::Unreachable { .. } | EngineError::NotConfigured { .. } | EngineError::Limit(_) => false,
    }
}

fn log_seconds(effort: &AnswerEffort) -> f64 {
    effort.seconds.max(0.001).ln()
}

fn mean(values: impl Iterator<Item = f64>) -> Option<f64> {
    let (sum, count) = values.fold((0.0, 0_u32), |(sum, count), value| (sum + value, count + 1));
    (count > 0).then(|| sum / f64::from(count))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// A class in which another model takes two seconds and two cents.
    fn class() -> ClassRecord {
        let mut known = ModelRecord::default();
        record_effort(
            &mut known,
            &AnswerEffort { seconds: 2.0, dollars: Some(0.02), ..AnswerEffort::default() },
        );
        ClassRecord { models: [("other".to_owned(), known)].into(), ..ClassRecord::default() }
    }

    fn reward(effort: AnswerEffort) -> f64 {
        implicit("m", &AnswerOutcome::Answered(effort), &class())
    }

    const USUAL: AnswerEffort = AnswerEffort {
        seconds: 2.0,
        dollars: Some(0.02),
        tool_calls: 0,
        failed_tool_calls: 0,
        cut_short: false,
    };

    #[test]
    fn an_average_answer_has_the_default_reward() {
        assert_eq!(reward(USUAL), ANSWERED);
        let alone = implicit("m", &AnswerOutcome::Answered(USUAL), &ClassRecord::default());
        assert_eq!(alone, ANSWERED, "there is no model to compare with");
    }

    #[test]
    fn faster_cheaper_and_without_failures_is_better() {
        let better = [AnswerEffort { seconds: 1.0, ..USUAL }, AnswerEffort { dollars: Some(0.0), ..USUAL }];
        let worse = [
            AnswerEffort { seconds: 4.0, ..USUAL },
            AnswerEffort { dollars: Some(0.04), ..USUAL },
            AnswerEffort { tool_calls: 2, failed_tool_calls: 1, ..USUAL },
            AnswerEffort { cut_short: true, ..USUAL },
        ];
        for effort in better {
            assert!(reward(effort) > ANSWERED, "{effort:?}");
        }
        for effort in worse {
            assert!(reward(effort) < ANSWERED, "{effort:?}");
        }
    }

    #[test]
    fn an_unknown_price_is_not_free() {
        assert_eq!(reward(AnswerEffort { dollars: None, ..USUAL }), reward(USUAL));
        let mut known = ModelRecord::default();
        record_effort(&mut known, &AnswerEffort { dollars: None, ..USUAL });
        assert_eq!(known.dollars, None);
        record_effort(&mut known, &USUAL);
        record_effort(&mut known, &AnswerEffort { dollars: None, ..USUAL });
        assert_eq!(known.dollars, USUAL.dollars, "what was known stays");
    }

    #[test]
    fn a_reward_stays_between_failure_and_a_good_rating() {
        let dreadful = AnswerEffort {
            seconds: f64::MAX,
            dollars: Some(f64::MAX),
            tool_calls: 1,
            failed_tool_calls: 9,
            cut_short: true,
        };
        let wonderful = AnswerEffort { seconds: 0.0, dollars: Some(0.0), tool_calls: 3, ..USUAL };
        assert_eq!(implicit("m", &AnswerOutcome::Failed, &class()), 0.0);
        assert!(reward(dreadful) >= LEAST && reward(wonderful) <= MOST);
        assert!(rated(Some(reward(dreadful)), Rating::Good) > rated(Some(reward(wonderful)), Rating::Bad));
        assert!((0.0..=1.0).contains(&rated(None, Rating::Good)));
        assert_eq!(asked_again(0.1), 0.0);
    }

    #[test]
    fn a_failure_counts_only_if_the_model_is_the_cause() {
        let engine = || "ollama".to_owned();
        let refused = |status, message: &str| EngineError::Refused {
            engine: engine(),
            status,
            message: message.into(),
            code: None,
            param: None,
            retry_after: None,
        };
        for (error, expected) in [
            (refused(500, "out of memory"), true),
            (refused(400, "prompt exceeds the context length"), true),
            (refused(400, "this model takes no tools"), true),
            (refused(404, "no such model"), true),
            (refused(401, "no key"), false),
            (refused(429, "slow down"), false),
            (EngineError::Unsupported { engine: engine(), field: "tools".into(), hint: None }, true),
            (EngineError::Timeout { engine: engine(), after: Duration::from_secs(1) }, true),
            (EngineError::Unreachable { engine: engine(), address: String::new(), reason: "".into() }, false),
        ] {
            assert_eq!(is_models_fault(&error), expected, "{error}");
        }
    }
}
