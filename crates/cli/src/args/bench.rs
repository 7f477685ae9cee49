//! `hob bench` as it is typed.

use std::path::PathBuf;

use clap::{Parser, Subcommand, ValueEnum};
use hob_config::EngineKey;

use super::values::engines;

#[derive(Debug, Subcommand)]
pub enum BenchCommand {
    Run(BenchRunArgs),
    /// Put two files of measurements side by side
    Compare {
        /// A file of 'hob bench run -o'
        before: PathBuf,
        /// Another
        after: PathBuf,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
}

/// Ask a model many questions, and tell how long its answers take
///
/// The questions go the way every request takes, straight to the engine, and are recorded as such. One more is asked first, to
/// load the model.
#[derive(Debug, Parser)]
pub struct BenchRunArgs {
    /// Model to measure [default: as configured, or the engine's first]
    #[arg(short, long)]
    pub model: Option<String>,

    /// Engine to measure [default: as configured, or one that runs]
    #[arg(short, long, value_parser = engines())]
    pub engine: Option<EngineKey>,

    /// Questions of each measurement; with several at once, as many as those at least
    #[arg(short = 'n', long, default_value_t = 10, value_parser = samples)]
    pub samples: usize,

    /// Only this one [default: all]
    #[arg(short, long, value_enum)]
    pub benchmark: Option<Benchmark>,

    /// File to add the measurements to, a line of JSON each
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,

    /// Print one JSON array
    #[arg(long)]
    pub json: bool,
}

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Benchmark {
    /// How long one answer takes, and its first token
    Latency,
    /// How many tokens come in a second
    Throughput,
}

fn samples(text: &str) -> Result<usize, String> {
    let number = text.parse().ok().filter(|number| (1..=10_000).contains(number));
    number.ok_or_else(|| "expected a whole number from 1 to 10000".to_owned())
}
