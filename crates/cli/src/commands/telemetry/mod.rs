//! `hob telemetry`: recorded calls. Reads the database directly, so no server and no engine need to run.

mod clear;
mod export;
mod figures;
mod stats;

use std::process::ExitCode;

use anyhow::Result;
use hob_telemetry::find_telemetry_store;

use crate::args::TelemetryCommand;
use crate::output;
use crate::settings;

pub fn run(command: TelemetryCommand) -> Result<ExitCode> {
    let config = settings::load()?;
    let telemetry = find_telemetry_store(&settings::databases(&config)?.hob)?;
    match command {
        TelemetryCommand::Stats { top, json } => stats::run(telemetry.as_deref(), top, json.into())?,
        TelemetryCommand::Export { format, output } => {
            export::run(telemetry, format, output.as_deref())?;
        }
        TelemetryCommand::Clear { yes } => clear::run(telemetry.as_deref(), yes.into())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints that there is no data, which is not a failure.
fn note_empty() {
    output::note("No calls are recorded yet.");
}
