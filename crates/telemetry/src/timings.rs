//! Latencies: means from sums, percentiles from histograms. Pure.

use std::time::Duration;

use hob_core::time::as_seconds;
use serde::Serialize;

use crate::latency_histogram::{Durations, LatencyHistogram};

/// Serialised in seconds. The mean is exact; percentiles are within 2.5 %, and exact for a single call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct LatencySummary {
    #[serde(serialize_with = "as_seconds")]
    pub mean: Duration,
    #[serde(serialize_with = "as_seconds")]
    pub p50: Duration,
    #[serde(serialize_with = "as_seconds")]
    pub p95: Duration,
}

/// `None` if no call was completed, or none was a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct CallTimings {
    pub latency: Option<LatencySummary>,
    pub first_token: Option<LatencySummary>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ModelSpeed {
    pub engine: String,
    pub model: String,
    /// Of completed calls, over their whole time.
    pub tokens_per_second: f64,
}

#[derive(Default)]
pub(crate) struct TimingSums {
    pub(crate) durations: Durations,
    /// The sum over completed calls, and their number.
    pub(crate) latency_us: f64,
    pub(crate) completed: u64,
    /// The same for streams.
    pub(crate) first_token_us: f64,
    pub(crate) streamed: u64,
}

impl TimingSums {
    pub(crate) fn add(&mut self, other: &TimingSums) {
        self.durations.latency.merge(&other.durations.latency);
        self.durations.first_token.merge(&other.durations.first_token);
        self.latency_us += other.latency_us;
        self.completed += other.completed;
        self.first_token_us += other.first_token_us;
        self.streamed += other.streamed;
    }

    pub(crate) fn timings(&self) -> CallTimings {
        let TimingSums { durations, latency_us, completed, first_token_us, streamed } = self;
        CallTimings {
            latency: summary(&durations.latency, *latency_us, *completed),
            first_token: summary(&durations.first_token, *first_token_us, *streamed),
        }
    }
}

fn summary(histogram: &LatencyHistogram, total_us: f64, calls: u64) -> Option<LatencySummary> {
    let mean = Duration::try_from_secs_f64(total_us / calls as f64 / 1e6).ok()?;
    if calls == 1 {
        return Some(LatencySummary { mean, p50: mean, p95: mean });
    }
    Some(LatencySummary { mean, p50: histogram.percentile(50)?, p95: histogram.percentile(95)? })
}
