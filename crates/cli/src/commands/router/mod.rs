//! `hob router`: what the router has learned. Reads the database directly, so no server and no engine need to run.

mod reset;
mod show;

use std::process::ExitCode;

use anyhow::Result;
use hob_app::startup::routing::open_routing_service;
use hob_telemetry::TelemetryService;

use crate::args::RouterCommand;
use crate::output;
use crate::settings;

pub fn run(command: RouterCommand) -> Result<ExitCode> {
    let config = settings::load()?;
    let databases = settings::databases(&config)?;
    let store = open_routing_service(databases.hob, TelemetryService::default()).find()?;
    match command {
        RouterCommand::Show { json } => show::run(store.as_deref(), config.intelligence.router, json.into())?,
        RouterCommand::Reset { yes } => reset::run(store.as_deref(), yes.into())?,
    }
    Ok(ExitCode::SUCCESS)
}

/// Prints that there is no data, which is not a failure.
fn note_empty() {
    output::note("The router has learned nothing yet. Use --router grpo, or the model 'auto'.");
}
