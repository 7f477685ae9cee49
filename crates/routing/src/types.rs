//! The contract of a policy, and its input. A policy is pure and synchronous: the caller passes in measurements and a random
//! number.

use hob_core::ModelReason;

use crate::QuestionClass;

pub trait RouterPolicy: Send + Sync {
    fn name(&self) -> &'static str;

    /// Chooses one of `candidates`, all of which can answer; `None` only if there are none.
    fn choose(
        &self,
        query: &QuestionProfile,
        candidates: &[&ModelCandidate],
        draw: RandomDraw,
    ) -> Option<PolicyChoice>;
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ModelCandidate {
    pub model: String,
    /// From the engine or the name.
    pub parameters: Option<u64>,
    /// In tokens.
    pub context: Option<u64>,
    pub made_for: ModelSpecialty,
    /// Whether it is known to support images.
    pub sees: bool,
    /// Measured tokens per second.
    pub speed: Option<f64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ModelSpecialty {
    #[default]
    Everything,
    Code,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QuestionProfile {
    pub class: QuestionClass,
    /// An estimate of the tokens of question and answer.
    pub tokens: u64,
    pub pictures: bool,
}

/// A random number from 0 up to, but not including, 1.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RandomDraw(f64);

impl RandomDraw {
    /// A value outside counts as the nearest valid one.
    pub fn new(drawn: f64) -> Self {
        RandomDraw(if drawn >= 0.0 { drawn.min(1.0 - f64::EPSILON) } else { 0.0 })
    }

    pub fn get(self) -> f64 {
        self.0
    }
}

#[derive(Debug, Clone, PartialEq)]
pub struct PolicyChoice {
    pub model: String,
    pub reason: ModelReason,
    /// The probability of the choice; `None` if it was not random.
    pub probability: Option<f64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_random_draw_is_always_below_one() {
        for (drawn, draw) in [(0.0, 0.0), (0.5, 0.5), (-1.0, 0.0), (f64::NAN, 0.0)] {
            assert_eq!(RandomDraw::new(drawn).get(), draw, "{drawn}");
        }
        assert!(RandomDraw::new(1.0).get() < 1.0 && RandomDraw::new(f64::INFINITY).get() < 1.0);
    }
}
