//! One call to an engine, as read from the store.

use std::time::Duration;

use hob_core::Moment;
use hob_core::time::{as_seconds, as_seconds_if_known};
use serde::{Deserialize, Serialize, Serializer};

use crate::inference::Energy;
use crate::savings::Dollars;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CallOutcome {
    Complete,
    Cancelled,
    Failed,
}

hob_core::named_variants! {
    CallOutcome {
        Complete => "complete",
        Cancelled => "cancelled",
        Failed => "failed",
    }
}

/// One recorded call. Serialises as one flat line of JSON or CSV.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CallRecord {
    pub started: Moment,
    pub run: String,
    pub source: String,
    pub engine: String,
    pub model: String,
    pub agent: Option<String>,
    /// The name of the key that paid; `None` for calls without a named key.
    pub key: Option<String>,
    /// Whom it was for, in the words of the client.
    pub end_user: Option<String>,
    pub streamed: bool,
    pub prompt_tokens: u64,
    pub completion_tokens: u64,
    pub cached_tokens: Option<u64>,
    /// Whether Hob counted the tokens because the engine did not.
    pub estimated: bool,
    #[serde(rename = "latency_seconds", serialize_with = "as_seconds")]
    pub latency: Duration,
    #[serde(rename = "first_token_seconds", serialize_with = "as_seconds_if_known")]
    pub first_token: Option<Duration>,
    /// Completion tokens per second of the call; `None` unless it was completed and wrote some.
    pub tokens_per_second: Option<f64>,
    pub outcome: CallOutcome,
    pub finish_reason: Option<String>,
    pub error: Option<String>,
    /// `None` for a local engine, and for a cloud model without a known price.
    pub cost: Option<Dollars>,
    /// `None` if it was not measured.
    #[serde(rename = "energy_joules", serialize_with = "as_joules_if_known")]
    pub energy: Option<Energy>,
    /// What the client and the log call the request, where it came over HTTP.
    pub request_id: Option<String>,
    /// The path of the API that it came over.
    pub route: Option<String>,
    /// The address of the host, where the engine has several.
    pub host: Option<String>,
    /// How long the request waited for one of the server's slots.
    #[serde(rename = "queue_seconds", serialize_with = "as_seconds_if_known")]
    pub queued: Option<Duration>,
}

/// The speed of a completed call that wrote something.
pub(crate) fn tokens_per_second(
    outcome: CallOutcome,
    completion_tokens: u64,
    latency: Duration,
) -> Option<f64> {
    let measurable = outcome == CallOutcome::Complete && completion_tokens > 0 && !latency.is_zero();
    measurable.then(|| completion_tokens as f64 / latency.as_secs_f64())
}

/// Writes energy in joules, for `serialize_with`.
pub(crate) fn as_joules_if_known<S: Serializer>(
    energy: &Option<Energy>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    energy.map(Energy::joules).serialize(serializer)
}
