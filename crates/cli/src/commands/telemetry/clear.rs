//! `hob telemetry clear`.

use anyhow::Result;
use hob_telemetry::TelemetryStore;

use super::note_empty;
use crate::commands::confirm::Confirmation;
use crate::output;
use crate::output::number::counted;

pub fn run(telemetry: Option<&dyn TelemetryStore>, confirmation: Confirmation) -> Result<()> {
    let Some(telemetry) = telemetry else {
        note_empty();
        return Ok(());
    };
    let calls = telemetry.overview(None)?.figures.calls;
    if calls == 0 {
        note_empty();
        return Ok(());
    }
    if !confirmation.is_given(&format!("the record of {}", counted(calls, "call")))? {
        output::note("Nothing was deleted.");
        return Ok(());
    }
    let deleted = telemetry.clear()?;
    output::note(format_args!("Deleted the record of {}.", counted(deleted, "call")));
    Ok(())
}
