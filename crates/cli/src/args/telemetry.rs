//! Arguments of `hob telemetry`.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::values::whole;

#[derive(Debug, Subcommand)]
pub enum TelemetryCommand {
    /// Show calls, tokens, latency and cost by model, engine, agent, key and day
    ///
    /// Means are exact. Percentiles (P50, P95) are accurate to 2.5 %, because latencies are stored in buckets, which keeps
    /// reports fast at any number of calls. Energy is shown if this machine has an energy meter.
    #[command(after_help = examples! {
        "hob telemetry stats"
        "hob telemetry stats -n 3 --json"
    })]
    Stats {
        /// Maximum number of models to show
        #[arg(short = 'n', long, default_value_t = 10, value_parser = whole::<usize>)]
        top: usize,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Export every recorded call, oldest first
    #[command(after_help = examples! {
        "hob telemetry export -f csv -o calls.csv"
    })]
    Export {
        /// Output format: one JSON array, or CSV with a header
        #[arg(short, long, value_enum, default_value_t = ExportFormat::Json)]
        format: ExportFormat,
        /// File to write instead of stdout; an existing file is overwritten
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Delete all recorded calls
    #[command(after_help = examples! {
        "hob telemetry clear"
        "hob telemetry clear -y"
    })]
    Clear {
        /// Do not ask for confirmation
        #[arg(short, long)]
        yes: bool,
    },
}

/// How an export is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ExportFormat {
    Json,
    Csv,
}
