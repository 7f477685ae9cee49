//! The policy with rules: short and simple questions go to a small model, code to one for code, hard questions to the largest.

use std::cmp::Ordering;

use hob_core::ModelReason;

use crate::{
    ModelCandidate, ModelSpecialty, PolicyChoice, QuestionLength, QuestionProfile, QuestionTopic, RandomDraw,
    RouterPolicy,
};

/// Models up to this many times the size of the smallest also count as small; the fastest of them answers.
const NEARLY_AS_SMALL: f64 = 1.5;

/// A model with fewer tokens per second is too slow, if there is another.
const TOO_SLOW: f64 = 2.0;

#[derive(Debug, Clone, Copy, Default)]
pub struct Heuristic;

impl RouterPolicy for Heuristic {
    fn name(&self) -> &'static str {
        "heuristic"
    }

    /// Not random.
    fn choose(
        &self,
        query: &QuestionProfile,
        candidates: &[&ModelCandidate],
        _draw: RandomDraw,
    ) -> Option<PolicyChoice> {
        let (chosen, why) = decide(query, candidates)?;
        Some(PolicyChoice { model: chosen.model.clone(), reason: ModelReason::new(why), probability: None })
    }
}

fn decide<'a>(
    query: &QuestionProfile,
    candidates: &[&'a ModelCandidate],
) -> Option<(&'a ModelCandidate, String)> {
    let for_code = made_for(candidates, ModelSpecialty::Code);
    let general = made_for(candidates, ModelSpecialty::Everything);
    // A model for code answers other questions only if there is no other model.
    let general = if general.is_empty() { candidates.to_vec() } else { general };
    let what = describe(query);
    match (query.class.topic, query.class.length) {
        (QuestionTopic::Code, _) if !for_code.is_empty() => {
            let (chosen, how) = largest(&for_code)?;
            Some((chosen, format!("{what}, so {}", one_of(how, for_code.len(), " for code"))))
        }
        (QuestionTopic::Code, _) => {
            let (chosen, how) = largest(&general)?;
            let this = one_of(how, general.len(), "");
            Some((chosen, format!("{what}, and there is no model for code, so {this}")))
        }
        (QuestionTopic::Plain, QuestionLength::Short) => {
            let (chosen, how) = smallest(&general)?;
            Some((chosen, format!("{what}, so {}", one_of(how, general.len(), ""))))
        }
        (QuestionTopic::Plain, QuestionLength::Medium) => {
            let chosen = middle(&general)?;
            Some((chosen, format!("{what}, so {}", one_of("the middle one", general.len(), " by size"))))
        }
        (QuestionTopic::Plain, QuestionLength::Long)
        | (QuestionTopic::Maths | QuestionTopic::Steps | QuestionTopic::Tools, _) => {
            let (chosen, how) = largest(&general)?;
            Some((chosen, format!("{what}, so {}", one_of(how, general.len(), ""))))
        }
    }
}

fn describe(query: &QuestionProfile) -> &'static str {
    match (query.class.topic, query.class.length) {
        (QuestionTopic::Plain, QuestionLength::Short) => "the question is short and simple",
        (QuestionTopic::Plain, QuestionLength::Medium) => "the question is simple, but not short",
        (QuestionTopic::Plain, QuestionLength::Long) => "the input is long",
        (QuestionTopic::Code, _) => "it is about code",
        (QuestionTopic::Maths, _) => "it is about mathematics",
        (QuestionTopic::Steps, _) => "it needs several steps",
        (QuestionTopic::Tools, _) => "it needs tools",
    }
}

/// `what` describes the models, and begins with a blank.
fn one_of(how: &str, count: usize, what: &str) -> String {
    match count {
        1 => format!("the only model{what}"),
        count => format!("{how} of {count} models{what}"),
    }
}

fn made_for<'a>(candidates: &[&'a ModelCandidate], what: ModelSpecialty) -> Vec<&'a ModelCandidate> {
    candidates.iter().copied().filter(|candidate| candidate.made_for == what).collect()
}

/// By size, then by name, so that the choice never depends on the order of a list.
fn by_size(one: &&ModelCandidate, other: &&ModelCandidate) -> Ordering {
    one.parameters.cmp(&other.parameters).then_with(|| one.model.cmp(&other.model))
}

/// The models with a known size, smallest first; if there are none, all by name.
fn sorted<'a>(candidates: &[&'a ModelCandidate]) -> Vec<&'a ModelCandidate> {
    let mut sorted: Vec<&ModelCandidate> =
        candidates.iter().copied().filter(|candidate| candidate.parameters.is_some()).collect();
    if sorted.is_empty() {
        sorted = candidates.to_vec();
    }
    sorted.sort_by(by_size);
    sorted
}

/// The smallest, or a slightly larger one that is faster.
fn smallest<'a>(candidates: &[&'a ModelCandidate]) -> Option<(&'a ModelCandidate, &'static str)> {
    let sorted = sorted(candidates);
    let smallest = *sorted.first()?;
    let limit = smallest.parameters.map(|parameters| parameters as f64 * NEARLY_AS_SMALL);
    let is_small = |candidate: &&&ModelCandidate| match (candidate.parameters, limit) {
        (Some(parameters), Some(limit)) => parameters as f64 <= limit,
        _ => true,
    };
    let faster = |best: &'a ModelCandidate, next: &'a ModelCandidate| match (best.speed, next.speed) {
        (Some(speed), Some(of_next)) if of_next > speed => next,
        _ => best,
    };
    let fastest = sorted.iter().take_while(is_small).copied().fold(smallest, faster);
    let how = if fastest.model == smallest.model {
        "the smallest"
    } else if limit.is_some() {
        "the fastest small one"
    } else {
        "the fastest"
    };
    Some((fastest, how))
}

/// The largest, unless it is too slow and another one is not.
fn largest<'a>(candidates: &[&'a ModelCandidate]) -> Option<(&'a ModelCandidate, &'static str)> {
    let sorted = sorted(candidates);
    let bearable = |candidate: &&&ModelCandidate| candidate.speed.is_none_or(|speed| speed >= TOO_SLOW);
    let largest = *sorted.last()?;
    match sorted.iter().rev().find(bearable) {
        Some(found) if found.model != largest.model => Some((found, "the largest that is not too slow")),
        _ => Some((largest, "the largest")),
    }
}

/// The one in the middle; of two, the larger.
fn middle<'a>(candidates: &[&'a ModelCandidate]) -> Option<&'a ModelCandidate> {
    let sorted = sorted(candidates);
    sorted.get(sorted.len() / 2).copied()
}

#[cfg(test)]
#[path = "heuristic_tests.rs"]
mod tests;
