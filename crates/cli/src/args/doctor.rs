//! Arguments of `hob doctor`.

use clap::Parser;

/// Diagnose problems and suggest fixes
///
/// The exit code is 0 if Hob can answer a question and 'hob serve' can start with these settings, and 1 if not.
#[derive(Debug, Parser)]
#[command(after_help = examples! {
    "hob doctor"
    "hob doctor --json | jq .next"
})]
pub struct DoctorArgs {
    /// Print one JSON object
    #[arg(long)]
    pub json: bool,
}
