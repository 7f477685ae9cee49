//! `hob telemetry clear`.

use anyhow::Result;
use hob_system::store::Telemetry;

use super::tell_of_nothing;
use crate::commands::consent::Consent;
use crate::output;

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
    if !consent.is_given(&format!("the record of {}", of_calls(calls)))? {
        output::note("Nothing was deleted.");
        return Ok(());
    }
    let deleted = telemetry.clear()?;
    output::note(format_args!("Deleted the record of {}.", of_calls(deleted)));
    Ok(())
}

fn of_calls(count: u64) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}
