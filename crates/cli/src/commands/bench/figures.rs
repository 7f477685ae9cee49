//! The results of a benchmark, as a line of JSON and as text.

use std::time::Duration;

use hob_config::Hardware;
use serde::{Deserialize, Serialize};

use super::measure::{LoadResult, Spread};

/// A line of the file: one measurement, with everything needed to decide whether another one is comparable.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchRecord {
    /// When it was measured, RFC 3339.
    pub date: String,
    /// The version of Hob.
    pub hob: String,
    pub engine: String,
    pub model: String,
    pub machine: BenchMachine,
    #[serde(flatten)]
    pub found: BenchResult,
}

/// The machine of the measurement. The machine of a remote engine is unknown.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BenchMachine {
    pub os: String,
    pub arch: String,
    pub cpu: String,
    pub memory_gb: f64,
    pub gpus: Vec<String>,
}

impl From<&Hardware> for BenchMachine {
    fn from(hardware: &Hardware) -> Self {
        BenchMachine {
            os: hardware.platform.os.clone(),
            arch: hardware.platform.arch.clone(),
            cpu: hardware.cpu.to_string(),
            memory_gb: hardware.ram_gb,
            gpus: hardware.gpus.iter().map(ToString::to_string).collect(),
        }
    }
}

/// A measurement. All times are in seconds.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "benchmark", rename_all = "lowercase")]
pub enum BenchResult {
    /// Sequential requests.
    Latency { samples: usize, latency: BenchLatency, first_token: BenchLatency },
    /// Concurrent requests.
    Throughput { concurrency: usize, samples: usize, tokens: u64, seconds: f64, tokens_per_second: f64 },
}

/// Statistics of a set of times, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct BenchLatency {
    pub mean: f64,
    pub p50: f64,
    pub p95: f64,
    pub min: f64,
    pub max: f64,
}

impl From<Spread> for BenchLatency {
    fn from(spread: Spread) -> Self {
        let Spread { mean, p50, p95, min, max } = spread;
        let [mean, p50, p95, min, max] = [mean, p50, p95, min, max].map(|time| time.as_secs_f64());
        BenchLatency { mean, p50, p95, min, max }
    }
}

impl BenchResult {
    /// `None` without a sample.
    pub fn latency(rush: &LoadResult) -> Option<Self> {
        Some(BenchResult::Latency {
            samples: rush.samples.len(),
            latency: Spread::of(rush.samples.iter().map(|sample| sample.latency))?.into(),
            first_token: Spread::of(rush.samples.iter().map(|sample| sample.first_token))?.into(),
        })
    }

    pub fn throughput(rush: &LoadResult, concurrency: usize) -> Self {
        BenchResult::Throughput {
            concurrency,
            samples: rush.samples.len(),
            tokens: rush.tokens(),
            seconds: rush.time.as_secs_f64(),
            tokens_per_second: rush.tokens_per_second(),
        }
    }

    /// The named metrics by which two measurements of the same kind can be compared.
    pub fn compared(&self) -> Vec<(String, Figure)> {
        match self {
            BenchResult::Latency { latency, first_token, .. } => {
                let of = |what: &str, times: &BenchLatency| {
                    [("mean", times.mean), ("p50", times.p50), ("p95", times.p95)]
                        .map(|(name, time)| (format!("{what} {name}"), Figure::Seconds(time)))
                };
                [of("latency", latency), of("first token", first_token)].concat()
            }
            BenchResult::Throughput { concurrency, tokens_per_second, .. } => {
                vec![(
                    format!("throughput, {concurrency} concurrent"),
                    Figure::TokensPerSecond(*tokens_per_second),
                )]
            }
        }
    }
}

/// A metric with its unit.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Figure {
    /// Less is better.
    Seconds(f64),
    /// More is better.
    TokensPerSecond(f64),
}

impl Figure {
    pub fn value(self) -> f64 {
        let (Figure::Seconds(value) | Figure::TokensPerSecond(value)) = self;
        value
    }

    /// The speedup of `after`; `None` if one value is zero.
    pub fn speed_up(self, after: Figure) -> Option<f64> {
        let ratio = match self {
            Figure::Seconds(before) => before / after.value(),
            Figure::TokensPerSecond(before) => after.value() / before,
        };
        (ratio.is_finite() && ratio > 0.0).then_some(ratio)
    }

    pub fn shown(self) -> String {
        match self {
            Figure::Seconds(seconds) => time(seconds),
            Figure::TokensPerSecond(rate) => format!("{rate:.1} tokens/s"),
        }
    }
}

/// Such as `85 ms`, `1.25 s`. Values from a file may be invalid.
pub fn time(seconds: f64) -> String {
    Duration::try_from_secs_f64(seconds).map_or_else(|_| "?".to_owned(), crate::output::number::seconds)
}
