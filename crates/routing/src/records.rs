//! What is kept of choices, and what was learnt from them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::SystemTime;

use hob_core::RequestSource;

use crate::QuestionClass;

/// A choice that was made, as it is kept until it is known what came of it.
#[derive(Debug, Clone, PartialEq)]
pub struct RoutingDecision {
    /// The request or run it was made for.
    pub run: Arc<str>,
    pub decided: SystemTime,
    pub source: RequestSource,
    pub policy: String,
    pub class: QuestionClass,
    pub engine: String,
    pub model: String,
    /// What there was to choose from, the chosen model included.
    pub candidates: Vec<String>,
    /// How likely it was to be chosen; `None` where nothing was left to chance.
    pub probability: Option<f64>,
    /// By which the same question is known again, and nothing else; `None` where nothing new was asked.
    pub question: Option<u64>,
}

/// What a person says of an answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Rating {
    Good,
    Bad,
}

impl Rating {
    pub const ALL: [Rating; 2] = [Rating::Good, Rating::Bad];

    pub fn as_str(self) -> &'static str {
        match self {
            Rating::Good => "good",
            Rating::Bad => "bad",
        }
    }

    pub fn parse(word: &str) -> Option<Self> {
        Rating::ALL.into_iter().find(|rating| rating.as_str() == word)
    }
}

/// What was learnt of a class of questions.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct ClassRecord {
    /// The last rewards, oldest first: the group that the next one is compared with.
    pub recent: Vec<f64>,
    pub models: BTreeMap<String, ModelRecord>,
}

/// What was learnt of a model in a class.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ModelRecord {
    /// In the softmax over the models.
    pub weight: f64,
    /// How often it was chosen, whatever came of it.
    pub tries: u64,
    /// Answers that had a reward.
    pub samples: u64,
    /// The sum of those rewards.
    pub rewards: f64,
    /// The logarithm of the seconds an answer takes, as a moving mean.
    pub log_seconds: Option<f64>,
    /// What an answer costs, as a moving mean.
    pub dollars: Option<f64>,
}

impl ModelRecord {
    pub fn mean_reward(&self) -> Option<f64> {
        (self.samples > 0).then(|| self.rewards / self.samples as f64)
    }
}

/// Everything that was learnt.
pub type Knowledge = BTreeMap<QuestionClass, ClassRecord>;
