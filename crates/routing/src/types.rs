//! The contract of a policy, and what a policy sees. A policy is pure and synchronous: the caller passes in what is known and a
//! random number.

use hob_core::ModelReason;

use crate::QuestionClass;

/// Chooses a model.
pub trait RouterPolicy: Send + Sync {
    fn name(&self) -> &'static str;

    /// One of `candidates`, all of which can answer; `None` only where there are none.
    fn choose(
        &self,
        query: &QuestionProfile,
        candidates: &[&ModelCandidate],
        draw: RandomDraw,
    ) -> Option<PolicyChoice>;
}

/// What is known of a model that could answer.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelCandidate {
    pub model: String,
    /// Number of weights, as the engine says or as the name does.
    pub parameters: Option<u64>,
    /// Context window in tokens.
    pub context: Option<u64>,
    pub made_for: ModelSpecialty,
    /// Whether it is known to look at pictures.
    pub sees: bool,
    /// Tokens it writes in a second, as measured here.
    pub speed: Option<f64>,
}

/// What a model is best at.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelSpecialty {
    #[default]
    Everything,
    Code,
}

/// What a policy sees of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionProfile {
    pub class: QuestionClass,
    /// Tokens that question and answer may take together; an estimate.
    pub tokens: u64,
    pub pictures: bool,
}

/// All the chance a choice may depend on: a number from 0 up to, but not including, 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomDraw(f64);

impl RandomDraw {
    /// What lies outside, or is no number, counts as the nearest that is inside.
    pub fn new(drawn: f64) -> Self {
        RandomDraw(if drawn >= 0.0 { drawn.min(1.0 - f64::EPSILON) } else { 0.0 })
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

/// What a policy chose.
#[derive(Debug, Clone, PartialEq)]
pub struct PolicyChoice {
    pub model: String,
    pub reason: ModelReason,
    /// How likely it was to be chosen; `None` where a policy leaves nothing to chance.
    pub probability: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lot_is_always_below_one() {
        for (drawn, draw) in [(0.0, 0.0), (0.5, 0.5), (-1.0, 0.0), (f64::NAN, 0.0)] {
            assert_eq!(RandomDraw::new(drawn).get(), draw, "{drawn}");
        }
        assert!(RandomDraw::new(1.0).get() < 1.0 && RandomDraw::new(f64::INFINITY).get() < 1.0);
    }
}
