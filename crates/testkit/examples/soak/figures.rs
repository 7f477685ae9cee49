//! The samples, how much each figure grows, and the bounds.

use std::fmt::{self, Write};
use std::fs;
use std::path::Path;
use std::time::Duration;

use hob_testkit::record_run;
use hob_testkit::trend::{Trend, keeps_growing, trend};
use serde_json::{Value, json};

use crate::server::Server;

/// The share of the time in which caches fill, threads start and the databases get their first pages. It takes some minutes even in
/// a short run, of which half is left.
const WARM_UP: f64 = 0.25;
const LEAST_WARM_UP_HOURS: f64 = 5.0 / 60.0;
const MOST_WARM_UP: f64 = 0.5;

/// A figure: its name, and by how much it may grow in an hour; `None` if it is only shown.
struct Kind {
    name: &'static str,
    bound: Option<f64>,
    of: fn(&Sample) -> f64,
}

const KINDS: [Kind; 6] = [
    Kind { name: "memory (MiB)", bound: Some(8.0), of: |sample| sample.memory },
    Kind { name: "descriptors", bound: Some(4.0), of: |sample| sample.descriptors },
    Kind { name: "threads", bound: Some(4.0), of: |sample| sample.threads },
    Kind { name: "p50 (ms)", bound: Some(2.0), of: |sample| sample.p50 },
    Kind { name: "p99 (ms)", bound: Some(20.0), of: |sample| sample.p99 },
    // Every call is recorded, so it grows.
    Kind { name: "database (MiB)", bound: None, of: |sample| sample.database },
];

/// What was measured at one moment.
#[derive(Debug, Clone)]
pub struct Sample {
    /// Since the start, in hours.
    hours: f64,
    memory: f64,
    descriptors: f64,
    threads: f64,
    database: f64,
    done: usize,
    p50: f64,
    p99: f64,
}

impl Sample {
    pub const HEAD: &'static str =
        "   minutes  operations  memory MiB  descriptors  threads  database MiB   p50 ms   p99 ms";

    pub fn of(server: &Server, elapsed: Duration, done: usize, mut latencies: Vec<Duration>) -> Self {
        latencies.sort_unstable();
        let percentile = |share: f64| {
            let at = (latencies.len().saturating_sub(1) as f64 * share) as usize;
            latencies.get(at).map_or(f64::NAN, |latency| latency.as_secs_f64() * 1e3)
        };
        Sample {
            hours: elapsed.as_secs_f64() / 3600.0,
            memory: server.status("VmRSS") / 1024.0,
            descriptors: server.descriptors(),
            threads: server.status("Threads"),
            database: server.database() / f64::from(1 << 20),
            done,
            p50: percentile(0.5),
            p99: percentile(0.99),
        }
    }
}

impl fmt::Display for Sample {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Sample { hours, memory, descriptors, threads, database, done, p50, p99 } = self;
        let minutes = hours * 60.0;
        write!(
            formatter,
            "{minutes:>10.1}{done:>12}{memory:>12.1}{descriptors:>13}{threads:>9}{database:>14.1}{p50:>9.1}{p99:>9.1}"
        )
    }
}

#[derive(Default)]
pub struct Figures(Vec<Sample>);

impl Figures {
    pub fn add(&mut self, sample: Sample) {
        self.0.push(sample);
    }

    /// Hours and values after the warm-up.
    fn steady(&self, kind: &Kind) -> Vec<(f64, f64)> {
        let end = self.0.last().map_or(0.0, |sample| sample.hours);
        let start = (end * WARM_UP).max(LEAST_WARM_UP_HOURS).min(end * MOST_WARM_UP);
        let steady = self.0.iter().filter(|sample| sample.hours >= start);
        steady.map(|sample| (sample.hours, (kind.of)(sample))).collect()
    }

    /// The growth in an hour after the warm-up.
    fn growth(&self, kind: &Kind) -> Option<Trend> {
        trend(&self.steady(kind))
    }

    /// The figures that surely grow by more than their bound, and have not stopped.
    pub fn grown(&self) -> Vec<&'static str> {
        let grows = |kind: &&Kind| kind.bound.is_some_and(|bound| keeps_growing(&self.steady(kind), bound));
        KINDS.iter().filter(grows).map(|kind| kind.name).collect()
    }

    /// The samples in which no request ended. They have no latencies, and no line can be laid through those of the others.
    pub fn idle(&self) -> usize {
        self.0.iter().filter(|sample| sample.p99.is_nan()).count()
    }

    pub fn table(&self) -> String {
        let mut text =
            format!("{:<16}{:>10}{:>14}{:>24}{:>10}\n", "", "mean", "each hour", "95 % between", "bound");
        for kind in &KINDS {
            let Some(Trend { slope, low, high, mean }) = self.growth(kind) else {
                let _ = writeln!(text, "{:<16}too few samples", kind.name);
                continue;
            };
            let bound = kind.bound.map_or_else(|| "-".to_owned(), |bound| bound.to_string());
            let between = format!("{low:.2} and {high:.2}");
            let _ = writeln!(text, "{:<16}{mean:>10.1}{slope:>14.2}{between:>24}{bound:>10}", kind.name);
        }
        text
    }

    /// Adds a line to `soak.jsonl`, and writes all samples to `soak-samples.csv`.
    pub fn write(&self, directory: &Path, failures: usize) {
        fs::create_dir_all(directory).expect("a directory");
        let figures: Vec<Value> = KINDS
            .iter()
            .map(|kind| {
                let growth = self.growth(kind);
                json!({
                    "name": kind.name, "bound": kind.bound, "mean": growth.map(|growth| growth.mean),
                    "slope": growth.map(|growth| growth.slope), "low": growth.map(|growth| growth.low),
                    "high": growth.map(|growth| growth.high),
                })
            })
            .collect();
        let run = json!({
            "suite": "soak", "minutes": self.0.last().map_or(0.0, |sample| sample.hours * 60.0),
            "operations": self.0.iter().map(|sample| sample.done).sum::<usize>(), "failures": failures,
            "grown": self.grown(), "figures": figures,
        });
        record_run(directory, run);
        let mut csv =
            "minutes,operations,memory_mib,descriptors,threads,database_mib,p50_ms,p99_ms\n".to_owned();
        for sample in &self.0 {
            let Sample { hours, memory, descriptors, threads, database, done, p50, p99 } = sample;
            let minutes = hours * 60.0;
            let _ = writeln!(
                csv,
                "{minutes:.2},{done},{memory:.2},{descriptors},{threads},{database:.2},{p50:.2},{p99:.2}"
            );
        }
        fs::write(directory.join("soak-samples.csv"), csv).expect("a file");
    }
}
