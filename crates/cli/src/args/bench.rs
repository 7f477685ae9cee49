//! Arguments of `hob bench`.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use hob_config::EngineName;

use super::values::engines;

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    Run(BenchRunArgs),
    /// Compare two result files
    #[command(after_help = examples! {
        "hob bench run -o before.jsonl"
        "hob bench run -o after.jsonl"
        "hob bench compare before.jsonl after.jsonl"
    })]
    Compare {
        /// Baseline results, written by 'hob bench run -o'
        before: PathBuf,
        /// Results to compare with the baseline
        after: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Measure the latency and throughput of a model
///
/// Requests go to the engine on the normal path and are recorded in telemetry. One extra request loads the model first.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob bench run"
    "hob bench run -m qwen3:8b -n 20 -o before.jsonl"
    "hob bench run -b latency --json"
})]
pub struct BenchRunArgs {
    /// Model to measure [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Engine to measure [default: as configured, or one that is running]
    #[arg(short, long, value_parser = engines())]
    pub engine: Option<EngineName>,

    /// Requests per measurement (at least the concurrency level)
    #[arg(short = 'n', long, default_value_t = 10, value_parser = samples)]
    pub samples: usize,

    /// Run only this benchmark [default: all]
    #[arg(short, long, value_enum)]
    pub benchmark: Option<Benchmark>,

    /// Append the results to this file, one JSON object per line
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Benchmark {
    /// Time to the first token and to the complete answer
    Latency,
    /// Tokens per second at several concurrency levels
    Throughput,
}

fn samples(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=10_000).contains(number));
    number.ok_or_else(|| "expected a whole number from 1 to 10000".to_owned())
}
