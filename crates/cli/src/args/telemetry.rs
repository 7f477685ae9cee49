//! `hob telemetry` as it is typed.

use std::path::PathBuf;

use clap::{Subcommand, ValueEnum};

use super::values::whole;

#[derive(Debug, Subcommand)]
pub enum TelemetryCommand {
    /// Show calls, tokens, times and costs, by model, engine, agent and day
    ///
    /// Means are exact. Percentiles (P50, P95) are within 2.5 %, because times are kept in classes: that is why a million calls are
    /// told as fast as a hundred. Energy is shown where this machine has a meter for it.
    Stats {
        /// So many models at most
        #[arg(short = 'n', long, default_value_t = 10, value_parser = whole::<usize>)]
        top: usize,
        /// Print one JSON object
        #[arg(long)]
        json: bool,
    },
    /// Print every call on record, oldest first
    Export {
        /// One JSON array, or CSV with a header
        #[arg(short, long, value_enum, default_value_t = ExportFormat::Json)]
        format: ExportFormat,
        /// File to write instead of stdout; one that is there is replaced
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Delete the whole record
    Clear {
        /// Do not ask
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
