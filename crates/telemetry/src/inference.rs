//! One call to one engine, as recorded.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use hob_core::{FinishReason, RequestSource, Usage};

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum InferenceEnd {
    Complete(FinishReason),
    /// The caller disconnected.
    Cancelled,
    /// With the error of the engine.
    Failed(String),
}

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

/// Where a call came from, and where it went. All of it may be unknown.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CallDetails {
    /// What the client and the log call the request, where it came over HTTP.
    pub request_id: Option<Arc<str>>,
    /// The path of the API that it came over.
    pub route: Option<&'static str>,
    /// How long the request waited for one of the server's slots.
    pub queued: Option<Duration>,
    /// The address of the host, where the engine has several.
    pub host: Option<Arc<str>>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct Inference {
    pub started: SystemTime,
    /// The id of the request or run. The turns of an agent share one.
    pub run: Arc<str>,
    pub source: RequestSource,
    pub engine: String,
    pub model: String,
    /// The agent, if any.
    pub agent: Option<String>,
    /// The name of the key that pays, if any.
    pub key: Option<Arc<str>>,
    /// Whom the request is for, in the words of the client.
    pub end_user: Option<Arc<str>>,
    pub streamed: bool,
    pub usage: Usage,
    /// Whether Hob estimated `usage`, because the engine reported none.
    pub estimated: bool,
    pub latency: Duration,
    /// The time to the first delta of a stream.
    pub first_token: Option<Duration>,
    /// Its share of the energy, if measured.
    pub energy: Option<Energy>,
    pub ending: InferenceEnd,
    pub details: CallDetails,
}

/// Records inferences. Must be fast and must not fail, because the caller waits for it.
pub trait InferenceLog: Send + Sync {
    fn record(&self, inference: Inference);
}

pub struct NoInferenceLog;

impl InferenceLog for NoInferenceLog {
    fn record(&self, _inference: Inference) {}
}
