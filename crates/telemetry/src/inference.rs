//! One question to one engine, as it is recorded.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::{FinishReason, RequestSource, Usage};

/// How it ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InferenceEnd {
    Complete(FinishReason),
    /// The caller disconnected.
    Cancelled,
    /// In the engine's words.
    Failed(String),
}

/// An amount of energy that a meter counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Energy {
    microjoules: u64,
}

impl Energy {
    pub fn from_microjoules(microjoules: u64) -> Self {
        Energy { microjoules }
    }

    pub fn microjoules(self) -> u64 {
        self.microjoules
    }

    pub fn joules(self) -> f64 {
        self.microjoules as f64 / 1e6
    }
}

/// What is recorded of one inference.
#[derive(Debug, Clone, PartialEq)]
pub struct Inference {
    pub started: SystemTime,
    /// The request or run it belongs to; an agent's turns share one.
    pub run: Arc<str>,
    pub source: RequestSource,
    pub engine: String,
    pub model: String,
    /// The agent whose turn it was.
    pub agent: Option<String>,
    pub streamed: bool,
    pub usage: Usage,
    /// Whether `usage` was counted by us because the engine did not.
    pub estimated: bool,
    pub latency: Duration,
    /// Until the first piece of a stream.
    pub first_token: Option<Duration>,
    /// Its share of what this machine's meters counted; `None` where it was not measured.
    pub energy: Option<Energy>,
    pub ending: InferenceEnd,
}

/// Records inferences. Must be quick and must not fail: it stands between an answer and its caller.
pub trait InferenceLog: Send + Sync {
    fn record(&self, inference: Inference);
}

/// Records nothing.
pub struct NoInferenceLog;

impl InferenceLog for NoInferenceLog {
    fn record(&self, _inference: Inference) {}
}
