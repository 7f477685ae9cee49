//! `hob telemetry clear`.

use anyhow::Result;
use hob_system::store::Telemetry;

use super::tell_of_nothing;
use crate::commands::confirm::Consent;
use crate::output;
use crate::output::number::counted;

pub fn run(telemetry: Option<&Telemetry>, consent: Consent) -> Result<()> {
    let Some(telemetry) = telemetry else {
        tell_of_nothing();
        return Ok(());
    };
    let calls = telemetry.overview(None)?.figures.calls;
    if calls == 0 {
        tell_of_nothing();
        return Ok(());
    }
    if !consent.is_given(&format!("the record of {}", counted(calls, "call")))? {
        output::note("Nothing was deleted.");
        return Ok(());
    }
    let deleted = telemetry.clear()?;
    output::note(format_args!("Deleted the record of {}.", counted(deleted, "call")));
    Ok(())
}
