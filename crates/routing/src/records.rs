//! Stored choices, and the knowledge learned from them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use hob_core::RequestSource;

use crate::QuestionClass;

/// A choice, stored until its outcome is known.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutingDecision {
    /// The id of the request or run.
    pub run: Arc<str>,
    pub decided: SystemTime,
    pub source: RequestSource,
    pub policy: String,
    pub class: QuestionClass,
    pub engine: String,
    pub model: String,
    /// The models to choose from, including the chosen one.
    pub candidates: Vec<String>,
    /// The probability of the choice; `None` if it was not random.
    pub probability: Option<f64>,
    /// The hash of the question; `None` if the user asked nothing new.
    pub question: Option<u64>,
}

/// The rating of an answer by a person.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rating {
    Good,
    Bad,
}

hob_core::named_variants! {
    Rating {
        Good => "good",
        Bad => "bad",
    }
}

/// The knowledge of a class of questions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClassRecord {
    /// The last rewards, oldest first.
    pub recent: Vec<f64>,
    pub models: BTreeMap<String, ModelRecord>,
}

/// The knowledge of a model in a class.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelRecord {
    /// The weight in the softmax.
    pub weight: f64,
    /// The number of choices.
    pub tries: u64,
    /// The number of rewards.
    pub samples: u64,
    /// The sum of the rewards.
    pub rewards: f64,
    /// The moving mean of the logarithm of the seconds of an answer.
    pub log_seconds: Option<f64>,
    /// The moving mean of the price of an answer.
    pub dollars: Option<f64>,
}

impl ModelRecord {
    pub fn mean_reward(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.rewards / self.samples as f64)
    }
}

pub type Knowledge = BTreeMap<QuestionClass, ClassRecord>;
