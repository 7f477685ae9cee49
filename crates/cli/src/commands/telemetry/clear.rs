//! `hob telemetry clear`.

use std::io::{self, IsTerminal, Write};

use anyhow::{Context, Result, bail};
use hob_system::store::Telemetry;

use super::tell_of_nothing;
use crate::output;

/// Whether the user has to agree first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consent {
    Ask,
    Given,
}

impl From<bool> for Consent {
    /// From the flag `--yes`.
    fn from(yes: bool) -> Self {
        if yes { Consent::Given } else { Consent::Ask }
    }
}

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
    if consent == Consent::Ask && !agrees(calls)? {
        output::note("Nothing was deleted.");
        return Ok(());
    }
    let deleted = telemetry.clear()?;
    output::note(format_args!("Deleted the record of {}.", of_calls(deleted)));
    Ok(())
}

fn agrees(calls: u64) -> Result<bool> {
    if !io::stdin().is_terminal() {
        bail!("this deletes the record of {}. Say -y if that is what you want.", of_calls(calls));
    }
    write!(anstream::stderr(), "Delete the record of {}? [y/N] ", of_calls(calls))?;
    let mut answer = String::new();
    io::stdin().read_line(&mut answer).context("cannot read the answer")?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    matches!(answer.trim().to_lowercase().as_str(), "y" | "yes")
}

fn of_calls(count: u64) -> String {
    if count == 1 { "1 call".to_owned() } else { format!("{count} calls") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_clear_yes_deletes() {
        for yes in ["y\n", "Y", " yes \n"] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yikes\n", "no y"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }
}
